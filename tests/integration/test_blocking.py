"""The blocking door against a real server: what `with` and `for` promise beside the async classes.

Interrupts are real ones (SIGINT to this process); exits and forks happen in programs of their own.
"""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import natsstream
from natsstream import blocking
from natsstream.blocking.portal import Portal
from natsstream.blocking.twins import cross
from natsstream.errors import (
    ConnectError,
    ConnectionClosedError,
    NoRespondersError,
    StreamNotFoundError,
    UsageError,
)
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator

    from natsstream.testing import NatsServer

RUN_TIMEOUT_S = 20.0
# More than a read has under way at once (16 MiB), so that a paused server leaves it waiting.
LARGE_MESSAGES, LARGE_BYTES = 3_000, 16 << 10

EXIT_IN_A_READ = """
import sys
from natsstream import blocking
js = blocking.connect(sys.argv[1]).open()
messages = iter(js.streams.get(sys.argv[2]).read())
print(next(messages).sequence, flush=True)
"""

FORK = """
import os, sys, warnings
from natsstream import blocking
from natsstream.errors import UsageError

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later: of fork with threads.
url, name = sys.argv[1:]
with blocking.connect(url) as js:
    stream = js.streams.get(name)
    messages = iter(stream.read())
    next(messages)
    child = os.fork()
    if child == 0:
        for use in (stream.info, stream.read, lambda: list(messages)):
            try:
                use()
            except UsageError as error:
                print(error, flush=True)
        js.close()
        with blocking.connect(url) as own:
            print("own", own.streams.get(name).info().state.messages, flush=True)
        sys.exit(0)
    print("child", os.waitpid(child, 0)[1], flush=True)
    print("parent", stream.info().state.messages, len(list(messages)), flush=True)
"""


@pytest.fixture
def js(server: NatsServer) -> Iterator[blocking.JetStream]:
    with blocking.connect(server.url) as context:
        yield context


@pytest.fixture
def stream(js: blocking.JetStream, stream_name: str) -> blocking.Stream:
    """A stream of 2,000 messages: their data is their number, from 1."""
    made = js.streams.ensure(stream_name, subjects=[stream_name], storage="memory")
    with js.publisher() as publisher:
        for number in range(1, 2_001):
            publisher.send(stream_name, str(number).encode())
    return made


@pytest.fixture
def portal(server: NatsServer) -> Iterator[Portal]:
    opened = Portal(natsstream.connect(server.url))
    opened.open()
    yield opened
    opened.stop()


# Reading.


def test_for_gives_every_message_in_order(stream: blocking.Stream) -> None:
    read = [(message.sequence, message.data) for message in stream.read()]

    assert read == [(number, str(number).encode()) for number in range(1, 2_001)]


def test_each_loop_over_a_range_is_a_read_of_its_own(stream: blocking.Stream) -> None:
    some = stream.read(first=11, last=20)

    assert [message.sequence for message in some] == [*range(11, 21)]
    assert [message.sequence for message in some] == [*range(11, 21)]
    assert some.report.messages == 10


def test_batches_and_tables_have_every_row(stream: blocking.Stream) -> None:
    batches = list(stream.read().batches(columns=["sequence", "time"], time_unit="us"))
    table = stream.read(last=3).to_arrow(["data"])

    assert sum(batch.num_rows for batch in batches) == 2_000
    assert batches[0].schema.names == ["sequence", "time"]
    assert table.to_pylist() == [{"data": b"1"}, {"data": b"2"}, {"data": b"3"}]


def test_leaving_a_loop_early_deletes_the_consumer(stream: blocking.Stream) -> None:
    for message in stream.read():
        if message.sequence == 3:
            break

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_an_iterator_that_is_dropped_deletes_the_consumer(stream: blocking.Stream) -> None:
    messages = iter(stream.read())
    next(messages)

    del messages

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_error_in_a_loop_deletes_the_consumer(stream: blocking.Stream) -> None:
    def fail() -> None:
        for message in stream.read():
            _ = 1 // (message.sequence - 3)

    with pytest.raises(ZeroDivisionError):
        fail()

    eventually(lambda: stream.info().state.consumer_count == 0)


def test_items_before_an_error_come_before_the_error(portal: Portal) -> None:
    async def failing() -> AsyncGenerator[int]:
        for number in range(1_000):
            yield number
        raise ZeroDivisionError

    taken: list[int] = []
    with pytest.raises(ZeroDivisionError):
        taken.extend(cross(failing(), portal))

    assert taken == [*range(1_000)]


