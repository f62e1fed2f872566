"""One stream: its info, its messages, publishing into it and reading from it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, cast

from natsstream._wire import api as subjects
from natsstream._wire.headers import HeaderValues
from natsstream.errors import ConfigError, MessageNotFoundError, ProtocolError
from natsstream.streams.api import Api
from natsstream.streams.features import GET_BY_TIME
from natsstream.streams.info import StreamInfo
from natsstream.streams.message import Message
from natsstream.streams.names import check_filter
from natsstream.streams.publishing.outgoing import (
    Expect,
    Payload,
    Ttl,
    message_headers,
    needed_features,
)
from natsstream.streams.publishing.pub_ack import PubAck
from natsstream.streams.publishing.publish import RETRY_ATTEMPTS, RETRY_WAIT_S, publish
from natsstream.streams.reading.ordered import OrderedConsumer
from natsstream.streams.reading.ranges import StreamRange
from natsstream.streams.reading.reader import RangeSpec
from natsstream.streams.reading.starts import DeliverPolicy, OrderedSpec
from natsstream.units import format_rfc3339, parse_rfc3339, time_to_ns


class Stream:
    """A stream of the server; made by `js.streams`.

    Attributes:
        name: Its name.
        cached: Its info when it was opened; `info()` asks for a fresh one.
    """

    def __init__(self, api: Api, cached: StreamInfo) -> None:
        self._api = api
        self.cached: StreamInfo = cached
        self.name: str = cached.name

    async def info(self) -> StreamInfo:
        """Return the stream's configuration and state now.

        Raises:
            StreamNotFoundError: It was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader.
        """
        answer = await self._api.read(
            subjects.stream_info(self.name), None, what=f"stream {self.name}"
        )
        return StreamInfo.from_json(answer)

    async def publish(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        timeout: float | None = None,
        retry_attempts: int = RETRY_ATTEMPTS,
        retry_wait: float = RETRY_WAIT_S,
    ) -> PubAck:
        """Publish one message into this stream and wait for its ack.

        The server refuses it when another stream captures the subject. The arguments are those of
        `JetStream.publish`.

        Raises:
            ConfigError: The stream has `no_ack`; nothing was sent.
            WrongStreamError: Another stream captures the subject.
            NatsStreamError: What `JetStream.publish` raises.
        """
        if self.cached.config.no_ack:
            raise ConfigError(
                f"stream {self.name} has no_ack: it would not say what it stored",
                hint="js.streams.update(name, no_ack=False)",
            )
        expect = expect or Expect()
        expect = replace(expect, stream=expect.stream or self.name)
        block = message_headers(headers, msg_id, expect, ttl)
        await self._api.require(*needed_features(expect, ttl))
        return await publish(
            self._api,
            subject,
            data,
            headers=block,
            timeout=timeout,
            retry_attempts=retry_attempts,
            retry_wait=retry_wait,
        )

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
            last_by_subject: The newest message of this subject; wildcards are taken.
            next_by_subject: The first message of this subject at or after `sequence`.
            start_time: The first message at or after this moment (datetime with a time zone, or
                Unix nanoseconds); with `next_by_subject`, of that subject.

        Raises:
            ConfigError: The arguments name no message, or two.
            UnsupportedServerError: `start_time` was given, and the server is older than 2.11.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader, so it sees every acknowledged write.
        Source: nats.go jetstream/stream.go GetMsg; `start_time` needs a server of 2.11.
        """
        body = _which(sequence, last_by_subject, next_by_subject, start_time)
        if start_time is not None:
            # Servers before 2.11 would answer with the first message of all.
            await self._api.require(GET_BY_TIME)
        subject = subjects.message_get(self.name)
        try:
            answer = await self._api.read(subject, body, what=f"message of stream {self.name}")
        except MessageNotFoundError:
            return None
        return _stored(answer)

    def read(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        filters: Sequence[str] = (),
        start_time: datetime | int | None = None,
        end_time: datetime | int | None = None,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        eviction_is_loss: bool = False,
    ) -> StreamRange:
        """Describe a bounded read: iterate the result for messages, or ask it for columns.

        Args:
            first: First sequence, inclusive; None is the first that the stream holds.
            last: Last sequence, inclusive; None is the last when the read begins.
            filters: Subjects to read, chosen on the server; they must not overlap.
            start_time: Leaves out what was stored before this moment.
            end_time: Leaves out what was stored at or after this moment.
            created_ns: The stream's identity, from `StreamInfo`: refuse another stream of this
                name.
            on_loss: "raise" ends the read at the first lost message; "report" reads on and counts.
            eviction_is_loss: Also count it as loss when the stream's limits or a purge have
                removed the beginning of the range.

        Returns:
            A range; nothing is sent before it is iterated.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: A time has no time zone.

        Cost: one ephemeral consumer; memory of at most 16 MiB of messages on their way, and up to
        48 MiB where the server takes messages of 24 MiB.
        """
        if isinstance(filters, str):
            raise ConfigError("filters is one string", hint=f"give a list: filters=[{filters!r}]")
        return StreamRange(
            self._api,
            RangeSpec(
                stream=self.name,
                first=first,
                last=last,
                filters=tuple(check_filter(subject) for subject in filters),
                start_time_ns=None if start_time is None else time_to_ns(start_time),
                end_time_ns=None if end_time is None else time_to_ns(end_time),
                created_ns=created_ns,
                on_loss=on_loss,
                eviction_is_loss=eviction_is_loss,
            ),
        )

    def ordered(
        self,
        *,
        filters: Sequence[str] = (),
        first: int | None = None,
        start_time: datetime | int | None = None,
        deliver_policy: DeliverPolicy = "all",
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
    ) -> OrderedConsumer:
        """Describe a read without an end: what is stored, then what comes, once and in order.

        Use it as `async with stream.ordered() as tail: async for message in tail`. It goes on by
        itself after a lost connection, a restart of the server, a change of leaders and a deleted
        consumer, however slow the reader is.

        Args:
            filters: Subjects to read, chosen on the server; they must not overlap.
            first: First sequence, inclusive. One that the stream has not come to is waited for.
            start_time: Leaves out what was stored before this moment (datetime with a time zone,
                or Unix nanoseconds).
            deliver_policy: Where to begin when neither is given. "all": with the first that the
                stream holds. "new": with what is stored from now on. "last": with the last one
                of the filters. "last_per_subject": with the last one of each subject; every
                message stored after the block was entered still comes.
            headers_only: Leave out the payloads; their size stands in the header `Nats-Msg-Size`.
            created_ns: The stream's identity, from `StreamInfo`: refuse another stream of this
                name.
            on_loss: "raise" ends at the first lost message; "report" goes on and counts. Without
                filters only: a filter hides what is missing, and so does "last_per_subject".

        Returns:
            A consumer; nothing is sent before its block is entered.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: Two starts are given, or a value can not work.

        Cost: one ephemeral consumer; memory of at most 16 MiB of messages on their way, and up to
        48 MiB where the server takes messages of 24 MiB.
        Source: ADR-17; nats.go jetstream/ordered.go.
        """
        spec = OrderedSpec(
            stream=self.name,
            filters=filters,
            first=first,
            start_time_ns=None if start_time is None else time_to_ns(start_time),
            deliver_policy=deliver_policy,
            headers_only=headers_only,
            created_ns=created_ns,
            on_loss=on_loss,
        )
        return OrderedConsumer(self._api, spec)

    def __repr__(self) -> str:
        return f"<Stream {self.name}>"


