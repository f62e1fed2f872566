"""Direct reads of one stream: `stream.direct`.

Law: **a direct read may be stale.** Any replica answers, also one that lags behind the leader, so a
read may not see a message whose ack was returned before (4 of 400 on three replicas). Where a
decision depends on it, use `stream.get`, which asks the leader.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream._wire.requests import check_responders
from natsstream._wire.status import StatusCode
from natsstream._wire.subjects import is_same_request
from natsstream.api.control import likely_control
from natsstream.api.features import DIRECT_BATCH, GET_BY_TIME
from natsstream.api.message import Message, messages_below
from natsstream.api.message_query import EVERY_SUBJECT, described_query, message_query
from natsstream.api.names import SUBJECT_BYTES_MAX, check_filter
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import direct_get_subject, stream_info
from natsstream.arguments import check_bool, check_int, check_seconds, check_texts
from natsstream.errors import (
    ConfigError,
    IncompleteReadError,
    NatsStreamError,
    NoRespondersError,
    PayloadTooLargeError,
    ServerError,
    SubjectError,
)
from natsstream.events import PermissionDenied
from natsstream.foreign_names import answers_names
from natsstream.read.direct.answers import (
    DirectBatch,
    Run,
    read_status,
    read_stored,
    refusal,
)
from natsstream.read.direct.subjects_held import subjects_held
from natsstream.units import check_nanoseconds

# A batch of 20,000 holds the stream's lock and raises publishers' p50 from 0.05 ms to 28 ms; one
# of 1,000 to 4 ms.
BATCH_MAX = 1_000
BATCH_BYTES = 8 << 20
# The server answers for at most 1,024 subjects; a question must also fit into one message.
_SUBJECTS_MAX = 1_000
_NOBODY_RETRIES = 2


@answers_names("stream.direct")
class DirectReads:
    """Reads a stream through any of its replicas; made by `Stream.direct`."""

    def __init__(self, api: Api, cached: StreamInfo) -> None:
        self._api = api
        self._name = cached.name
        self._cached = cached
        self._is_allowed = bool(cached.config.allow_direct)

    async def get(
        self,
        sequence: int | None = None,
        *,
        last_by_subject: str | None = None,
        next_by_subject: str | None = None,
        start_time: datetime | int | None = None,
    ) -> Message | None:
        """Return one message, or None when the replica that answers has none there.

        It may be stale: see `stream.get`, which has the same arguments and asks the leader.

        Args:
            sequence: The message with this sequence; with `next_by_subject`, where to begin.
            last_by_subject: The newest message of this subject; wildcards are taken.
            next_by_subject: The first message of this subject at or after `sequence`.
            start_time: The first message at or after this moment (datetime with a time zone, or
                Unix nanoseconds); with `next_by_subject`, of that subject.

        Raises:
            ConfigError: The arguments name no message, or two; `start_time` is of Unix seconds; or
                the stream has no `allow_direct`.
            SubjectError: A subject is not legal; nothing was sent.
            UnsupportedServerError: `start_time` was given, and the server is older than 2.11.
            NoRespondersError: No replica answers now.
            TransportError: No answer in time.

        Cost: one round trip to the nearest replica.
        Source: ADR-31; nats.go jetstream/stream.go GetMsg with AllowDirect.
        """
        check_nanoseconds(start_time, "start_time")
        body = message_query(
            sequence,
            last_by_subject=last_by_subject,
            next_by_subject=next_by_subject,
            start_time=start_time,
        )
        await self._require_allowed()
        if start_time is not None:
            await self._api.require(GET_BY_TIME)
        message = await self._ask_one(body)
        if message is None and last_by_subject == ">":
            # For ">" servers look at their last sequence alone, which may be deleted.
            found = [await self._ask_one({"last_by_subj": each}) for each in EVERY_SUBJECT]
            message = max(filter(None, found), key=lambda each: each.sequence, default=None)
        return message

    async def _ask_one(self, body: dict[str, object]) -> Message | None:
        what = f"direct read of {described_query(body, self._name)}"
        client = self._api.client
        subject, question = self._question(body)
        try:
            frame = await client.request(
                subject,
                question,
                timeout=client.options.request_timeout,
                retries=_NOBODY_RETRIES,
                repeats=True,
                what=what,
            )
        except NoRespondersError as error:
            raise _no_responders(self._name, what) from error
        status = read_status(frame)
        if status is None:
            return read_stored(frame, what).message
        if status.code == StatusCode.NOT_FOUND:
            return None
        raise refusal(status, what)

    def _question(self, body: Mapping[str, object]) -> tuple[str, bytes]:
        """Return subject and body of a question for one message.

        The last message of one subject is asked for in the request's own subject, as nats.go,
        nats.js and the CLI do: users may be allowed some of a stream's subjects only.
        """
        last = body.get("last_by_subj")
        if isinstance(last, str) and not {"*", ">"}.intersection(last.split(".")):
            subject = direct_get_subject(self._api, self._name, last)
            if len(subject.encode("utf-8", "surrogatepass")) <= SUBJECT_BYTES_MAX:
                return subject, b""
        subject = direct_get_subject(self._api, self._name)
        return subject, _question_bytes(body, self._api.client.max_payload_bytes)

    async def batch(
        self,
        count: int,
        *,
        first_seq: int | None = None,
        subject: str | None = None,
        start_time: datetime | int | None = None,
        max_bytes: int = BATCH_BYTES,
        timeout: float | None = None,
    ) -> DirectBatch:
        """Return up to `count` messages in the order of their sequences, in one answer.

        For small reads; `stream.read` reads much more, faster, and with less harm to publishers.
        It may be stale. The next batch begins at `last_seq + 1`.

        Args:
            count: Messages at most, 1 to 1,000.
            first_seq: The sequence to begin at; None is the first of the stream.
            subject: Only messages of this subject; wildcards are taken.
            start_time: Begin at the first message at or after this moment, instead of `first_seq`.
            max_bytes: Bytes after which the answer ends; the message that goes beyond still comes.
            timeout: Seconds to wait for all of it; None is `request_timeout`.

        Returns:
            The messages, and how many more there are; none where the replica has none there.

        Raises:
            ConfigError: An argument has no legal value, or the stream has no `allow_direct`.
            SubjectError: The subject is not legal; nothing was sent.
            UnsupportedServerError: The server is older than 2.11.
            IncompleteReadError: The answer broke off; ask again.
            NoRespondersError: No replica answers now.
            TransportError: No connection.

        Cost: one round trip; the server holds the stream's lock for the whole of it, about 4 us a
        message.
        Source: ADR-31.
        """
        check_int(count, "count", minimum=1, maximum=BATCH_MAX)
        if first_seq is not None and start_time is not None:
            raise ConfigError("batch takes first_seq or start_time, not both")
        check_nanoseconds(start_time, "start_time")
        start = message_query(
            first_seq or (1 if start_time is None else None),
            next_by_subject=subject,
            start_time=start_time,
        )
        check_int(max_bytes, "max_bytes", minimum=1)
        await self._require_allowed()
        await self._api.require(DIRECT_BATCH)
        return await self._ask({**start, "batch": count, "max_bytes": max_bytes}, timeout)

    async def latest(
        self,
        filters: Sequence[str] = (">",),
        *,
        last_seq: int | None = None,
        control: bool = False,
        timeout: float | None = None,
    ) -> DirectBatch:
        """Return the newest message of every subject, all as of one moment of the stream.

        It may be stale as a whole, but never mixed: pages of a large answer are asked for as of
        the same sequence. More than 1,024 subjects are looked up first, and asked for by name.

        Args:
            filters: Subjects; wildcards are taken.
            last_seq: As of this sequence, inclusive; None is the last one of the replica that
                answers.
            control: Also return the control records of producers.
            timeout: Seconds to wait for each page; None is `request_timeout`.

        Returns:
            The messages in the order of their sequences; `up_to_seq` says as of when.

        Raises:
            ConfigError: An argument has no legal value, or the stream has no `allow_direct`.
            SubjectError: A filter is not legal; nothing was sent.
            UnsupportedServerError: The server is older than 2.11.
            IncompleteReadError: A page broke off, or messages of this moment were removed before
                their page was read; ask again.
            NoRespondersError: No replica answers now.
            TransportError: No connection.

        Cost: one round trip for each 8 MiB or 1,000 subjects, and for more than 1,024 subjects one
        for each 100,000 to list them; all of the answer is kept in memory.
        Source: ADR-31 multi_last.
        """
        wanted = [
            check_filter(each) for each in check_texts(filters, "filters", error=SubjectError)
        ]
        if not wanted:
            raise ConfigError("filters is empty", hint="give subjects, or leave it out for all")
        if last_seq is not None:
            check_int(last_seq, "last_seq", minimum=1)
        check_bool(control, "control")
        await self._require_allowed()
        await self._api.require(DIRECT_BATCH)
        try:
            found = await self._latest_of(wanted, last_seq, timeout)
        except ServerError as error:
            if error.code != StatusCode.TOO_MANY_RESULTS:
                raise
            found = await self._latest_of_many(wanted, last_seq, timeout)
        return found if control else self._data_of(found, wanted)

    def _data_of(self, found: DirectBatch, filters: Sequence[str]) -> DirectBatch:
        """Return an answer without control records."""
        control = likely_control(self._cached.config, self._cached.created_ns)
        if control is None or not control.is_hidden(filters):
            return found
        records = set(messages_below(found.messages, control.start))
        shown = tuple(message for message in found.messages if message not in records)
        return replace(found, messages=shown)

    async def _latest_of(
        self, wanted: Sequence[str], as_of: int | None, timeout: float | None
    ) -> DirectBatch:
        """Read one set of subjects that the server answers at once, page by page."""
        body: dict[str, object] = {"multi_last": list(wanted), "max_bytes": BATCH_BYTES}
        found: list[Message] = []
        pending = 0
        while True:
            if as_of is not None:
                body["up_to_seq"] = as_of
            page = await self._ask(body, timeout)
            if pending and len(page) + page.num_pending != pending:
                raise IncompleteReadError(
                    f"direct read of stream {self._name}: messages were removed while their pages "
                    "were read",
                    last_seq=found[-1].sequence,
                    hint="ask again; fewer subjects at once make it less likely",
                )
            found += page.messages
            as_of = as_of or page.up_to_seq
            pending = page.num_pending
            if not pending:
                last = found[-1].sequence if found else 0
                return DirectBatch(tuple(found), 0, last, as_of or 0)
            body["seq"] = page.last_seq + 1

    async def _latest_of_many(
        self, wanted: Sequence[str], as_of: int | None, timeout: float | None
    ) -> DirectBatch:
        """Read more subjects than the server answers at once: by name, as of one sequence."""
        is_now = as_of is None
        names, newest = await subjects_held(self._api, self._name, wanted)
        as_of = as_of or newest
        found: list[Message] = []
        for start in range(0, len(names), _SUBJECTS_MAX):
            page = await self._latest_of(names[start : start + _SUBJECTS_MAX], as_of, timeout)
            if is_now and len(page) < len(names[start : start + _SUBJECTS_MAX]):
                raise IncompleteReadError(
                    f"direct read of stream {self._name}: subjects were written or removed while "
                    f"their newest messages as of {as_of} were read",
                    last_seq=found[-1].sequence if found else 0,
                    hint="ask again, or follow the stream: stream.ordered(deliver_policy="
                    '"last_per_subject")',
                )
            found += page.messages
        found.sort(key=lambda message: message.sequence)
        return DirectBatch(tuple(found), 0, found[-1].sequence if found else 0, as_of)

    async def _ask(self, body: dict[str, object], timeout: float | None) -> DirectBatch:
        client = self._api.client
        wait_s = client.options.request_timeout if timeout is None else timeout
        _question_bytes(body, client.max_payload_bytes)
        return await _ask_batch(
            self._api,
            self._name,
            body,
            what=f"direct read of stream {self._name}",
            timeout=check_seconds(wait_s, "timeout"),
        )

    async def _require_allowed(self) -> None:
        """Refuse a stream that answers no direct reads; nobody would say why."""
        if self._is_allowed:
            return
        info = await stream_info(self._api, self._name)
        self._is_allowed = bool(info.config.allow_direct)
        if not self._is_allowed:
            raise ConfigError(
                f"stream {self._name} answers no direct reads: it has no allow_direct",
                hint=f"js.streams.update({self._name!r}, allow_direct=True); or stream.get(...), "
                "which asks the leader",
            )

    def __repr__(self) -> str:
        return f"<DirectReads {self._name}>"


def _question_bytes(body: Mapping[str, object], size_max: int) -> bytes:
    """Return the JSON of a question.

    Raises:
        PayloadTooLargeError: It names more subjects than fit into one message.
    """
    question = json.dumps(body).encode()
    if len(question) > size_max:
        raise PayloadTooLargeError(
            f"the question has {len(question)} bytes, the server takes {size_max}",
            hint="name fewer subjects, or use wildcards",
        )
    return question


async def _ask_batch(
    api: Api, stream: str, body: Mapping[str, object], *, what: str, timeout: float
) -> DirectBatch:
    """Return the messages that one question is answered with.

    Raises:
        IncompleteReadError: The answer broke off.
        NoRespondersError: No replica answers: the stream has no `allow_direct`, or is away.
        ServerError: The server refuses the question.
        TransportError: No connection.
    """
    client = api.client
    frames: deque[Frame] = deque()
    failures: list[NatsStreamError] = []
    wake = asyncio.Event()

    def on_frames(some: list[Frame]) -> None:
        frames.extend(some)
        wake.set()

    def on_failure(error: NatsStreamError) -> None:
        failures.append(error)
        wake.set()

    def on_connection() -> None:
        on_failure(run.broken("the connection broke"))

    run = Run(what)
    await client.wait_connected(timeout, what=what)
    inbox = client.new_inbox()
    subject = direct_get_subject(api, stream)

    def on_denied(event: PermissionDenied) -> None:
        if event.operation == "publish" and is_same_request(subject, event.subject):
            on_failure(denied_error(event))

    unwatch_denied = client.watch_denied(on_denied)
    unwatch = client.watch(on_connection)
    subscription = await client.subscribe(inbox, on_frames, on_denied=on_failure)
    try:
        question = json.dumps(body).encode()
        client.write(client.publish_command(subject, inbox, b"", question))
        async with asyncio.timeout(timeout):
            while True:
                while frames:
                    frame = frames.popleft()
                    check_responders(frame, subject)
                    batch = run.add(frame)
                    if batch is not None:
                        return batch
                if failures:
                    raise failures[0]
                wake.clear()
                await wake.wait()
    except TimeoutError:
        raise run.broken(f"it did not end within {timeout:g} s") from None
    except NoRespondersError as error:
        raise _no_responders(stream, what) from error
    finally:
        unwatch()
        unwatch_denied()
        subscription.close()


def _no_responders(stream: str, what: str) -> NoRespondersError:
    """Return the error for a stream whose replicas do not answer direct reads."""
    return NoRespondersError(
        f"{what}: no replica of stream {stream} answers direct reads",
        hint="does the stream exist, and have allow_direct? "
        f"js.streams.update({stream!r}, allow_direct=True), or read it through its leader",
        retryable=True,
    )
