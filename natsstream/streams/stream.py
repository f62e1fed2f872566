"""One stream: what `js.streams` returns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from natsstream._wire.headers import HeaderValues
from natsstream.api import stream_requests
from natsstream.api.control import data_subjects, named_control
from natsstream.api.diff import ConfigChange
from natsstream.api.message import Message
from natsstream.api.message_query import SEQUENCE_MAX
from natsstream.api.requests import Api
from natsstream.api.step_down import StepDownTarget, step_down
from natsstream.api.stream_info import DeletedRange, StreamInfo
from natsstream.api.unmatched import warn_unmatched
from natsstream.arguments import check_bool
from natsstream.foreign_names import answers_names
from natsstream.publish.batches.atomic import AtomicBatch
from natsstream.publish.batches.atomic_rules import IDLE_TIMEOUT_S, MAX_MESSAGES
from natsstream.publish.batches.fast import ACK_TIMEOUT_S, FLOW_MAX, OUTSTANDING, FastIngest
from natsstream.publish.outgoing import Expect, Payload, Rollup, prepare
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import RETRY_ATTEMPTS, RETRY_WAIT_S, publish
from natsstream.publish.schedule import Schedule, Ttl
from natsstream.read.direct.reads import DirectReads
from natsstream.read.latest.latest import Latest
from natsstream.read.latest.wanted import LatestRequest
from natsstream.read.ordered import OrderedConsumer
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.read.session import WINDOW_BYTES
from natsstream.read.start_position import DeliverPolicy, OrderedSpec
from natsstream.streams.chain.links import ChainHead
from natsstream.streams.chain.verification import verify_chain
from natsstream.streams.chain.verify import ChainReport
from natsstream.streams.chain.writer import ChainedPublisher
from natsstream.streams.chunks.chunks import Chunks
from natsstream.streams.consumers.manager import ConsumerManager
from natsstream.streams.counters.counters import Counters
from natsstream.streams.schedules import StreamSchedules
from natsstream.streams.snapshots.backup import write_backup
from natsstream.streams.snapshots.folder import BackupInfo
from natsstream.streams.snapshots.progress import BackupProgress
from natsstream.streams.subject_counts import SubjectCount, each_subject, largest_subjects
from natsstream.units import check_nanoseconds, moment_ns


@answers_names("stream")
class Stream:
    """A stream on the server; made by `js.streams`.

    Every call raises `StreamNotFoundError` when the stream was deleted, and `TransportError` when
    the server does not answer in time.

    Attributes:
        name: The stream's name.
        cached: Its info when it was opened; `info()` returns a fresh one.
        change: Whether the call that returned it created the stream, changed fields, or did
            nothing.
    """

    def __init__(self, api: Api, cached: StreamInfo, change: ConfigChange | None = None) -> None:
        self._api = api
        self.name: str = cached.name
        self.cached: StreamInfo = cached
        self.change: ConfigChange = change or ConfigChange(cached.name, "unchanged")

    def __repr__(self) -> str:
        return f"<Stream {self.name}>"

    # Info.

    async def info(
        self, *, subjects: str | None = None, deleted_details: bool = False
    ) -> StreamInfo:
        """Return the stream's configuration and state now.

        Args:
            subjects: Also count the messages of each subject that this filter matches, into
                `state.subjects`; ">" is all.
            deleted_details: Also list the deleted sequences, in `state.deleted`, and those that the
                server knows to be lost, in `state.lost`.

        Raises:
            ConfigError: `deleted_details` is not a bool; nothing was sent.
            SubjectError: The filter is not a legal subject; nothing was sent.

        Cost: one round trip to the stream's leader. With `subjects` one for each 100,000 of them,
        and all of them in memory; `subject_counts` yields them page by page. Each deleted sequence
        takes some 7 bytes of the answer.
        """
        check_bool(deleted_details, "deleted_details")
        return await stream_requests.stream_info(
            self._api, self.name, subjects=subjects, deleted_details=deleted_details
        )

    async def subjects(self, filter: str = ">", *, top: int | None = None) -> list[SubjectCount]:  # noqa: A002 - The field's own word.
        """Return the stream's subjects, those with the most messages first.

        Args:
            filter: Which subjects, with wildcards.
            top: Return at most this many; None returns all.

        Raises:
            SubjectError: The filter is not a legal subject; nothing was sent.

        Cost: one round trip for each 100,000 subjects; the memory of `top` of them and a page.
        """
        return await largest_subjects(self._api, self.name, filter, top)

    def subject_counts(self, filter: str = ">") -> AsyncGenerator[SubjectCount]:  # noqa: A002 - The field's own word.
        """Yield the stream's subjects by name, for streams with very many.

        A subject that appears or vanishes meanwhile may come twice or not at all.

        Raises:
            SubjectError: The filter is not a legal subject; nothing was sent.

        Cost: one round trip and the memory of a page for each 100,000 subjects.
        """
        return each_subject(self._api, self.name, filter)

    async def gaps(self) -> list[DeletedRange]:
        """Return the ranges of sequences between the first and the last that hold no message.

        These messages were deleted, expired, or replaced by a newer message of their subject. The
        ranges include lost sequences; `info(deleted_details=True)` lists those by themselves.

        Cost: one round trip, with some 7 bytes for each deleted sequence. A stream of one million
        updates of one subject answers with 7 MB.
        """
        info = await stream_requests.stream_info(self._api, self.name, deleted_details=True)
        return list(info.state.deleted or ())

    # Messages.

    async def get(
        self,
        sequence: int | None = None,
        *,
        last_by_subject: str | None = None,
        next_by_subject: str | None = None,
        start_time: datetime | int | None = None,
    ) -> Message | None:
        """Return one message, or None when the stream has none there.

        Args:
            sequence: The message with this sequence; with `next_by_subject`, where to begin.
            last_by_subject: The newest message of this subject; may have wildcards.
            next_by_subject: The first message of this subject at or after `sequence`.
            start_time: The first message at or after this moment (datetime with a time zone, or
                Unix nanoseconds); with `next_by_subject`, of that subject.

        Raises:
            ConfigError: The arguments name no message, or two, or `start_time` is of Unix seconds.
            SubjectError: A subject is not legal; nothing was sent.
            UnsupportedServerError: `start_time` was given, and the server is older than 2.11.

        Cost: one round trip to the stream's leader, so it sees every acknowledged write.
        Source: nats.go jetstream/stream.go GetMsg.
        """
        check_nanoseconds(start_time, "start_time")
        return await stream_requests.get_message(
            self._api,
            self.name,
            sequence,
            last_by_subject=last_by_subject,
            next_by_subject=next_by_subject,
            start_time=start_time,
        )

    @property
    def direct(self) -> DirectReads:
        """Reads that any replica answers: fast, spread over the cluster, and possibly stale."""
        return DirectReads(self._api, self.cached)

    # Reading.

    def read(
        self,
        *,
        first_seq: int | None = None,
        last_seq: int | None = None,
        filters: Sequence[str] = (),
        start_time: datetime | int | None = None,
        end_time: datetime | int | None = None,
        newest: int | None = None,
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        eviction_is_loss: bool = False,
        until_closed: bool = False,
        control: bool = False,
        max_pending_bytes: int = WINDOW_BYTES,
    ) -> StreamRange:
        """Describe a bounded read; iterate the result for messages, or call it for columns.

        Args:
            first_seq: First sequence, inclusive; None is the first in the stream. The stream's last
                sequence plus one reads nothing, as a reader does that resumes and finds nothing
                new; a higher one raises SequenceRangeError from the loop.
            last_seq: Last sequence, inclusive; None is the last one when the read begins. A higher
                one than that raises SequenceRangeError from the loop.
            filters: Subjects to read, filtered by the server; they must not overlap.
            start_time: Leave out messages stored before this moment.
            end_time: Leave out messages stored at or after this moment.
            newest: Only the newest messages of the filters, this many, as of when the read begins;
                ascending. Counts back from `last_seq` or `end_time` if one is given. There are
                fewer if the stream has fewer, or if some are deleted meanwhile.
            headers_only: Leave out the payloads; `message.stored_bytes` has their size.
            created_ns: The stream's identity, from `StreamInfo`; refuse another stream of this
                name.
            on_loss: "raise" ends the read at the first lost message; "report" reads on and counts.
                Losses are noticed only without filters: a filter hides gaps. `ReadReport` says
                which losses a server cannot tell from deletions.
            eviction_is_loss: Also count it as loss when limits or a purge have removed the
                beginning of the range.
            until_closed: Wait for new messages, and end when a producer has closed the stream:
                before the record that says so, whatever lies behind it. A stream that is closed or
                sealed already is read like any range. Deleting the stream raises.
            control: Also read the control records of producers.
            max_pending_bytes: Most bytes asked for and not read yet, as the stream's mean size of a
                message tells. A publisher's ack waits behind them in the server's queue: beside
                several readers at once, 4 MiB for each keep it short. A message of the server's
                `max_payload` is always asked for whole.

        Returns:
            The range; nothing is sent before it is iterated.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: A time has no time zone, `start_time` is after `end_time`, `newest` is
                given with `first_seq` or `start_time`, `until_closed` with another end, two filters
                overlap, or a value is not legal.

        Cost: one ephemeral consumer; `max_pending_bytes` of messages in flight, up to 48 MiB where
        the server takes messages of 24 MiB. `newest` with filters, or in a stream with deleted
        messages or control records, first counts with two consumers for each doubling of the
        distance from the end. Then it reads the headers of these messages and of an eighth or 1,000
        more.
        """
        spec = RangeSpec(
            stream=self.name,
            first_seq=first_seq,
            last_seq=last_seq,
            filters=filters,
            start_time_ns=moment_ns(start_time),
            end_time_ns=moment_ns(end_time),
            newest=newest,
            headers_only=headers_only,
            created_ns=created_ns,
            on_loss=on_loss,
            eviction_is_loss=eviction_is_loss,
            until_closed=until_closed,
            control=control,
            max_pending_bytes=max_pending_bytes,
        )
        return StreamRange(self._api, spec)

    def ordered(
        self,
        *,
        filters: Sequence[str] = (),
        first_seq: int | None = None,
        start_time: datetime | int | None = None,
        newest: int | None = None,
        deliver_policy: DeliverPolicy = "all",
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        until_closed: bool = False,
        control: bool = False,
    ) -> OrderedConsumer:
        """Describe an ordered consumer: stored messages, then new ones, once and in order.

        Use it as `async with stream.ordered() as tail: async for message in tail`. It resumes by
        itself after a lost connection, a server restart, a change of leaders and a deleted
        consumer, however slow the reader is.

        Args:
            filters: Subjects to read, filtered by the server; they must not overlap.
            first_seq: First sequence, inclusive. A sequence that lies in the future is waited for.
            start_time: Leave out messages stored before this moment (datetime with a time zone, or
                Unix nanoseconds).
            newest: Begin with the newest messages of the filters, this many as of when the block is
                entered; found as `read` finds them.
            deliver_policy: Where to begin when no start is given. "all": with the first message in
                the stream. "new": with messages stored from now on. "last": with the last message
                of the filters. "last_per_subject": with the last message of each subject; every
                message stored after the block was entered still comes.
            headers_only: Leave out the payloads; the header `Nats-Msg-Size` has their size.
            created_ns: The stream's identity, from `StreamInfo`; refuse another stream of this
                name.
            on_loss: "raise" ends at the first lost message; "report" reads on and counts. Losses
                are noticed only without filters and without "last_per_subject", which hide gaps.
                `ReadReport` says which losses a server cannot tell from deletions.
            until_closed: End the loops when a producer has closed the stream, or it is sealed.
                Without it a closed stream is followed on, for messages of other clients; `end_seq`
                and the event `EndFound` report the end.
            control: Also read the control records of producers.

        Returns:
            The consumer; nothing is sent before its block is entered.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: Two starts are given, two filters overlap, or a value is not legal. By
                entering the block: `until_closed`, and no producer can end the stream.

        Cost: one ephemeral consumer; at most 16 MiB of messages in flight, up to 48 MiB where the
        server takes messages of 24 MiB.
        Source: ADR-17; nats.go jetstream/ordered.go.
        """
        spec = OrderedSpec(
            stream=self.name,
            filters=filters,
            first_seq=first_seq,
            start_time_ns=moment_ns(start_time),
            newest=newest,
            deliver_policy=deliver_policy,
            headers_only=headers_only,
            created_ns=created_ns,
            on_loss=on_loss,
            until_closed=until_closed,
            control=control,
        )
        return OrderedConsumer(self._api, spec)

    def latest(
        self,
        *,
        filters: Sequence[str] = (),
        include_history: bool = False,
        updates_only: bool = False,
        headers_only: bool = False,
        consistent: bool = False,
        first_seq: int | None = None,
        created_ns: int | None = None,
        control: bool = False,
    ) -> Latest:
        """Describe a read of the newest message of each subject, then of new messages.

        Key-value watches are built on it; use it for any stream whose subjects have a state. Use it
        as `async with stream.latest() as tail: async for message in tail`. It resumes by itself as
        `ordered` does. Its `initial()` ends only when every subject has come, also subjects that
        are written at the same time.

        Args:
            filters: Subjects to read, filtered by the server, at most 1,000; none is all. They may
                overlap: each message comes once.
            include_history: Begin with all messages in the stream, not the newest alone.
            updates_only: Begin with messages stored from now on; nothing is initial.
            headers_only: Leave out the payloads; `message.stored_bytes` has their size.
            consistent: Choose the newest messages on a server that knows every acknowledged write.
                Any other replica may lag behind: an older message of a subject may then come first,
                and the newest one a moment later.
            first_seq: Resume at this sequence: `next_seq` of an earlier read.
            created_ns: The stream's identity, `created_ns` of an earlier read; refuse another
                stream of this name.
            control: Also read the control records of producers.

        Returns:
            The consumer; nothing is sent before its block is entered.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: Two starts are given, there are too many filters, or a value is not legal.

        Cost: one ephemeral consumer; with `consistent` on a replicated stream some more before it,
        until one lands on the right server by chance. At most 16 MiB of messages in flight. Gaps
        are not reported: such streams drop replaced messages.
        Source: ADR-8 and ADR-20, watchers; nats.go jetstream/kv.go.
        """
        request = LatestRequest(
            stream=self.name,
            filters=filters,
            include_history=include_history,
            updates_only=updates_only,
            headers_only=headers_only,
            consistent=consistent,
            first_seq=first_seq,
            created_ns=created_ns,
            control=control,
        )
        return Latest(self._api, request)

    async def data_filters(self) -> list[str]:
        """Return filters that match all messages but the control records of producers.

        Readers leave these out by themselves. A durable consumer delivers what its filters match,
        as for any other client; give it these filters to hide the records.

        Raises:
            ConfigError: One of the stream's subjects matches both, such as `orders.>`. List the
                subjects of the data and `orders.$ctl.>` apart, or filter by your own subjects.

        Cost: one round trip.
        """
        config = (await self.info()).config
        return data_subjects(config, named_control(config))

    # Publishing.

    async def publish(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
        timeout: float | None = None,
        retry_attempts: int = RETRY_ATTEMPTS,
        retry_wait: float = RETRY_WAIT_S,
    ) -> PubAck:
        """Publish one message into this stream and wait for its ack.

        The arguments are those of `JetStream.publish`. The message does not name the stream, so
        that it can be copied as it is; `expect=Expect(stream=...)` makes the server check it too.

        Raises:
            ConfigError: The stream has `no_ack`; nothing was sent.
            WrongStreamError: Another stream captures the subject, and nothing was sent. Or it has
                taken the subject over since this stream was opened: then it has stored the message,
                and the error says so.
            NatsStreamError: As for `JetStream.publish`.

        Cost: one round trip; one more for a subject that this stream is not known to capture.
        """
        return await publish(
            self._api,
            prepare(subject, data, headers, msg_id, expect, ttl, rollup, schedule),
            stream=self.cached,
            timeout=timeout,
            retry_attempts=retry_attempts,
            retry_wait=retry_wait,
        )

    def batch(
        self, *, max_messages: int = MAX_MESSAGES, idle_timeout: float = IDLE_TIMEOUT_S
    ) -> AtomicBatch:
        """Describe an atomic batch: messages that the stream stores together, or not at all.

        Use it as `async with stream.batch() as tx`, with `tx.add(...)` and `tx.commit()`. The
        stream needs `allow_atomic`, the server 2.12.

        Args:
            max_messages: Messages of a batch at most; raise it where the server's configuration
                does.
            idle_timeout: Seconds after which the server drops a batch that nothing is added to;
                change it where the server's configuration does.

        Raises:
            ConfigError: A value is not legal. Entering the block raises it too, for a stream with
                `no_ack`, a mirror and one with `persist_mode="async"`.
            BatchDisabledError: By entering the block: the stream has no `allow_atomic`.
            UnsupportedServerError: By entering the block: the server is older than 2.12.

        Cost: a batch's messages wait on the server, at most 50 batches a stream. A commit into a
        file store with one replica takes some milliseconds, as the batch is a file of its own.
        Source: ADR-50.
        """
        return AtomicBatch(
            self._api, self.cached, max_messages=max_messages, idle_timeout=idle_timeout
        )

    def ingest(
        self,
        *,
        on_gap: Literal["fail", "ok"] = "fail",
        ack_every: int = FLOW_MAX,
        max_outstanding_acks: int = OUTSTANDING,
        ack_timeout: float = ACK_TIMEOUT_S,
        idle_timeout: float = IDLE_TIMEOUT_S,
    ) -> FastIngest:
        """Describe a fast batch: the fastest way to store many messages in order.

        Use it as `async with stream.ingest() as fast`, with `fast.send(...)`. One server ack stands
        for hundreds of messages, and sets the pace. Messages are stored as they arrive, not as a
        whole. The stream needs `allow_batched`, the server 2.14.

        Args:
            on_gap: When a message is lost on the wire or refused, "fail" ends the batch there: the
                stored messages are an unbroken run from the first. "ok" continues, and the report
                lists the gaps.
            ack_every: Request an ack every `ack_every` messages. The server may send them more
                often, and does so while other clients ingest into the stream.
            max_outstanding_acks: Acks in flight at most; `send` waits beyond that. A slow route
                to the server needs more than 2.
            ack_timeout: Seconds without any progress after which waits give up.
            idle_timeout: Seconds after which the server drops an idle batch; change it where the
                server's configuration does. A ping every third of it keeps the batch alive.

        Raises:
            ConfigError: A value is not legal. Entering the block raises it too, for a stream with
                `no_ack` and for a mirror.
            BatchDisabledError: By entering the block: the stream has no `allow_batched`.
            UnsupportedServerError: By entering the block: the server is older than 2.14.

        Cost: one round trip to enter the block, one to leave it, one for the first message.
        Source: ADR-50.
        """
        return FastIngest(
            self._api,
            self.cached,
            on_gap=on_gap,
            ack_every=ack_every,
            max_outstanding_acks=max_outstanding_acks,
            ack_timeout=ack_timeout,
            idle_timeout=idle_timeout,
        )

    @property
    def schedules(self) -> StreamSchedules:
        """The stream's schedules: listed and ended; they need `allow_msg_schedules`."""
        return StreamSchedules(self._api, self.cached)

    @property
    def counters(self) -> Counters:
        """The stream's counters: added to and read; they need `allow_msg_counter`."""
        return Counters(self._api, self.name)

    @property
    def chunks(self) -> Chunks:
        """Values too large for one message, each as chunks under a subject of its own."""
        return Chunks(self._api, self.name, message_bytes_max=self.cached.config.max_msg_size)

    # Chains.

    def chained(
        self,
        *,
        writer: str,
        key: bytes | None = None,
        filters: Sequence[str] = (),
        exclusive: bool = False,
        resume: ChainHead | None = None,
    ) -> ChainedPublisher:
        """Return a publisher of links: a message that was changed, removed, moved or added shows.

        Each message has headers with the writer's id, its number, the hash of the writer's message
        before it and its own. Use it with `async with`; it continues after the writer's last link.

        Args:
            writer: The writer's id: one process at a time, 1 to 64 of letters, digits, `.`, `_`
                and `-`.
            key: The key of an HMAC-SHA256, at least 16 bytes. None is a plain SHA-256, which
                anybody who may write to the stream can compute again.
            filters: Subjects to search for the last link; none searches all messages.
            exclusive: Only this writer writes to its subjects: the server then refuses a second
                process at once, and foreign messages on these subjects stop the chain. Needs a
                server of 2.11.
            resume: The writer's head, where it was kept: no earlier message is searched, and a
                stream without that head is refused.

        Raises:
            ConfigError: An argument has no legal value.
            SubjectError: A filter is not a legal subject.

        Cost: to open, a read of the stream from its end back to the writer's last link; all of it
        for a new writer. Then one round trip a message, and about 300 bytes of headers.
        """
        return ChainedPublisher(
            self._api,
            self.name,
            writer=writer,
            key=key,
            filters=filters,
            exclusive=exclusive,
            resume=resume,
        )

    async def verify_chain(
        self,
        *,
        key: bytes | None = None,
        writers: Sequence[str] | None = None,
        since: Mapping[str, ChainHead] | None = None,
        head: Mapping[str, ChainHead] | None = None,
        filters: Sequence[str] = (),
        on_break: Literal["raise", "report"] = "raise",
    ) -> ChainReport:
        """Read the stream and report the first broken link of each writer.

        It finds a changed payload, subject or header, an added header, a missing, moved or copied
        link, and a second first link. **The loss of the newest links shows only with `head`.** So
        does a whole chain made anew by somebody who has the key, or by anybody where there is none.

        Args:
            key: The key that the links were made with.
            writers: Whose chains; None is all of them.
            since: Begin after these heads, by writer; for streams whose limits have removed the
                first links.
            head: Heads that the chains must have reached, by writer, such as `publisher.head`.
            filters: Subjects that hold the links; none reads all messages.
            on_break: "raise" ends at the first broken link; "report" reads on for other writers.

        Returns:
            The heads of the chains, the breaks, and how many messages were read.

        Raises:
            ChainBrokenError: A link is broken, and `on_break` is "raise".
            ConfigError: An argument has no legal value.

        Cost: reads the whole stream; about 40 microseconds of CPU a message.
        """
        return await verify_chain(
            self._api,
            self.name,
            key=key,
            writers=writers,
            since=since,
            head=head,
            filters=filters,
            on_break=on_break,
        )

    # Consumers.

    @property
    def consumers(self) -> ConsumerManager:
        """The stream's consumers: created, found, changed and deleted."""
        return ConsumerManager(self._api, self.cached)

    # Operations.

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
    ) -> str | None:
        """Make the stream's leader step down, and return the name of the next one.

        A stream with one replica keeps its leader.

        Args:
            preferred: Name of the server to lead next; it must have a replica. While that one
                is not current, another may lead: the result tells.
            cluster: Name of the cluster of the next leader.
            tags: Tags of the next leader's server.
            wait: Wait for the next leader; without it the result is None.
            timeout: Seconds to wait in all; None is `request_timeout`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            ServerError: The server is not in a cluster, or no replica fits; the leader stays.
            UnsupportedServerError: A choice was made, and the server is older than 2.11.
            RequestTimeoutError: No answer, or no leader in time. It may have stepped down.

        Cost: a round trip, an election, and one info each 50 ms until it is over.
        Source: ADR-44's API; nats CLI `nats stream cluster step-down`.
        """
        return await step_down(
            StepDownTarget.of_stream(self._api, self.name),
            preferred=preferred,
            cluster=cluster,
            tags=tags,
            wait=wait,
            timeout=timeout,
        )

    async def remove_peer(self, name: str) -> None:
        """Take the stream's replica from a server; the cluster makes one on another server.

        It returns when the cluster has decided; the new replica then catches up by itself.

        Args:
            name: The server's name.

        Raises:
            ConfigError: The name is not a text; nothing was sent.
            NotFoundError: The server has no replica of the stream.
            ServerError: No other server can take one, or this one is not in a cluster.
            TransportError: No answer; the replica may be removed or not.

        Cost: one round trip; then the new replica receives the whole stream.
        Source: nats CLI `nats stream cluster peer-remove`.
        """
        await stream_requests.remove_peer(self._api, self.name, name)

    async def backup(
        self,
        path: str | Path,
        *,
        consumers: bool = True,
        check: bool = False,
        chunk_size: int | None = None,
        on_progress: Callable[[BackupProgress], object] | None = None,
        timeout: float | None = None,
    ) -> BackupInfo:
        """Write the stream into a new folder, as the nats CLI does; each restores the other's.

        The folder holds `backup.json` and `stream.tar.s2`. It appears when it is complete: a backup
        that fails or is cancelled leaves nothing.

        Args:
            path: The folder: absent, or empty.
            consumers: Also back up the consumers' configuration and state.
            check: Let the server verify every message first; that reads all of them.
            chunk_size: Bytes of each part on the wire, 1,024 to 1,048,576; None is 131,072, or
                the server's `max_payload` where that is smaller.
            on_progress: Called after each part; it must not wait. An error in it ends the backup.
            timeout: Seconds in which the server must begin, and then send each next part; None is
                30, and with `check` an hour for the beginning.

        Returns:
            The size and SHA-256 of the archive, and what the stream held.

        Raises:
            ConfigError: The folder is not empty, or an option has no legal value.
            BackupError: The server failed, or did not send all; `retryable` says whether another
                attempt may succeed.
            UnsupportedServerError: The stream is in memory, and the server is older than 2.15.
            OSError: The disk failed.

        Cost: the stream once over the wire, compressed; at most 32 MiB of memory.
        Source: nats CLI `nats stream backup`; jsm.go snapshots.go.
        """
        return await write_backup(
            self._api,
            self.cached.config,
            path,
            consumers=consumers,
            check=check,
            chunk_size=chunk_size,
            on_progress=on_progress,
            timeout=timeout,
        )

    # Removal.

    async def purge(
        self, *, subject: str = ">", last_seq: int = SEQUENCE_MAX, keep: int = 0
    ) -> int:
        """Remove messages and return how many; without arguments all of them.

        The next message gets the sequence that it would have had. None is no value of any
        argument, so that a variable that is not set removes nothing.

        Args:
            subject: Only messages of this subject; may have wildcards.
            last_seq: Only messages up to this sequence, inclusive; 0 removes none.
            keep: All but the newest `keep`, of the subject when one is given; 0 keeps none.

        Raises:
            ConfigError: `last_seq` and `keep` are given together, or a value is not legal.
            SubjectError: The subject is None or not legal; nothing was sent.
            NotPermittedError: The stream has `deny_purge`.
            StreamSealedError: The stream is sealed.
            TransportError: No answer; messages may be removed or not. Repeating the purge is safe
                unless messages were stored meanwhile that `last_seq` or `keep` does not spare.

        Cost: one round trip; a filter makes the server look at each subject that it matches. One
        more to warn in the log of a filter that can match nothing.
        Source: nats.go jetstream/stream.go Purge.
        """
        count = await stream_requests.purge(
            self._api, self.name, subject=subject, last_seq=last_seq, keep=keep
        )
        if subject != ">" and not count:
            await warn_unmatched(self._api, self.cached, (subject,), f"purge of stream {self.name}")
        return count

    async def delete_message(self, sequence: int, *, secure: bool = False) -> None:
        """Delete one message; readers skip its sequence.

        Args:
            sequence: The message's sequence.
            secure: Also overwrite its bytes on the disk with noise, which is slow.

        Raises:
            ConfigError: The sequence is not a number from 1 on.
            MessageNotFoundError: The stream has no message there.
            NotPermittedError: The stream has `deny_delete`.
            StreamSealedError: The stream is sealed.
            TransportError: No answer; the message may be deleted or not. Repeat the call:
                `MessageNotFoundError` then says that it is gone.

        Cost: one round trip.
        Source: nats.go jetstream/stream.go DeleteMsg and SecureDeleteMsg.
        """
        await stream_requests.delete_message(self._api, self.name, sequence, secure=secure)

    async def seal(self) -> StreamInfo:
        """Forbid all writes and removals for ever; the stream itself can still be deleted.

        The server also clears `max_age` and other limits that would remove messages. Sealing cannot
        be undone.

        Returns:
            The stream's info now; `cached` keeps the old one.

        Raises:
            InvalidConfigError: The server refused it, or did not do it.

        Cost: two round trips.
        """
        return await stream_requests.seal_stream(self._api, self.name)

    async def delete(self) -> None:
        """Delete the stream with all its messages and consumers, also a sealed one.

        Raises:
            TransportError: No answer, and the stream is there; it may still be deleted.
        """
        await stream_requests.delete_stream(self._api, self.name)