def test_item_comes_while_the_iterator_waits_for_the_next(portal: Portal) -> None:
    async def live() -> AsyncGenerator[int]:
        yield 1
        await asyncio.sleep(RUN_TIMEOUT_S)

    started = time.monotonic()

    assert next(cross(live(), portal)) == 1
    assert time.monotonic() - started < RUN_TIMEOUT_S / 4


@pytest.mark.parametrize(
    ("item", "limit"), [(1, 5 * 2_048), (memoryview(bytes(1 << 20)), 5)], ids=["small", "large"]
)
def test_slow_reader_holds_a_limited_number_of_items(
    portal: Portal, item: object, limit: int
) -> None:
    # A memoryview tells its size as an Arrow batch does.
    made = 0

    async def endless() -> AsyncGenerator[object]:
        nonlocal made
        while True:
            made += 1
            yield item
            if made % 7 == 0:
                await asyncio.sleep(0)

    items = cross(endless(), portal)
    next(items)
    seen = -1
    while seen != made:
        seen = made
        time.sleep(0.2)

    assert made <= limit


@pytest.mark.parametrize("seed", range(4))
def test_every_item_comes_when_either_side_is_slow(portal: Portal, seed: int) -> None:
    # Switching threads at nearly each step looks for a wake-up that gets lost.
    rng = random.Random(seed)  # noqa: S311 - not for secrets.
    count = 30_000

    async def numbers() -> AsyncGenerator[int]:
        for number in range(count):
            yield number
            if rng.random() < 0.02:
                await asyncio.sleep(rng.choice((0, 0, 0.0005)))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        taken: list[int] = []
        for number in cross(numbers(), portal):
            taken.append(number)
            if number % 997 == 0:
                time.sleep(0.001)
    finally:
        sys.setswitchinterval(before)

    assert taken == [*range(count)]


def test_a_second_loop_over_an_open_iterator_goes_on_where_the_first_ended(
    portal: Portal,
) -> None:
    class Feed:
        """Its own iterator, as a consumer's feed is."""

        def __init__(self) -> None:
            self._next = 0

        def __aiter__(self) -> Feed:
            return self

        async def __anext__(self) -> int:
            self._next += 1
            if self._next > 1_000:
                raise StopAsyncIteration
            return self._next

    feed = cross(Feed(), portal)
    taken: list[int] = []
    for number in feed:
        taken.append(number)
        if number == 10:
            break
    taken.append(next(feed))
    taken.extend(feed)

    assert taken == [*range(1, 1_001)]


# Calling.


def test_place_of_an_ordered_consumer_is_behind_what_was_taken(stream: blocking.Stream) -> None:
    count = stream.info().state.messages
    with stream.ordered() as tail:
        for message in tail.initial():
            if message.sequence == 10:
                break
        places = [tail.next_seq]
        for message in tail:
            if message.sequence == 20:
                break
        places.append(tail.next_seq)
        batch = next(tail.batches())
        rest = [message.sequence for message in tail.initial()]

    assert places == [11, 21]
    assert [*(message.sequence for message in batch), *rest] == list(range(21, count + 1))


def test_messages_of_a_loop_that_was_left_are_there_for_next(js: blocking.JetStream) -> None:
    with js.core.subscribe("left.early") as messages:
        for number in range(10):
            js.core.publish("left.early", b"%d" % number)
        js.core.flush()
        for _ in messages:
            break

        assert messages.pending_count == 9
        found = [messages.next(5) for _ in range(9)]

    assert [message.data for message in found if message] == [b"%d" % n for n in range(1, 10)]


def test_objects_are_of_the_classes_that_the_types_name(
    js: blocking.JetStream, stream: blocking.Stream
) -> None:
    assert isinstance(js, blocking.JetStream)
    assert isinstance(js.streams, blocking.StreamManager)
    assert isinstance(stream, blocking.Stream)
    assert isinstance(stream.read(), blocking.StreamRange)
    with js.publisher() as publisher:
        assert isinstance(publisher, blocking.Publisher)


def test_plain_attributes_and_iterators_of_names_cross(
    js: blocking.JetStream, stream: blocking.Stream, server: NatsServer
) -> None:
    assert (js.url, js.is_connected) == (server.url, True)
    assert stream.cached.state.messages == 0
    assert js.streams.find(stream.name) == stream.name
    assert stream.name in list(js.streams.names())
    assert {"streams", "publish", "url"} <= set(dir(js))
    assert not hasattr(js, "_client")


