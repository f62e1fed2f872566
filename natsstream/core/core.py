"""Plain NATS over the same connection: publish, subscribe, request; no stream is involved."""

from __future__ import annotations

import asyncio
import time
from typing import Literal
from weakref import WeakSet

from natsstream._wire.client import Client
from natsstream._wire.encode import subscribe_start
from natsstream._wire.headers import HeaderValues, encode_headers
from natsstream._wire.parser import Frame
from natsstream.api.names import check_filter, check_subject
from natsstream.arguments import (
    check_bytes,
    check_choice,
    check_int,
    check_seconds,
    check_text,
    counted,
)
from natsstream.core.bounded_queue import BoundedQueue
from natsstream.core.message import CoreMessage, send
from natsstream.core.subject_reader import SubjectReader
from natsstream.core.subscription import MAX_PENDING, MAX_PENDING_BYTES, CoreSubscription
from natsstream.errors import ConfigError, SlowReaderError
from natsstream.foreign_names import answers_names


# Not `publish`: an answer would cost it more than it takes.
@answers_names("js.core", calls=("request", "subscribe"))
class Core:
    """Plain NATS; `js.core`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # The connection holds those that are open.
        self._readers: WeakSet[SubjectReader[CoreMessage]] = WeakSet()

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        reply: str = "",
    ) -> None:
        """Send a message to whoever listens now; nobody says whether somebody does.

        While the connection is lost, messages wait for the next server. If it is closed before,
        they are lost, and a WARNING has their number.

        Raises:
            SubjectError: A subject cannot be published to; nothing was sent.
            HeaderError: A header would break the wire; nothing was sent.
            ConfigError: The payload is no bytes; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            ConnectionLostError: There is no connection and 8 MiB wait for one already.

        Cost: no round trip; waits only while the socket has no room.
        """
        await send(self._client, subject, data, headers=headers, reply=reply)

    async def request(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> CoreMessage:
        """Send a request and return the first answer.

        Args:
            subject: Where to.
            data: The payload.
            headers: Header values by name; a list sends the header more than once.
            timeout: Seconds to wait; None is `request_timeout`.

        Raises:
            NoRespondersError: The subject has no responders.
            RequestTimeoutError: No answer in time.
            PermissionDeniedError: The user may not publish there.
            SubjectError: The subject cannot be published to; nothing was sent.
            ConfigError: An argument is of the wrong type; nothing was sent.
        """
        client = self._client
        block = encode_headers(headers) if headers else b""
        frame = await client.request(
            check_subject(subject),
            check_bytes(data, "data"),
            headers=block,
            timeout=self._seconds(timeout),
        )
        return CoreMessage(client, frame)

    def subscribe(
        self,
        subject: str,
        *,
        queue: str | None = None,
        max_pending: int = MAX_PENDING,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        on_slow: Literal["raise", "drop"] = "raise",
    ) -> CoreSubscription:
        """Describe a subscription; `async with` opens it, `async for` reads it.

        Args:
            subject: The subject; wildcards are legal.
            queue: Queue group: each message goes to one member of it; None is no group.
            max_pending: Messages that may wait to be read.
            max_pending_bytes: Bytes that they may have; one message may be larger.
            on_slow: Messages beyond that are dropped: "raise" raises an error once those before are
                read, "drop" only counts them.

        Raises:
            SubjectError: The subject is not legal.
            ConfigError: A limit is below 1, or the queue's name is too long or not legal.
        """
        group = "" if queue is None else check_text(queue, "queue")
        check_choice(on_slow, "on_slow", ("raise", "drop"))
        is_plain = group.isprintable() and not any(char.isspace() for char in group)
        if queue == "" or not is_plain:
            raise ConfigError(
                f"{queue!r} is not a legal queue group",
                hint="give a name without blanks, or leave queue out for no group",
            )
        for name, value in (("max_pending", max_pending), ("max_pending_bytes", max_pending_bytes)):
            check_int(value, name, minimum=1)
        subscribe_start(check_filter(subject), group)  # Here rather than when it is opened.
        waiting = BoundedQueue[Frame | int](max_count=max_pending, max_bytes=max_pending_bytes)

        def slow(dropped: int) -> SlowReaderError:
            return SlowReaderError(
                f"{counted(dropped, 'message')} on {subject} came while {max_pending} messages or "
                f"{max_pending_bytes} bytes waited to be read, and were dropped",
                dropped=waiting.dropped,
                hint="read faster, raise max_pending, use a queue group or a stream; "
                'on_slow="drop" only counts them',
            )

        reader = SubjectReader(
            self._client,
            [subject],
            waiting,
            lambda frame: CoreMessage(self._client, frame),
            slow=slow if on_slow == "raise" else None,
            what=f"the subscription to {subject}",
            example="async with js.core.subscribe(...) as messages: async for message in messages",
            group=group,
        )
        self._readers.add(reader)
        return CoreSubscription(subject, waiting, reader)

    async def drain(self) -> None:
        """End all subscriptions, but not what has arrived, which their readers still get.

        Raises:
            TransportError: The server did not confirm in time; the subscriptions are ended still.
        """
        # All at once: a frozen server costs one timeout, and a failure leaves none behind.
        draining = [each.drain() for each in tuple(self._readers)]
        for failure in await asyncio.gather(*draining, return_exceptions=True):
            if failure is not None:
                raise failure

    async def flush(self, *, timeout: float | None = None) -> None:
        """Wait until the server has taken all that was published, also acks and batches.

        Raises:
            RequestTimeoutError: It did not within `timeout` seconds; None is `request_timeout`.
            ConnectionLostError: The connection broke, or there is none.
        """
        seconds = self._seconds(timeout)
        await asyncio.sleep(0)  # Acks and batches are written at the end of a turn of the loop.
        await self._client.flush(seconds, what="flush")

    async def rtt(self, *, timeout: float | None = None) -> float:
        """Return the seconds that a ping takes to the server and back.

        Raises:
            RequestTimeoutError: No answer within `timeout` seconds; None is `request_timeout`.
            ConnectionLostError: The connection broke, or there is none.
        """
        began = time.perf_counter()
        await self.flush(timeout=timeout)
        return time.perf_counter() - began

    def _seconds(self, timeout: float | None) -> float:
        """Return the seconds to wait."""
        if timeout is None:
            return self._client.options.request_timeout
        return check_seconds(timeout, "timeout", may_be_zero=True)

    def __repr__(self) -> str:
        return f"<Core {self._client.url}>"
