"""natsstream as a client of the interop tests."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from natsstream import ConsumerConfig, ServerError, StreamConfig
from tests.interop.clients.client import Ack, RefusedError, Stored, Taken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from natsstream import (
        Consumer,
        DeliveredMessage,
        Expect,
        JetStream,
        Message,
        PushMessages,
    )
    from tests.interop.clients.client import Config, Verdict

TIMEOUT_S = 30.0


class Ours:
    """natsstream's public names, and nothing below them."""

    def __init__(self, js: JetStream) -> None:
        self.js = js
        # One handle for each: it holds the pin of a pinned group.
        self._consumers: dict[tuple[str, str], Consumer] = {}

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: Mapping[str, Sequence[str]] | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl_s: int | None = None,
    ) -> Ack:
        """Publish and wait for the ack."""
        try:
            ack = await self.js.publish(
                subject, data, headers=headers, msg_id=msg_id, expect=expect, ttl=ttl_s
            )
        except ServerError as error:
            raise RefusedError(str(error), error.err_code) from error
        return Ack(ack.stream, ack.sequence, ack.duplicate)

    async def get(self, stream: str, sequence: int) -> Stored:
        """Return one message, from the stream's leader."""
        message = await (await self.js.streams.get(stream)).get(sequence)
        assert message is not None, f"{stream} has no message {sequence}"
        return _stored(message)

    async def read(self, stream: str, count: int, *, only: str | None = None) -> list[Stored]:
        """Read in bulk, to the end of the stream."""
        messages = (await self.js.streams.get(stream)).read(filters=[only] if only else ())
        found = [_stored(message) async for message in messages]
        assert len(found) == count
        return found

    async def create(self, config: Config) -> None:
        """Ensure a stream with these fields."""
        await self.js.streams.ensure(StreamConfig.from_json(config))

    async def update(self, stream: str, changes: Config) -> None:
        """Give the changed fields alone."""
        await self.js.streams.update(StreamConfig.from_json({"name": stream, **changes}))

    async def create_consumer(self, stream: str, config: Config) -> None:
        """Ensure a consumer with these fields."""
        consumers = (await self.js.streams.get(stream)).consumers
        await consumers.ensure(ConsumerConfig.from_json(config))

    async def update_consumer(self, stream: str, consumer: str, changes: Config) -> None:
        """Give the changed fields alone."""
        consumers = (await self.js.streams.get(stream)).consumers
        given = ConsumerConfig.from_json({**changes, "durable_name": consumer})
        await consumers.update(given)

    async def consumer_config(self, stream: str, consumer: str) -> Config:
        """Return what the server said."""
        found = await (await self.js.streams.get(stream)).consumers.get(consumer)
        return cast("Config", (await found.info()).raw["config"])

    async def work(self, stream: str, consumer: str, count: int) -> list[Stored]:
        """Fetch, and wait until the server has each ack."""
        found = await (await self.js.streams.get(stream)).consumers.get(consumer)
        messages = await found.fetch(count, timeout=TIMEOUT_S)
        for message in messages:
            await message.ack(confirm=True)
        return [_stored(message) for message in messages]

    async def consumer(self, stream: str, name: str) -> Consumer:
        """Return this client's one handle of a consumer."""
        if (stream, name) not in self._consumers:
            found = await (await self.js.streams.get(stream)).consumers.get(name)
            self._consumers[stream, name] = found
        return self._consumers[stream, name]

    async def settle(
        self,
        stream: str,
        consumer: str,
        verdict: Verdict,
        *,
        within_s: float = TIMEOUT_S,
        delay_s: float = 0,
        reason: str = "",
        group: str = "",
        min_pending: int = 0,
    ) -> Taken | None:
        """Take with `next` and settle; the server has read the verdict when this returns."""
        message = await (await self.consumer(stream, consumer)).next(
            timeout=within_s, group=group or None, min_pending=min_pending or None
        )
        if message is None:
            return None
        match verdict:
            case "ack":
                await message.ack()
            case "nak":
                await message.nak()
            case "delay":
                await message.nak(delay=delay_s)
            case "term":
                await message.term()
            case "reason":
                await message.term(reason=reason)
            case "progress":
                await message.in_progress()
            case "none":
                pass
        await self.js.core.rtt()
        return Taken(message.sequence, message.delivered)

    async def listen(self, stream: str, consumer: str) -> OurListening:
        """Read with `subscribe`."""
        listening = OurListening((await self.consumer(stream, consumer)).subscribe())
        await listening.open()
        await self.js.core.rtt()
        return listening

    async def count(self, subject: str, delta: int) -> Ack:
        """Add to a counter; its total is all that comes back."""
        total = await self.js.counters.incr(subject, delta)
        counter = await self.js.counters.get(subject)
        assert counter is not None
        assert counter.value == total
        stream = await self.js.streams.find(subject)
        return Ack(stream or "", counter.sequence)

    async def total(self, stream: str, subject: str) -> int:
        """Read the counter."""
        counter = await self.js.counters.get(subject)
        assert counter is not None, f"{stream} has no counter {subject}"
        return counter.value

    async def publish_batch(self, subject: str, payloads: Sequence[bytes]) -> Ack:
        """Publish an atomic batch."""
        name = await self.js.streams.find(subject)
        stream = await self.js.streams.get(name or "")
        async with stream.batch() as batch:
            for payload in payloads:
                await batch.add(subject, payload)
            ack = await batch.commit()
        return Ack(ack.stream, ack.sequence)

    async def config(self, stream: str) -> Config:
        """Return what the server said."""
        info = await (await self.js.streams.get(stream)).info()
        return cast("Config", info.raw["config"])


class OurListening:
    """A push consumer's messages, acked as they come."""

    def __init__(self, messages: PushMessages) -> None:
        self._messages = messages

    async def open(self) -> None:
        """Subscribe."""
        await self._messages.__aenter__()

    async def take(self, count: int, *, within_s: float = TIMEOUT_S) -> list[Stored]:
        """Return the next messages, fewer when no more come in time."""
        found: list[Stored] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while len(found) < count:
                    message = await anext(self._messages)
                    await message.ack()
                    found.append(_stored(message))
        return found

    async def close(self) -> None:
        """Unsubscribe."""
        await self._messages.__aexit__(None, None, None)


def _stored(message: Message | DeliveredMessage) -> Stored:
    headers = {name: list(message.headers.all(name)) for name in message.headers}
    return Stored(message.subject, message.sequence, headers, message.data)
