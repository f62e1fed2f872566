"""A consumer by the blocking door: single messages, lists, loops and handlers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from natsstream.errors import ConfigError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from natsstream.blocking import Consumer, DeliveredMessage, JetStream

WAIT_S = 40.0


@pytest.fixture
def consumer(js: JetStream, stream_name: str) -> Consumer:
    """A consumer with twenty messages before it, whose data are their numbers from 1."""
    stream = js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    for number in range(1, 21):
        js.publish(stream_name, b"%d" % number)
    return stream.consumers.create("billing", ack_wait=60)


def test_message_is_acked_without_await(consumer: Consumer) -> None:
    message = consumer.next(timeout=WAIT_S)
    assert message is not None
    message.ack(confirm=True)

    assert isinstance(message, blocking.DeliveredMessage)
    assert message.data == b"1"
    eventually(lambda: consumer.info().ack_floor.stream_seq == 1)


def test_fetched_messages_are_a_list_of_twins_that_says_how_it_ended(consumer: Consumer) -> None:
    found = consumer.fetch(5, timeout=WAIT_S)
    rest = consumer.fetch(100, no_wait=True)

    assert isinstance(found, blocking.FetchedMessages)
    assert [message.data for message in found] == [b"1", b"2", b"3", b"4", b"5"]
    assert (found.complete, len(rest), rest.complete) == (True, 15, False)
    for message in (*found, *rest):
        message.ack(confirm=True)
    eventually(lambda: consumer.info().num_ack_pending == 0)


def test_loop_over_what_comes_can_be_left(consumer: Consumer) -> None:
    taken: list[bytes] = []
    with consumer.consume(max_messages=5) as messages:
        for message in messages:
            message.ack()
            taken.append(message.data)
            if len(taken) == 7:
                break

    assert taken == [b"%d" % number for number in range(1, 8)]


def test_handlers_are_plain_functions_that_may_block(js: JetStream, consumer: Consumer) -> None:
    together = threading.Barrier(4)
    handled: list[int] = []

    def handle(message: DeliveredMessage) -> None:
        together.wait(WAIT_S)
        js.core.flush()  # Another call of the same connection.
        handled.append(message.sequence)

    with consumer.worker(handle, concurrency=4):
        eventually(lambda: len(handled) == 20, within_s=WAIT_S)

    assert sorted(handled) == list(range(1, 21))
    # The server handles acks beside the requests that follow them.
    eventually(lambda: consumer.info().num_ack_pending == 0)


def test_handler_that_stops_its_worker_is_not_waited_for(consumer: Consumer) -> None:
    is_open = threading.Event()

    def handle(message: DeliveredMessage) -> None:
        is_open.wait(WAIT_S)
        if message.sequence == 2:
            worker.stop()

    with consumer.worker(handle, concurrency=1, stop_timeout=120) as worker:
        is_open.set()
        waiting = threading.Thread(target=worker.wait, daemon=True)
        waiting.start()
        waiting.join(WAIT_S)
        assert not waiting.is_alive()

    assert worker.report.acked == 2


def test_failing_handler_is_told_with_its_message(consumer: Consumer) -> None:
    told: list[tuple[str, int, int]] = []

    def handle(message: DeliveredMessage) -> None:
        raise ZeroDivisionError(message.data.decode())

    def tell(error: BaseException, message: DeliveredMessage) -> None:
        told.append((str(error), message.sequence, message.meta.delivered))
        message.term(confirm=True)

    with consumer.worker(handle, on_error=tell, backoff=[60], concurrency=1):
        eventually(lambda: len(told) >= 3, within_s=WAIT_S)

    assert told[:3] == [("1", 1, 1), ("2", 2, 1), ("3", 3, 1)]


def test_async_handler_is_refused_before_the_first_message(consumer: Consumer) -> None:
    async def handle(message: object) -> None: ...

    with pytest.raises(ConfigError, match="is an async function"):
        consumer.run(handle)

    assert consumer.info().delivered.consumer_seq == 0