def _which(
    sequence: int | None,
    last_by_subject: str | None,
    next_by_subject: str | None,
    start_time: datetime | int | None,
) -> dict[str, object]:
    """Return the body of a request for one message."""
    if sequence is not None and sequence < 1:
        raise ConfigError(f"sequences begin at 1, got {sequence}")
    if last_by_subject is not None:
        if sequence is not None or next_by_subject is not None or start_time is not None:
            raise ConfigError("last_by_subject goes with nothing else")
        return {"last_by_subj": check_filter(last_by_subject)}
    if sequence is None and start_time is None and next_by_subject is None:
        raise ConfigError(
            "get names no message",
            hint="give a sequence, last_by_subject, next_by_subject or start_time",
        )
    if sequence is not None and start_time is not None:
        raise ConfigError("get takes sequence or start_time, not both")
    if start_time is not None:
        moment = format_rfc3339(time_to_ns(start_time))
        return {"start_time": moment, "next_by_subj": check_filter(next_by_subject or ">")}
    if next_by_subject is not None:
        return {"seq": sequence or 1, "next_by_subj": check_filter(next_by_subject)}
    return {"seq": sequence}


def _stored(answer: dict[str, object]) -> Message:
    """Return the message in an answer, whose bytes are base64."""
    try:
        message = cast("dict[str, str]", answer["message"])
        header = base64.b64decode(message.get("hdrs", ""))
        data = base64.b64decode(message.get("data", ""))
        subject = message["subject"].encode("utf-8", "surrogateescape")
        numbers = (cast("int", message["seq"]), parse_rfc3339(message["time"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError("the answer is no stored message", detail=repr(error)) from error
    return Message((subject, b"", header, data), numbers)
