"""Integration tests of verdicts on delivered messages."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.delivery.ack_kinds import Reject, Retry
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    ConsumerDeletedError,
    MessageSettledError,
    RequestTimeoutError,
    UsageError,
)
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.pulling import is_settled, nothing_comes, worker_of
from tests.support.standstill import prove

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.consume.delivery.delivered import DeliveredMessage

pytestmark = pytest.mark.asyncio


async def test_message_tells_where_it_is_from(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 3)
    message = await worker.next()

    assert message is not None
    meta = message.meta
    assert (meta.stream, meta.consumer) == (stream_name, "work")
    assert (meta.delivered, meta.stream_seq, meta.consumer_seq, meta.pending) == (1, 1, 1, 2)
    assert (message.sequence, message.delivered, message.time_ns) == (1, 1, meta.time_ns)
    assert meta.time == message.time


@pytest.mark.proves("1c", "ack / double ack")
async def test_acked_message_does_not_come_again(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 2, ack_wait=0.3)
    first, second = await worker.fetch(2)
    await first.ack()
    await second.ack(confirm=True)

    assert await is_settled(worker)
    assert await nothing_comes(worker, within_s=0.5)


async def test_acks_of_one_turn_leave_in_few_writes(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await worker_of(js, stream_name, 50)
    messages = await worker.fetch(50)
    client, writes = js._client, list[bytes]()  # pyright: ignore[reportPrivateUsage]
    write = client.write

    def noted(data: bytes) -> bool:
        writes.append(data)
        return write(data)

    monkeypatch.setattr(client, "write", noted)
    tasks = len(asyncio.all_tasks())
    for message in messages:
        await message.ack()
    assert len(asyncio.all_tasks()) == tasks

    assert await eventually_async(lambda: is_settled(worker))
    assert len([data for data in writes if b"+ACK" in data]) == 1


@pytest.mark.sampled_variants
@pytest.mark.parametrize("first", ["ack", "nak", "term"])
@pytest.mark.parametrize("second", ["ack", "nak", "term", "in_progress", "ack_next", "confirm"])
async def test_second_verdict_is_refused(
    js: JetStream, stream_name: str, first: str, second: str
) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    await getattr(message, first)()

    with pytest.raises(MessageSettledError, match="already"):
        await (message.ack(confirm=True) if second == "confirm" else getattr(message, second)())


@pytest.mark.proves("1c", "nak / nak(delay) / in_progress")
async def test_message_given_back_comes_again_after_its_delay(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 2)
    first, second = await worker.fetch(2)
    await first.nak()
    await second.nak(delay=0.2, confirm=True)

    again = await worker.fetch(2, timeout=30)
    assert [(each.sequence, each.delivered) for each in again] == [(1, 2), (2, 2)]


@pytest.mark.proves("1c", "term / term(reason)")
@pytest.mark.finding(32)
async def test_terminated_message_does_not_come_again_and_its_reason_is_told(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 1, ack_wait=0.3)
    advisory = f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{stream_name}.work"
    async with js.core.subscribe(advisory) as told:
        message = await worker.next()
        assert message is not None
        await message.term(reason="no such order")
        event = await anext(told)

    assert json.loads(event.data)["reason"] == "no such order"
    assert await nothing_comes(worker, within_s=0.5)


@pytest.mark.parametrize("reason", ["a\r\nPUB x 0\r\n", "a\nb", "x" * 1_025, 7, b"bytes"])
async def test_reason_that_would_break_the_line_is_refused(
    js: JetStream, stream_name: str, reason: str
) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    with pytest.raises(ConfigError):
        await message.term(reason=reason)
    with pytest.raises(ConfigError):
        await message.nak(delay=-1)

    assert not message.is_settled
    await message.ack(confirm=True)


@pytest.mark.proves("1c", "nak / nak(delay) / in_progress")
async def test_message_in_progress_is_not_given_to_others(js: JetStream, stream_name: str) -> None:
    async def hold(lease_s: float) -> None:
        worker = await worker_of(js, f"{stream_name}_{lease_s:.0f}", 1, ack_wait=lease_s)
        message = await worker.next()
        assert message is not None
        for _ in range(4):
            await message.in_progress()
            assert await worker.next(timeout=lease_s / 2) is None
        await message.ack(confirm=True)
        assert message.is_settled

    await prove(js, hold)


async def test_block_acks_what_it_has_handled(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    async with message.processing(confirm=True) as same:
        assert same is message

    assert await is_settled(worker)


async def test_block_keeps_its_message_alive(js: JetStream, stream_name: str) -> None:
    """Two blocks last three leases; one timer serves both."""

    async def keep(lease_s: float) -> None:
        worker = await worker_of(js, f"{stream_name}_{lease_s:.0f}", 2, ack_wait=lease_s)
        first, second = await worker.fetch(2)
        async with first.processing(), second.processing():
            assert await worker.next(timeout=3 * lease_s) is None

        assert await eventually_async(lambda: is_settled(worker))
        assert first.delivered == 1

    await prove(js, keep)


async def test_block_without_keepalive_loses_its_message(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 1, ack_wait=0.3)
    message = await worker.next()
    assert message is not None
    again: DeliveredMessage | None = None
    async with message.processing(keepalive=False):
        again = await worker.next(timeout=30)

    assert again is not None
    assert again.delivered == 2


@pytest.mark.parametrize(
    ("error", "delivered", "is_told"),
    [
        (LookupError("x"), 2, False),
        (asyncio.CancelledError(), 2, False),
        (Retry("later", delay=0), 2, True),
        (Reject("bad\r\nline"), None, True),
    ],
)
async def test_block_settles_by_its_exception(
    js: JetStream, stream_name: str, error: BaseException, delivered: int | None, *, is_told: bool
) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    raised: BaseException | None = None
    try:
        async with message.processing(backoff=[0.1]):
            raise error
    except BaseException as told:  # noqa: BLE001 - looked at below.
        raised = told
    assert raised is (None if is_told else error)
    if delivered is None:
        assert await nothing_comes(worker, within_s=0.3)
        return
    again = await worker.next(timeout=30)
    assert again is not None
    assert again.delivered == delivered


async def test_a_backoff_that_is_none_is_refused_before_the_block(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    wrong: Any = 5
    with pytest.raises(ConfigError, match="backoff is 5"):
        message.processing(backoff=wrong)
    assert not message.is_settled


async def test_block_leaves_a_settled_message_alone(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    async with message.processing():
        await message.term()

    assert await nothing_comes(worker, within_s=0.2)


@pytest.mark.proves("1c", "ack+next (+NXT)")
async def test_ack_and_next_is_one_round_trip(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 5)
    message = await worker.next()
    found: list[int] = []
    while message is not None:
        found.append(message.sequence)
        # Only the last one waits until its time is over.
        message = await message.ack_next(timeout=30 if len(found) < 5 else 0.3)

    assert found == [1, 2, 3, 4, 5]
    assert await is_settled(worker)


@pytest.mark.proves("1c", "ack+next (+NXT)")
async def test_cancelled_ack_and_next_loses_nothing(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await message.ack_next(timeout=10)
    assert message.is_settled
    await js.publish(f"{stream_name}.0", b"x")

    found = await worker.next(timeout=30)
    assert found is not None
    assert found.sequence == 2


@pytest.mark.proves("1c", "ack / double ack")
async def test_confirming_on_a_deleted_consumer_is_told(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    await (await js.streams.get(stream_name)).consumers.delete("work")

    with pytest.raises(ConsumerDeletedError):
        await message.ack(confirm=True)
    assert not message.is_settled


async def test_ack_that_is_not_confirmed_tells_the_seconds_of_the_call_alone() -> None:
    with NatsServer() as server:
        async with connect(server.url) as js:
            worker = await worker_of(js, "S", 1)
            message = await worker.next()
            assert message is not None
            server.pause()
            try:
                with pytest.raises(RequestTimeoutError, match=r"within 0\.6 s") as raised:
                    await message.ack(confirm=True, timeout=0.6)
            finally:
                server.resume()
            # Each attempt has a part of them.
            assert str(raised.value).count("within") == 1
            await message.ack(confirm=True)


@pytest.mark.parametrize("timeout", [0, -1, "1"])
async def test_timeout_of_a_confirmation_is_checked(
    js: JetStream, stream_name: str, timeout: Any
) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None

    with pytest.raises(ConfigError, match=r"^timeout "):
        await message.ack(confirm=True, timeout=timeout)

    assert not message.is_settled
    await message.ack(confirm=True, timeout=30)


async def test_nothing_confirms_an_ack_without_ack_policy(js: JetStream, stream_name: str) -> None:
    worker = await worker_of(js, stream_name, 2, ack_policy="none")
    message: DeliveredMessage | None = await worker.next()
    assert message is not None
    with pytest.raises(UsageError, match="ack policy none"):
        await message.ack(confirm=True)
    with pytest.raises(UsageError, match="ack policy none"):
        await message.ack_next()
    await message.ack()


async def test_verdict_after_the_connection_is_closed_is_refused(
    js: JetStream, stream_name: str
) -> None:
    worker = await worker_of(js, stream_name, 1)
    message = await worker.next()
    assert message is not None
    await js.close()

    with pytest.raises(ConnectionClosedError):
        await message.ack()
    assert not message.is_settled


async def test_verdicts_reach_a_server_with_the_second_form_of_ack_subjects() -> None:
    with NatsServer(config="feature_flags { js_ack_fc_v2: true }") as server:
        async with connect(server.url) as js:
            worker = await worker_of(js, "S", 4)
            async with worker.consume(stop_after=2) as messages:
                async for message in messages:
                    assert message.reply.count(b".") >= 10
                    assert message.meta.stream_seq == message.sequence
                    await message.ack(confirm=True)
            third = await worker.next()
            assert third is not None
            assert (third.meta.stream, third.meta.consumer, third.delivered) == ("S", "work", 1)
            fourth = await third.ack_next()
            assert fourth is not None
            await fourth.term(reason="x", confirm=True)
            assert await is_settled(worker)


@pytest.mark.parametrize("way", ["rollup", "purge"])
async def test_what_was_given_back_comes_at_once_beside_purges_that_no_filter_covers(
    js: JetStream, stream_name: str, way: str
) -> None:
    """As the guide advises: a consumer that covers them redelivers only after its `ack_wait`."""
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_rollup_hdrs=True
    )
    data = f"{stream_name}.data.>"
    consumer = await stream.consumers.create("c", ack_wait=600, filters=[data])
    for _ in range(8):
        await js.publish(f"{stream_name}.data.x", b"")
    for message in await consumer.fetch(8):
        await message.nak()
    for _ in range(2):
        await js.publish(f"{stream_name}.state", b"", rollup="subject" if way == "rollup" else None)
    if way == "purge":
        await stream.purge(subject=f"{stream_name}.state")
    assert len(await consumer.fetch(8, timeout=30)) == 8


async def test_confirm_is_a_bool(js: JetStream, stream_name: str) -> None:
    message = await (await worker_of(js, stream_name, 1)).next()
    assert message is not None
    wrong: Any = "yes"
    for settle in (message.ack, message.nak, message.term):
        with pytest.raises(ConfigError, match="confirm"):
            await settle(confirm=wrong)
    await message.ack()


async def test_a_flush_is_behind_the_acks_of_its_turn(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await worker_of(js, stream_name, 1)
    (message,) = await worker.fetch(1)
    client, order = js._client, list[str]()  # pyright: ignore[reportPrivateUsage]
    write, flush = client.write, client.flush

    def written(commands: bytes) -> bool:
        order.append("acks" if b"+ACK" in commands else "others")
        return write(commands)

    async def flushed(timeout: float, *, what: str = "") -> None:
        order.append("flush")
        await flush(timeout, what=what)

    monkeypatch.setattr(client, "write", written)
    monkeypatch.setattr(client, "flush", flushed)
    await message.ack()
    await js.core.flush()
    assert order == ["acks", "flush"]
