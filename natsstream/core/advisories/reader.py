"""A reader of advisories: `async with js.advisories() as events: async for event in events`.

Law: advisories are plain NATS, which delivers at most once. Advisories
dropped by a slow reader are counted and raised. A disconnect may lose others, and gives an event of
its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from natsstream._wire.parser import Frame
from natsstream.advisories import AdvisoriesInterrupted, Advisory, parse_advisory
from natsstream.api.requests import Api
from natsstream.core.advisories.wanted import AdvisoryFilter
from natsstream.core.bounded_queue import BoundedQueue
from natsstream.core.subject_reader import SubjectReader
from natsstream.errors import SlowReaderError


class Advisories:
    """Advisories from now on; made by `JetStream.advisories`."""

    def __init__(self, api: Api, wanted: AdvisoryFilter) -> None:
        self._wanted = wanted
        self._waiting = BoundedQueue[Frame | int](max_count=wanted.max_pending)
        self._reader = SubjectReader[Advisory](
            api.client,
            wanted.subjects(),
            self._waiting,
            self._read,
            interrupted=lambda time_ns: AdvisoriesInterrupted(time_ns=time_ns),
            slow=self._slow,
            what="the reader of advisories",
            example="async with js.advisories() as events: async for event in events",
        )

    @property
    def pending_count(self) -> int:
        """Events that have come and are not read yet."""
        return len(self._waiting)

    @property
    def dropped(self) -> int:
        """Events dropped so far because the reader was too slow."""
        return self._waiting.dropped

    async def open(self) -> Self:
        """Listen; `close` ends it. When it returns, the server knows of it.

        Raises:
            PermissionDeniedError: The user may not listen there.
            TransportError: The server did not confirm in time.
        """
        await self._reader.open()
        return self

    async def close(self) -> None:
        """Listen no more and drop what is not read; closing twice is fine."""
        self._reader.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        self._reader.close()

    def __aiter__(self) -> AsyncIterator[Advisory]:
        return self

    async def __anext__(self) -> Advisory:
        return await self._reader.next()

    async def next(self, timeout: float) -> Advisory | None:
        """Return the next event, None when none came within `timeout` seconds.

        None comes at once, and once, when the reader has ended and everything is read.

        Raises:
            ConfigError: The timeout is no number of seconds.
            UsageError: The reader is not open, or a call before has told its end.
            SlowReaderError: Events were dropped before this one.
            ConnectionClosedError: The connection was closed.
        """
        return await self._reader.next_within(timeout)

    def _read(self, frame: Frame) -> Advisory | None:
        """Return the advisory in a frame; None for one of another domain."""
        subject = frame[0].decode("utf-8", "surrogateescape")
        advisory = parse_advisory(subject, frame[3], self._wanted.prefix)
        is_wanted = self._wanted.domain is None or advisory.domain in ("", self._wanted.domain)
        return advisory if is_wanted else None

    def _slow(self, _: int) -> SlowReaderError:
        return SlowReaderError(
            f"{self.dropped} advisories were dropped: more than {self._wanted.max_pending} waited "
            "to be read",
            dropped=self.dropped,
            hint="read faster, raise max_pending or choose kinds; or capture the subjects in a "
            "stream, which loses nothing",
        )

    def __repr__(self) -> str:
        return f"<Advisories {self.pending_count} waiting, {self.dropped} dropped>"
