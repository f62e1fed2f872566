"""Letters that can not be stored: none is counted, each is told, and its message comes again."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from natsstream import NatsStreamError, Reject, connect
from natsstream.consume.dead_letters.captured import FOUND_GONE, OWN_TERM
from natsstream.consume.dead_letters.envelope import FailureRecord
from natsstream.consume.dead_letters.storing import store_letter
from natsstream.errors import (
    ConfigError,
    MessageTooLargeError,
    NoRespondersError,
    PayloadTooLargeError,
    PermissionDeniedError,
    StreamFullError,
    StreamNotFoundError,
    StreamSealedError,
)
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.work import api_of, letters_of, make_work, pending_of, settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import Consumer, DeliveredMessage, JetStream, Worker
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

_LARGE = b"x" * 5_000


async def reject(message: DeliveredMessage) -> None:
    """Handle nothing."""
    raise Reject(f"no {message.sequence}")


class Told:
    """What a worker tells of its messages, by the kind of the error."""

    def __init__(self) -> None:
        self.kinds: Counter[type[BaseException]] = Counter()
        self.sequences: Counter[int] = Counter()

    def __call__(self, error: BaseException, message: DeliveredMessage) -> None:
        if isinstance(error, NatsStreamError):
            self.kinds[type(error)] += 1
            self.sequences[message.sequence] += 1


async def work_of(js: JetStream, name: str, count: int, data: bytes = _LARGE) -> Consumer:
    """Return the consumer `c` of a work queue with large messages."""
    consumer = await make_work(js, name, 0, retention="workqueue", ack_wait=5)
    for _ in range(count):
        await js.publish(f"{name}.x", data)
    return consumer


async def test_full_queue_keeps_its_letters_and_counts_no_other(
    js: JetStream, stream_name: str
) -> None:
    """60 messages of 5 KB, and room for some of them."""
    count = 60
    consumer = await work_of(js, stream_name, count)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", max_bytes=100_000)
    told = Told()
    async with consumer.worker(reject, dead_letter=queue.name, on_error=told) as worker:

        async def all_tried() -> bool:
            stored = worker.report.dead_lettered
            return stored > 0 and len(told.sequences) + stored == count

        await eventually_async(all_tried)
        await worker.stop()
        letters = {letter.sequence for letter in await letters_of(queue)}
        assert len(letters) == worker.report.dead_lettered < count

    assert set(told.kinds) == {StreamFullError}
    assert worker.report.unstored == told.kinds.total()
    assert letters.isdisjoint(told.sequences)
    info = await (await js.streams.get(stream_name)).info()
    assert info.state.messages == count - len(letters)

    # What has no letter is not lost: there is room, and it comes again.
    await js.streams.update(queue.name, max_bytes=-1)
    async with consumer.worker(reject, dead_letter=queue.name, backoff=[0.01]) as worker:
        await settled(consumer)
    assert {letter.sequence for letter in await letters_of(queue)} == set(range(1, count + 1))
    assert worker.report.dead_lettered == count - len(letters)


Spoil: TypeAlias = "Callable[[JetStream, str], Awaitable[object]]"


async def fill(js: JetStream, queue: str) -> None:
    await js.publish(f"$DLQ.{queue}.note", b"")
    await js.streams.update(queue, max_msgs=1)


async def make_small(js: JetStream, queue: str) -> None:
    await js.streams.update(queue, max_bytes=3_000)


async def take_small_messages(js: JetStream, queue: str) -> None:
    await js.streams.update(queue, max_msg_size=len(_LARGE))


async def take_all(js: JetStream, queue: str) -> None:
    await js.streams.update(queue, max_msgs=-1, max_bytes=-1, max_msg_size=-1)


async def seal(js: JetStream, queue: str) -> None:
    await js.streams.update(queue, sealed=True)


async def delete(js: JetStream, queue: str) -> None:
    await js.streams.delete(queue)


async def make_again(js: JetStream, queue: str) -> None:
    with suppress(StreamNotFoundError):
        await js.streams.delete(queue)
    await js.dead_letters.ensure(queue)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("spoil", "mend", "kind"),
    [
        (fill, take_all, StreamFullError),
        (make_small, take_all, StreamFullError),
        (take_small_messages, take_all, MessageTooLargeError),
        (seal, make_again, StreamSealedError),
        (delete, make_again, NoRespondersError),
    ],
)
async def test_letter_that_is_not_stored_is_told_and_its_message_stays(
    server: NatsNode, stream_name: str, spoil: Spoil, mend: Spoil, kind: type[NatsStreamError]
) -> None:
    queue, told = f"{stream_name}_DLQ", Told()
    async with connect(server.url, request_timeout=1) as js:
        consumer = await work_of(js, stream_name, 0)
        async with consumer.worker(
            reject, dead_letter=queue, on_error=told, backoff=[0.01]
        ) as worker:
            await spoil(js, queue)
            await js.publish(f"{stream_name}.x", _LARGE)
            await stays(consumer, worker, told, kind)
            await mend(js, queue)
            await settled(consumer)
        assert worker.report.dead_lettered == 1
        assert len(await letters_of(await js.dead_letters.open(queue))) == 1


async def stays(
    consumer: Consumer, worker: Worker, told: Told, kind: type[NatsStreamError]
) -> None:
    """Wait until it was told that a letter is not stored; the message is with its consumer."""

    async def is_told() -> bool:
        return told.kinds[kind] > 0

    await eventually_async(is_told)
    report = worker.report
    assert (report.dead_lettered, report.letters_found, report.terminated) == (0, 0, 0)
    assert report.unstored > 0
    assert sum(await pending_of(consumer)) == 1


async def test_letter_larger_than_max_payload_is_told_and_its_message_stays() -> None:
    """The message fits as it was published, and not with the envelope's headers."""
    told = Told()
    with NatsServer(max_payload_bytes=5_100) as server:
        async with connect(server.url) as js:
            consumer = await work_of(js, "W", 1)
            async with consumer.worker(reject, dead_letter="D", on_error=told) as worker:
                await stays(consumer, worker, told, PayloadTooLargeError)


