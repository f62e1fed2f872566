"""nats-py 2.16 as a client of streams and consumers.

It keeps one value of each header and leaves the types of its context open. Fields of a
configuration that it does not know get lost on the way; the tests name them.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from nats.errors import TimeoutError as NoAnswerError
from nats.js.api import ConsumerConfig, Header, StreamConfig
from nats.js.errors import APIError

from tests.interop.clients.client import Ack, RefusedError, Stored, Taken

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from natsstream import Expect
    from tests.interop.clients.client import Config, Verdict

TIMEOUT_S = 30.0


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what the server refuses into the harness's error."""
    try:
        yield
    except APIError as error:
        raise RefusedError(str(error), error.err_code or 0) from error


class PyStreams:
    """nats-py's JetStream context."""

    def __init__(self, js: Any) -> None:
        self._js = js
        self._pulls: dict[tuple[str, str], Any] = {}

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
        """Publish with headers of one value each."""
        values = {name: values[0] for name, values in (headers or {}).items()}
        assert all(len(each) == 1 for each in (headers or {}).values())
        values |= {Header.MSG_ID.value: msg_id} if msg_id is not None else {}
        values |= _expectations(expect)
        with _refusals():
            ack = await self._js.publish(subject, data, headers=values or None, msg_ttl=ttl_s)
        return Ack(ack.stream, ack.seq, bool(ack.duplicate))

    async def get(self, stream: str, sequence: int) -> Stored:
        """Return one message with `get_msg`."""
        found = await self._js.get_msg(stream, sequence)
        return Stored(found.subject, found.seq, _listed(found.headers), found.data or b"")

    async def read(self, stream: str, count: int, *, only: str | None = None) -> list[Stored]:
        """Read with its ordered consumer, a push subscription."""
        subscription = await self._js.subscribe(only or ">", stream=stream, ordered_consumer=True)
        try:
            return [_stored(await subscription.next_msg(TIMEOUT_S)) for _ in range(count)]
        finally:
            await subscription.unsubscribe()

    async def create(self, config: Config) -> None:
        """Create with `add_stream`."""
        with _refusals():
            await self._js.add_stream(StreamConfig.from_response(deepcopy(config)))

    async def update(self, stream: str, changes: Config) -> None:
        """Change what `stream_info` returns and send it back with `update_stream`."""
        config = (await self._js.stream_info(stream)).config
        with _refusals():
            await self._js.update_stream(config.evolve(**changes))

    async def config(self, stream: str) -> Config:
        """Return the configuration as it would go back."""
        return cast("Config", (await self._js.stream_info(stream)).config.as_dict())

    async def create_consumer(self, stream: str, config: Config) -> None:
        """Create with `add_consumer`."""
        with _refusals():
            await self._js.add_consumer(stream, ConsumerConfig.from_response(deepcopy(config)))

    async def update_consumer(self, stream: str, consumer: str, changes: Config) -> None:
        """Change what `consumer_info` returns and send it back with `add_consumer`."""
        config = (await self._js.consumer_info(stream, consumer)).config
        with _refusals():
            await self._js.add_consumer(stream, config.evolve(**changes))

    async def consumer_config(self, stream: str, consumer: str) -> Config:
        """Return the configuration as it would go back."""
        return cast("Config", (await self._js.consumer_info(stream, consumer)).config.as_dict())

    async def _pull(self, stream: str, consumer: str) -> Any:
        # A consumer's one subscription: what an earlier one had pulled could come there.
        if (stream, consumer) not in self._pulls:
            self._pulls[stream, consumer] = await self._js.pull_subscribe_bind(
                consumer, stream=stream
            )
        return self._pulls[stream, consumer]

    async def work(self, stream: str, consumer: str, count: int) -> list[Stored]:
        """Fetch, and wait until the server has each ack."""
        messages = await (await self._pull(stream, consumer)).fetch(count, TIMEOUT_S)
        for message in messages:
            await message.ack_sync(TIMEOUT_S)
        return [_stored(message) for message in messages]

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
        """Fetch one message and settle it; nats-py knows no priority groups."""
        assert (group, min_pending) == ("", 0)
        try:
            [message] = await (await self._pull(stream, consumer)).fetch(1, within_s)
        except NoAnswerError:
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
        await message._client.flush(TIMEOUT_S)
        return Taken(message.metadata.sequence.stream, message.metadata.num_delivered)

    async def listen(self, stream: str, consumer: str) -> PyListening:
        """Read with `subscribe_bind`."""
        config = (await self._js.consumer_info(stream, consumer)).config
        subscription = await self._js.subscribe_bind(
            stream, config, consumer=consumer, manual_ack=True
        )
        await self._js._nc.flush(TIMEOUT_S)
        return PyListening(subscription)

    async def count(self, subject: str, delta: int) -> Ack:
        """Add with a header."""
        return await self.publish(subject, headers={"Nats-Incr": [f"{delta:+d}"]})

    async def total(self, stream: str, subject: str) -> int:
        """Tell that there is none: the nats CLI and nats.js read counters in the tests."""
        raise NotImplementedError

    async def publish_batch(self, subject: str, payloads: Sequence[bytes]) -> Ack:
        """Tell that there is none in nats-py 2.16."""
        raise NotImplementedError


class PyListening:
    """A push subscription, whose messages are acked as they come."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription

    async def take(self, count: int, *, within_s: float = TIMEOUT_S) -> list[Stored]:
        """Return the next messages, fewer when one does not come in time."""
        found: list[Stored] = []
        while len(found) < count:
            try:
                message = await self._subscription.next_msg(within_s)
            except NoAnswerError:
                break
            await message.ack()
            found.append(_stored(message))
        return found

    async def close(self) -> None:
        """Unsubscribe."""
        await self._subscription.unsubscribe()


def _listed(headers: Mapping[str, object] | None) -> dict[str, list[str]]:
    return {name: [str(value)] for name, value in (headers or {}).items()}


def _stored(message: Any) -> Stored:
    sequence = message.metadata.sequence.stream
    return Stored(message.subject, sequence, _listed(message.headers), message.data)


def _expectations(expect: Expect | None) -> dict[str, str]:
    if expect is None:
        return {}
    values = {
        Header.EXPECTED_STREAM: expect.stream,
        Header.EXPECTED_LAST_SEQUENCE: expect.last_seq,
        Header.EXPECTED_LAST_SUBJECT_SEQUENCE: expect.last_subject_seq,
        Header.EXPECTED_LAST_MSG_ID: expect.last_msg_id,
    }
    return {name.value: str(value) for name, value in values.items() if value is not None}