def test_errors_are_those_of_the_async_classes(js: blocking.JetStream) -> None:
    with pytest.raises(StreamNotFoundError):
        js.streams.get("NO_SUCH_STREAM")


def test_values_with_twins_inside_of_containers_cross(
    portal: Portal, stream: blocking.Stream
) -> None:
    opened = portal.root
    assert isinstance(opened, natsstream.JetStream)
    held = portal.call(opened.streams.get, stream.name)

    crossed = cross([held, None], portal), cross({"a": held}, portal), cross((held,), portal)

    assert [item.info().name for item in (crossed[0][0], crossed[1]["a"], crossed[2][0])] == (
        [stream.name] * 3
    )
    plain = [1, ["a"], {"b": 2}]
    assert cross(plain, portal) is plain


def test_ack_of_send_is_a_function_that_may_be_called_again(
    js: blocking.JetStream, stream: blocking.Stream
) -> None:
    with js.publisher() as publisher:
        ack = publisher.send(stream.name, b"x")
        first = ack()

    assert (first.stream, first.sequence) == (stream.name, 2_001)
    assert ack() is first


def test_leaving_a_publisher_raises_the_failure_that_nobody_looked_at(
    js: blocking.JetStream,
) -> None:
    with pytest.raises(NoRespondersError), js.publisher() as publisher:
        publisher.send("nobody.stores.this", b"x")


def test_threads_share_a_connection(js: blocking.JetStream, stream: blocking.Stream) -> None:
    def publish(number: int) -> int:
        return js.publish(stream.name, str(number).encode()).sequence

    def count(_: int) -> int:
        return sum(1 for _ in stream.read(last=2_000))

    with ThreadPoolExecutor(8) as pool:
        counts = pool.map(count, range(8))
        sequences = list(pool.map(publish, range(400)))

    assert sorted(sequences) == [*range(2_001, 2_401)]
    assert list(counts) == [2_000] * 8


def test_works_inside_of_a_running_loop(server: NatsServer, stream: blocking.Stream) -> None:
    async def main() -> int:
        with blocking.connect(server.url) as own:
            return sum(1 for _ in own.streams.get(stream.name).read())

    assert asyncio.run(main()) == 2_000


def test_call_on_the_loops_own_thread_is_refused(portal: Portal) -> None:
    with pytest.raises(UsageError, match="own thread"):
        portal.call(lambda: portal.call(lambda: 1))


@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickling_and_copying_are_refused(
    js: blocking.JetStream, stream: blocking.Stream, use: Callable[[object], object]
) -> None:
    for each in (js, js.streams, stream, stream.read()):
        with pytest.raises(UsageError, match="pickled or copied"):
            use(each)


def test_an_open_connection_is_not_pickled_but_its_description_is(server: NatsServer) -> None:
    described = blocking.connect(server.url)
    with described, pytest.raises(UsageError, match="pickled"):
        pickle.dumps(described)

    with pickle.loads(pickle.dumps(blocking.connect(server.url))) as js:  # noqa: S301 - our own.
        assert js.url == server.url


# Ending.


def test_leaving_ends_the_thread_also_after_an_error(
    server: NatsServer, stream: blocking.Stream
) -> None:
    before = loop_threads()

    def fail() -> None:
        with blocking.connect(server.url) as js:
            for _ in js.streams.get(stream.name).read():
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert loop_threads() == before


def test_closing_the_context_itself_ends_the_thread(server: NatsServer) -> None:
    before = loop_threads()
    connection = blocking.connect(server.url)
    js = connection.open()

    js.close()
    js.close()
    connection.close()

    assert loop_threads() == before


def test_open_connection_is_not_opened_twice_and_a_closed_one_is(server: NatsServer) -> None:
    connection = blocking.connect(server.url)
    with connection, pytest.raises(UsageError, match="is open"):
        connection.open()

    with connection as js:
        assert js.is_connected


def test_failing_to_connect_raises_and_ends_the_thread() -> None:
    before = loop_threads()

    with pytest.raises(ConnectError):
        blocking.connect("nats://127.0.0.1:1", connect_timeout=1).open()

    assert loop_threads() == before


def test_use_after_close_raises(server: NatsServer, stream: blocking.Stream) -> None:
    with blocking.connect(server.url) as js:
        manager, own = js.streams, js.streams.get(stream.name)
        some = own.read(last=3)
        publisher = js.publisher()

    uses: list[Callable[[], Any]] = [
        lambda: js.publish(stream.name, b"x"),
        lambda: manager.get(stream.name),
        lambda: list(manager.names()),
        own.info,
        own.read,
        lambda: list(some),
        lambda: list(some.batches()),
        some.to_arrow,
        publisher.flush,
        publisher.__enter__,
    ]
    for use in uses:
        with pytest.raises(ConnectionClosedError):
            use()
    js.close()