_DENIES = """
authorization { users: [
    { user: all, password: p }
    { user: mute, password: p, permissions: { publish: { deny: ["$DLQ.>"] } } }
    { user: small, password: p, permissions: { publish: { deny: ["$JS.API.STREAM.UPDATE.>"] } } }
    { user: blind, password: p, permissions: { publish: { deny: ["$JS.API.STREAM.INFO.W"] } } }
] }
"""


async def test_letter_that_the_user_may_not_store_is_told_and_its_message_stays() -> None:
    told = Told()
    with NatsServer(config=_DENIES) as server:
        async with connect(server.url, user="mute", password="p") as js:  # noqa: S106 - Of a test.
            consumer = await work_of(js, "W", 1)
            async with consumer.worker(reject, dead_letter="D", on_error=told) as worker:
                await stays(consumer, worker, told, PermissionDeniedError)


async def test_queue_is_listed_and_watches_streams_that_the_user_may_not_see() -> None:
    with NatsServer(config=_DENIES) as server:
        async with connect(server.url, user="all", password="p") as js:  # noqa: S106 - Of a test.
            await work_of(js, "W", 1)
            await js.dead_letters.ensure("D")
        async with connect(server.url, user="blind", password="p") as js:  # noqa: S106 - Of a test.
            queue = await js.dead_letters.ensure("D", stream="W")
            told = {"stream": "W", "consumer": "c", "stream_seq": 9, "reason": FOUND_GONE}
            subject = "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.W.c"
            await js.core.publish(subject, json.dumps(told).encode())

            async def counted() -> bool:
                return await queue.count() == 1

            await eventually_async(counted)


# Streams that were made before, or by hand.


async def test_queue_that_drops_its_oldest_is_changed_and_that_is_logged(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = f"{stream_name}_DLQ"
    await js.streams.create(queue, subjects=[f"$DLQ.{queue}.>"], max_bytes=50_000)
    await js.dead_letters.ensure(queue)
    config = (await (await js.dead_letters.open(queue)).info()).config
    assert (config.discard, config.max_bytes) == ("new", 50_000)
    assert f"{queue} dropped its oldest letters" in caplog.text


async def test_worker_that_may_not_change_such_a_queue_does_not_begin() -> None:
    with NatsServer(config=_DENIES) as server:
        async with connect(server.url, user="all", password="p") as js:  # noqa: S106 - Of a test.
            await work_of(js, "W", 1)
            for name, limit in (("SMALL", 1_000_000), ("ENDLESS", None)):
                await js.streams.create(
                    name,
                    subjects=[f"$DLQ.{name}.>"],
                    max_bytes=limit,
                )
        async with connect(server.url, user="small", password="p") as js:  # noqa: S106 - Of a test.
            consumer = await (await js.streams.get("W")).consumers.get("c")
            with pytest.raises(PermissionDeniedError, match="oldest") as caught:
                async with consumer.worker(reject, dead_letter="SMALL"):
                    pass
            assert "SMALL" in caught.value.hint
            async with consumer.worker(reject, dead_letter="ENDLESS"):
                await settled(consumer)


@pytest.mark.parametrize(
    "wrong", [{"no_ack": True}, {"max_msgs_per_subject": 1}, {"retention": "workqueue"}]
)
async def test_stream_that_can_not_keep_letters_is_refused(
    js: JetStream, stream_name: str, wrong: dict[str, Any]
) -> None:
    queue = f"{stream_name}_DLQ"
    await js.streams.create(queue, subjects=[f"$DLQ.{queue}.>"], **wrong)
    with pytest.raises(ConfigError, match=queue):
        await js.dead_letters.ensure(queue)


# A letter that is there.


async def test_letter_that_is_there_is_found_in_a_full_queue(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its message came again, because the verdict was lost; it needs no room."""
    consumer = await work_of(js, stream_name, 1)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ")
    message = await consumer.next(timeout=30)
    assert message is not None
    meta = message.meta
    failure = FailureRecord(
        subject=message.subject,
        time_ns=meta.time_ns,
        stream=meta.stream,
        consumer=meta.consumer,
        sequence=meta.stream_seq,
        deliveries=1,
        reason="rejected",
    )
    assert await store_letter(api_of(js), queue.name, failure, b"", message.data, timeout=5)
    await message.nak()
    await js.streams.update(queue.name, max_msgs=1)
    async with consumer.worker(reject, dead_letter=queue.name) as worker:
        await settled(consumer)
    assert (worker.report.dead_lettered, worker.report.letters_found) == (0, 1)
    assert f"is a dead letter in {queue.name}: its letter was there already" in caplog.text
    assert len(await letters_of(queue)) == 1


async def test_words_of_dropped_letters_do_not_fill_the_queue(
    js: JetStream, stream_name: str
) -> None:
    """The server tells of a termination after its letter was stored, and perhaps dropped."""
    consumer = await work_of(js, stream_name, 1)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    message = await consumer.next(timeout=30)
    assert message is not None
    await message.term(reason=f"{OWN_TERM}{queue.name}: no", confirm=True)

    async def count() -> int:
        return (await queue.info()).state.messages

    await eventually_async(count)
    assert await queue.drop_all() == 0
    assert await count() == 0
