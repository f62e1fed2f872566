"""The schedules of a stream: finds, lists and cancels them.

Law: `cancel` removes only the schedule that it has read. Other messages stay, and so does a newer
schedule on the subject.

Source: ADR-51.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from natsstream._wire.headers import HeaderName, Headers, HeaderValues
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import get_message, purge
from natsstream.api.unmatched import warn_unmatched
from natsstream.arguments import check_text
from natsstream.errors import ConfigError, ScheduleError, SubjectError
from natsstream.iteration import Flattened
from natsstream.publish.outgoing import (
    Expect,
    Payload,
    check_publish_subject,
    copied_headers,
    prepare,
)
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import publish
from natsstream.publish.schedule import Schedule, Ttl, read_schedule
from natsstream.read.ordered import OrderedConsumer
from natsstream.read.start_position import OrderedSpec
from natsstream.streams.subject_counts import each_subject
from natsstream.units import time_from_ns

_CANCEL_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class ScheduledMessage:
    """A schedule that a stream holds.

    Attributes:
        subject: The subject of the schedule itself.
        schedule: When it fires, and its target; other clients may have written it.
        data: The payload of the message that it publishes.
        headers: All headers of the schedule message.
        sequence: Its sequence in the stream.
        time_ns: When it was stored, in Unix nanoseconds.
    """

    subject: str
    schedule: Schedule
    data: bytes
    headers: Headers
    sequence: int
    time_ns: int

    def __repr__(self) -> str:
        what = f"{self.schedule.pattern!r} to {self.schedule.target!r}"
        return f"<ScheduledMessage {self.sequence} {self.subject!r} {what}, {len(self.data)} bytes>"

    @property
    def time(self) -> datetime:
        """When it was stored, in UTC, cut to microseconds."""
        return time_from_ns(self.time_ns)


class StreamSchedules:
    """The schedules of one stream: `stream.schedules`."""

    def __init__(self, api: Api, cached: StreamInfo) -> None:
        self._api = api
        self._cached = cached

    async def get(self, subject: str) -> ScheduledMessage | None:
        """Return the schedule on a subject; None if its last message is not a schedule.

        Raises:
            SubjectError: The subject cannot be published to; nothing was sent.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader.
        """
        check_publish_subject(subject)
        held = await self._last(subject)
        return None if held is None else _scheduled(held)

    def list(self, filters: Sequence[str] = ()) -> AsyncGenerator[ScheduledMessage]:
        """Yield the stream's schedules, in the order in which they were stored.

        Args:
            filters: Subject filters, such as `["schedules.>"]`. If schedules have their own
                subjects, a filter spares reading the messages that they publish.

        Raises:
            SubjectError: A filter is illegal; nothing was sent.
            ConfigError: Two filters overlap; nothing was sent.
            NatsStreamError: As for `Stream.ordered`.

        Cost: a read of the last message of each matching subject; in a work queue one round trip
        for each of them, as by `Stream.get`. A schedule that is replaced during the read may be
        missing, and any one in a work queue of more than 100,000 subjects.
        """
        # Only the last message of a subject counts: a plain one cancels the schedule before it.
        spec = OrderedSpec(
            stream=self._cached.name, filters=filters, deliver_policy="last_per_subject"
        )
        return Flattened(self._newest(spec), _all_scheduled)

    async def _newest(self, spec: OrderedSpec) -> AsyncGenerator[Sequence[Message]]:
        if self._cached.config.retention == "workqueue":  # Its consumers are the only readers.
            what = f"list of schedules of stream {self._cached.name}"
            await warn_unmatched(self._api, self._cached, spec.filters, what)
            yield await self._singly(spec.filters or (">",))
            return
        async with OrderedConsumer(self._api, spec) as tail:
            async for messages in tail.batches(until_caught_up=True):
                yield messages

    async def _singly(self, filters: Sequence[str]) -> Sequence[Message]:
        """Return the schedules, in the order of their sequences."""
        found: dict[int, Message] = {}  # A subject may come twice where others vanish.
        for each in filters:
            async for count in each_subject(self._api, self._cached.name, each):
                message = await self._last(count.subject)
                if message is not None and _scheduled(message) is not None:
                    found[message.sequence] = message
        return [found[sequence] for sequence in sorted(found)]

    async def cancel(self, subject: str) -> bool:
        """Cancel the schedule on a subject; it fires no more.

        Returns:
            True if the schedule was cancelled. False if there is none: a schedule for one moment is
            gone when it has fired.

        Raises:
            ScheduleError: The subject's last message is not a schedule, and stays. Or the schedule
                was replaced at every attempt, and a newer one is still there.
            NotPermittedError: The stream allows no purge.
            TransportError: The server did not answer in time; the schedule may be cancelled.

        Cost: two round trips.
        """
        check_publish_subject(subject)
        stream = self._cached.name
        for _ in range(_CANCEL_ATTEMPTS):
            message = await self._last(subject)
            if message is None:
                return False
            if _scheduled(message) is None:
                raise ScheduleError(
                    f"the last message of {subject} in stream {stream} is not a schedule",
                    hint="list them: stream.schedules.list()",
                )
            if await purge(self._api, stream, subject=subject, last_seq=message.sequence):
                return True
            # It fired or was replaced between the two requests.
        raise ScheduleError(
            f"schedule {subject} of stream {stream} was replaced at each of {_CANCEL_ATTEMPTS} "
            "attempts to cancel it",
            hint="another client keeps publishing it: stop that client first",
            retryable=True,
        )

    async def cancel_by_publish(
        self,
        scheduled: str,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish a message that cancels a schedule; the server does both or neither.

        A newer schedule on the subject is cancelled too. Without a schedule the message is stored
        anyway. To publish only if the schedule has not fired yet, expect its sequence:
        `Expect(last_subject_seq=held.sequence, subject=scheduled)`.

        `scheduled` is the schedule's subject; `subject` must be another. The other arguments are
        those of `JetStream.publish`.

        Raises:
            ScheduleError: The last message of `scheduled` is not a schedule.
            UnsupportedServerError: The server is older than 2.14; nothing was sent.
            NatsStreamError: As for `JetStream.publish`.

        Cost: one round trip.
        """
        check_publish_subject(check_text(scheduled, "scheduled", error=SubjectError))
        if scheduled == subject:
            raise ConfigError(
                f"the message that cancels schedule {scheduled!r} has the same subject",
                hint="give another; a plain message on the schedule's subject cancels it too",
            )
        merged = {} if headers is None else copied_headers(headers)
        merged[HeaderName.SCHEDULE_NEXT.value] = "purge"
        merged[HeaderName.SCHEDULER.value] = scheduled
        return await publish(
            self._api,
            prepare(subject, data, merged, msg_id, expect, ttl, None, None),
            stream=self._cached,
            timeout=timeout,
        )

    async def _last(self, subject: str) -> Message | None:
        return await get_message(self._api, self._cached.name, last_by_subject=subject)

    def __repr__(self) -> str:
        return f"<StreamSchedules of {self._cached.name}>"


def _all_scheduled(messages: Iterable[Message]) -> Iterator[ScheduledMessage]:
    return (found for each in messages if (found := _scheduled(each)) is not None)


def _scheduled(message: Message) -> ScheduledMessage | None:
    schedule = read_schedule(message.headers)
    if schedule is None:
        return None
    return ScheduledMessage(
        message.subject,
        schedule,
        message.data,
        message.headers,
        message.sequence,
        message.time_ns,
    )