def test_leaving_the_connection_ends_a_read_without_a_hole(fresh_server: NatsServer) -> None:
    with blocking.connect(fresh_server.url) as js:
        messages = read_that_will_wait(js, fresh_server)
    taken = [1]

    with pytest.raises(ConnectionClosedError):
        taken.extend(message.sequence for message in messages)

    assert taken == [*range(1, len(taken) + 1)]


def test_readers_free_what_they_have_before_the_connection_closes(
    portal: Portal, stream: blocking.Stream
) -> None:
    opened = portal.root
    assert isinstance(opened, natsstream.JetStream)
    cleaned: list[str] = []

    async def reading() -> AsyncGenerator[int]:
        try:
            yield 1
            await asyncio.sleep(RUN_TIMEOUT_S)
        finally:
            cleaned.append((await opened.streams.get(stream.name)).name)

    items = cross(reading(), portal)
    next(items)
    portal.stop()

    assert cleaned == [stream.name]
    with pytest.raises(ConnectionClosedError):
        next(items)


def test_closing_in_another_thread_wakes_a_reader(fresh_server: NatsServer) -> None:
    connection = blocking.connect(fresh_server.url)
    js = connection.open()
    messages = read_that_will_wait(js, fresh_server)
    closer = threading.Timer(0.5, connection.close)

    with paused(fresh_server):
        closer.start()
        with pytest.raises(ConnectionClosedError):
            list(messages)
        closer.join()


def test_interrupt_in_a_read_raises_and_leaves_the_connection_usable(
    fresh_server: NatsServer,
) -> None:
    with blocking.connect(fresh_server.url) as js:
        messages = read_that_will_wait(js, fresh_server)

        with paused(fresh_server), interrupt(after_s=0.5), pytest.raises(KeyboardInterrupt):
            list(messages)

        stream = js.streams.get("LARGE")
        eventually(lambda: stream.info().state.consumer_count == 0)
        assert next(iter(stream.read(first=7))).sequence == 7


def test_interrupt_in_a_call_raises_and_leaves_the_connection_usable(
    fresh_server: NatsServer,
) -> None:
    with blocking.connect(fresh_server.url) as js:
        js.streams.ensure("S", subjects=["s"])

        with paused(fresh_server), interrupt(after_s=0.3), pytest.raises(KeyboardInterrupt):
            js.publish("s", b"x")

        assert js.publish("s", b"y").stream == "S"


def test_interrupt_while_connecting_raises_and_ends_the_thread(fresh_server: NatsServer) -> None:
    before = loop_threads()

    with paused(fresh_server), interrupt(after_s=0.3), pytest.raises(KeyboardInterrupt):
        blocking.connect(fresh_server.url, connect_timeout=RUN_TIMEOUT_S).open()

    assert loop_threads() == before


def test_program_ends_with_a_connection_open_in_the_middle_of_a_read(
    server: NatsServer, stream: blocking.Stream
) -> None:
    done = run_program(EXIT_IN_A_READ, server.url, stream.name)

    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


def test_fork_is_told_and_the_parent_goes_on(server: NatsServer, stream: blocking.Stream) -> None:
    done = run_program(FORK, server.url, stream.name)

    lines = done.stdout.splitlines()
    assert sum("a fork" in line for line in lines) == 3, done
    assert lines[-3:] == ["own 2000", "child 0", "parent 2000 1999"]
    assert (done.stderr, done.returncode) == ("", 0)


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "natsstream"]


def read_that_will_wait(js: blocking.JetStream, server: NatsServer) -> Iterator[natsstream.Message]:
    """Begin to read more than fits under way, so that pausing the server stops the read."""
    assert server.is_running
    stream = js.streams.ensure("LARGE", subjects=["large"], storage="memory")
    with js.publisher(max_pending=256) as publisher:
        for _ in range(LARGE_MESSAGES):
            publisher.send("large", bytes(LARGE_BYTES))
    messages = iter(stream.read())
    next(messages)
    return messages


@contextmanager
def paused(server: NatsServer) -> Generator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()


@contextmanager
def interrupt(*, after_s: float) -> Generator[None]:
    """Send this process a Ctrl-C in a while."""
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def run_program(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
