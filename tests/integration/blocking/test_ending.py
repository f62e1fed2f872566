"""Leaving the blocking door: by its end, an error, Ctrl-C, another thread, an exit or a fork.

Interrupts are real ones (SIGINT to this process); exits and forks happen in programs of their own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import natsstream
from natsstream import blocking
from natsstream.blocking.portal import Portal
from natsstream.blocking.proxies import wrap
from natsstream.errors import ConnectError, ConnectionClosedError, NatsStreamError, UsageError
from tests.support.eventually import eventually
from tests.support.loops import turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator

    from natsstream._wire.client import Client
    from natsstream.testing import NatsServer

# How often the loop turns without a message before a reader counts as waiting.
STILL_LOOKS = 20
RUN_TIMEOUT_S = 40.0
# More messages than a run handles before it is ended.
WORK = 3_000
# More than a read has under way at once (16 MiB), so that a paused server leaves it waiting.
LARGE_MESSAGES, LARGE_BYTES = 3_000, 16 << 10

EXIT_IN_A_READ = """
import sys
from natsstream import blocking
js = blocking.connect(sys.argv[1]).open()
messages = iter(js.streams.get(sys.argv[2]).read())
print(next(messages).sequence, flush=True)
"""

# The main thread ends under a run, whose handlers get no threads any more.
END_IN_A_RUN = """
import sys, threading, time
from natsstream import blocking
js = blocking.connect(sys.argv[1]).open()
consumer = js.streams.get("S").consumers.get("c")
handled = []
def handle(message):
    time.sleep(0.002)
    handled.append(message.sequence)
    sys.stdout.write("%d " % message.sequence)
run = lambda: consumer.run(handle, max_attempts=1)
threading.Thread(target=run, daemon=True).start()
while len(handled) < 1_000:
    time.sleep(0.01)
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
        some = own.read(last_seq=3)
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
    with pytest.raises(ConnectionClosedError, match=r"^info\(\): the connection is closed"):
        own.info()
    js.close()


def test_call_after_the_close_in_a_new_thread_says_that_it_is_closed(server: NatsServer) -> None:
    """A new thread gets the ident of one that has ended, such as that of the loop."""
    with blocking.connect(server.url) as js:
        pass
    told: list[type[Exception]] = []

    def call() -> None:
        try:
            js.publish("a", b"")
        except NatsStreamError as error:
            told.append(type(error))

    for _ in range(20):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    assert told == [ConnectionClosedError] * 20


def test_reader_whose_connection_is_closed_is_told_how_to_open_another(server: NatsServer) -> None:
    js = blocking.connect(server.url).open()
    told: list[str] = []

    def follow() -> None:
        try:
            with js.core.subscribe("a") as messages:
                told.append("begun")
                next(messages)
        except ConnectionClosedError as error:
            told.append(error.hint)

    following = threading.Thread(target=follow)
    following.start()
    eventually(lambda: bool(told))
    js.close()
    following.join(RUN_TIMEOUT_S)

    assert told == ["begun", "open a new one with natsstream.blocking.connect()"]


FOLLOWERS: dict[str, tuple[Callable[[blocking.JetStream, str], Any], str]] = {
    "consume": (lambda js, name: js.streams.get(name).consumers.ensure("c").consume(), "stop"),
    "ordered": (lambda js, name: js.streams.get(name).ordered(), "close"),
    "subscribe": (lambda js, name: js.core.subscribe(name), "close"),
    "watch": (lambda js, name: js.kv.ensure(name).watch(), "close"),
}


@pytest.mark.parametrize("which", FOLLOWERS)
def test_another_thread_ends_a_follower(
    js: blocking.JetStream, stream_name: str, which: str
) -> None:
    js.streams.create(stream_name)
    describe, ends = FOLLOWERS[which]
    opened: list[Any] = []
    told: list[str] = []

    def follow() -> None:
        with describe(js, stream_name) as items:
            opened.append(items)
            told.extend(repr(item) for item in items)
            told.append("at its end")

    following = threading.Thread(target=follow)
    following.start()
    eventually(lambda: bool(opened))
    getattr(opened[0], ends)()
    following.join(RUN_TIMEOUT_S)

    assert told == ["at its end"]


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

    items = wrap(reading(), portal)
    next(items)
    portal.stop()

    assert cleaned == [stream.name]
    with pytest.raises(ConnectionClosedError):
        next(items)


def test_closing_in_another_thread_wakes_a_reader(fresh_server: NatsServer) -> None:
    connection = blocking.connect(fresh_server.url)
    js = connection.open()
    messages = read_that_will_wait(js, fresh_server)
    taken: list[int] = []

    with (
        paused(fresh_server),
        when_still(js, taken, connection.close),
        pytest.raises(ConnectionClosedError),
    ):
        taken.extend(message.sequence for message in messages)


def test_interrupt_in_a_read_raises_and_leaves_the_connection_usable(
    fresh_server: NatsServer,
) -> None:
    with blocking.connect(fresh_server.url) as js:
        messages = read_that_will_wait(js, fresh_server)

        taken: list[int] = []
        with (
            paused(fresh_server),
            when_still(js, taken, interrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            taken.extend(message.sequence for message in messages)

        stream = js.streams.get("LARGE")
        eventually(lambda: stream.info().state.consumer_count == 0)
        assert next(iter(stream.read(first_seq=7))).sequence == 7


def wait_for_nothing(consumer: blocking.Consumer, stream: blocking.Stream, wait: str) -> None:
    """Wait for a message that does not come."""
    if wait == "call":
        consumer.next(timeout=RUN_TIMEOUT_S)
    with stream.ordered(deliver_policy="new") as messages:
        for _ in messages:
            pass


@pytest.mark.parametrize("wait", ["read", "call"])
def test_interrupt_ends_a_wait_that_a_handler_of_another_library_restarts(
    stream: blocking.Stream, wait: str
) -> None:
    """As polars installs one when it is imported."""
    consumer = stream.consumers.create("slow", deliver_policy="new")
    signal.siginterrupt(signal.SIGINT, False)  # noqa: FBT003 - it takes no keyword.
    try:
        with when(lambda: True, interrupt), pytest.raises(KeyboardInterrupt):
            wait_for_nothing(consumer, stream, wait)
    finally:
        signal.siginterrupt(signal.SIGINT, True)  # noqa: FBT003


def test_interrupt_in_a_call_raises_and_leaves_the_connection_usable(
    fresh_server: NatsServer,
) -> None:
    with blocking.connect(fresh_server.url) as js:
        js.streams.ensure("S", subjects=["s"])

        waiting = client_of(js).requests._waiting  # pyright: ignore[reportPrivateUsage]
        with (
            paused(fresh_server),
            when(lambda: len(waiting) == 1, interrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            js.publish("s", b"x")

        assert js.publish("s", b"y").stream == "S"


def test_interrupt_ends_a_run_of_handlers_and_leaves_the_connection_usable(
    js: blocking.JetStream, stream: blocking.Stream
) -> None:
    consumer = stream.consumers.create("billing")
    handled: list[int] = []

    def handle(message: blocking.DeliveredMessage) -> None:
        handled.append(message.sequence)

    with when(lambda: len(handled) > 100, interrupt), pytest.raises(KeyboardInterrupt):
        consumer.run(handle, concurrency=4)

    # What was not begun is given back, and the pulls end.
    eventually(lambda: consumer.info().num_waiting == 0)
    assert js.publish(stream.name, b"x").sequence == 2_001


def test_interrupt_of_a_run_lets_its_handlers_finish(fresh_server: NatsServer) -> None:
    """They use the connection, and their messages are acked: none is handled twice."""
    begun, handled, stored = threading.Event(), list[int](), list[int]()
    with blocking.connect(fresh_server.url) as js:
        stream = js.streams.create("S", subjects=["s", "results"])
        for _ in range(6):
            js.publish("s", b"x")
        stream.consumers.create("billing", filters=["s"])

        def handle(message: blocking.DeliveredMessage) -> None:
            handled.append(message.sequence)
            if len(handled) == 2:
                begun.set()
            time.sleep(0.5)
            stored.append(js.publish("results", b"y").sequence)

    # The connection is closed right behind the interrupt, as programs do.
    def work() -> None:
        nonlocal js
        with blocking.connect(fresh_server.url) as js:
            js.streams.get("S").consumers.get("billing").run(handle, concurrency=2)

    with when(begun.is_set, interrupt), pytest.raises(KeyboardInterrupt):
        work()

    assert (len(handled), len(stored)) == (2, 2)
    with blocking.connect(fresh_server.url) as js:
        info = js.streams.get("S").consumers.get("billing").info()
    assert info.ack_floor.stream_seq == 2


def fill_work_queue(server: NatsServer) -> None:
    """Make a work queue, whose consumer redelivers soon."""
    with blocking.connect(server.url) as js:
        stream = js.streams.create("S", subjects=["s"], retention="workqueue")
        stream.consumers.create("c", ack_wait=1)
        with js.publisher() as publisher:
            publisher.send_many([("s", b"x")] * WORK)


def read_the_rest(server: NatsServer) -> set[int]:
    """Handle what is left of the work queue."""
    rest: set[int] = set()

    def handle(message: blocking.DeliveredMessage) -> None:
        rest.add(message.sequence)

    with blocking.connect(server.url) as js:
        js.streams.get("S").consumers.get("c").run(handle, until_empty=True)
    return rest


def test_closing_under_a_run_terminates_nothing_that_no_handler_has_seen(
    fresh_server: NatsServer,
) -> None:
    """A message whose handler was never called has had no attempt."""
    fill_work_queue(fresh_server)
    handled: set[int] = set()
    closed: list[ConnectionClosedError] = []

    def handle(message: blocking.DeliveredMessage) -> None:
        time.sleep(0.002)
        handled.add(message.sequence)

    def run() -> None:
        try:
            js.streams.get("S").consumers.get("c").run(handle, max_attempts=1)
        except ConnectionClosedError as error:
            closed.append(error)

    js = blocking.connect(fresh_server.url).open()
    running = threading.Thread(target=run)
    running.start()
    eventually(lambda: len(handled) > WORK // 3)
    js.close()
    running.join(RUN_TIMEOUT_S)

    assert [type(error) for error in closed] == [ConnectionClosedError]
    rest = read_the_rest(fresh_server)
    assert rest
    assert handled | rest == set(range(1, WORK + 1))


def test_program_that_ends_under_a_run_terminates_nothing_that_no_handler_has_seen(
    fresh_server: NatsServer,
) -> None:
    fill_work_queue(fresh_server)
    done = run_program(END_IN_A_RUN, fresh_server.url)

    handled = {int(line) for line in done.stdout.split()}
    assert done.returncode == 0, done.stderr
    assert handled | read_the_rest(fresh_server) == set(range(1, WORK + 1))


def hang_and_interrupt(
    server: NatsServer, act: Callable[[], object], *, stop_timeout: float
) -> None:
    """Interrupt a run whose handler does not end before its connection is closed."""
    begun, may_end = threading.Event(), threading.Event()

    def handle(_: blocking.DeliveredMessage) -> None:
        begun.set()
        may_end.wait(RUN_TIMEOUT_S)

    try:
        with blocking.connect(server.url) as js:
            stream = js.streams.create("S", subjects=["s"])
            js.publish("s", b"x")
            consumer = stream.consumers.create("billing")
            with when(begun.is_set, act), pytest.raises(KeyboardInterrupt):
                consumer.run(handle, stop_timeout=stop_timeout)
    finally:
        may_end.set()


def test_second_interrupt_ends_the_wait_for_handlers(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt_twice() -> None:
        interrupt()
        interrupt()

    hang_and_interrupt(fresh_server, interrupt_twice, stop_timeout=RUN_TIMEOUT_S)

    assert "1 handler still runs in a thread" in caplog.text


def test_interrupted_leader_leads_until_its_work_has_ended(
    js: blocking.JetStream, server: NatsServer, stream_name: str
) -> None:
    """A thread cannot be stopped: another leader would work beside it."""
    kv = js.kv.create(stream_name, limit_marker_ttl=60)
    begun, steps = threading.Event(), list[str]()

    def work(_: blocking.Lock[bytes]) -> None:
        begun.set()
        time.sleep(1)
        steps.append("first has ended")

    def follow() -> None:
        with blocking.connect(server.url) as other:
            election = other.kv.get(stream_name).election("e", candidate="second", ttl=5)
            election.run(lambda _: steps.append("second leads"))

    with blocking.connect(server.url) as own:
        election = own.kv.get(kv.name).election("e", candidate="first", ttl=5)
        follower = threading.Thread(target=follow)
        with when(begun.is_set, interrupt), pytest.raises(KeyboardInterrupt):
            election.run(lambda term: (follower.start(), work(term)))
        follower.join()

    assert steps == ["first has ended", "second leads"]


def test_interrupted_put_leaves_nothing_behind(js: blocking.JetStream, stream_name: str) -> None:
    box = js.objects.create(stream_name)
    is_stored = threading.Event()

    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 17)
            if len(told) > 3:
                is_stored.set()
                time.sleep(0.01)

    told: list[int] = []
    with when(is_stored.is_set, interrupt), pytest.raises(KeyboardInterrupt):
        box.put("a", endless(), progress=lambda done, _: told.append(done))

    assert js.streams.get(f"OBJ_{box.name}").info().state.messages == 0


def test_handler_that_outlives_the_connection_is_reported(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    hang_and_interrupt(fresh_server, interrupt, stop_timeout=0)

    assert "1 handler still runs in a thread" in caplog.text


def test_interrupt_while_connecting_raises_and_ends_the_thread(fresh_server: NatsServer) -> None:
    before = loop_threads()

    with (
        paused(fresh_server),
        when(lambda: loop_threads() != before, interrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        blocking.connect(fresh_server.url, connect_timeout=RUN_TIMEOUT_S).open()

    assert loop_threads() == before


def test_interrupt_in_the_middle_of_the_threads_start_raises_and_ends_it(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, wait = loop_threads(), threading.Event.wait

    def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
        if loop_threads() != before:  # Its start waits for it.
            monkeypatch.undo()
            raise KeyboardInterrupt
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        blocking.connect(server.url).open()

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
def when(condition: Callable[[], bool], act: Callable[[], object]) -> Generator[None]:
    """Do something in another thread once a condition holds while the block runs."""
    failures: list[BaseException] = []

    def watch() -> None:
        try:
            eventually(condition, within_s=RUN_TIMEOUT_S)
        except AssertionError as error:
            failures.append(error)
        act()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        watcher.join()
    assert failures == []


@contextmanager
def when_still(
    js: blocking.JetStream, taken: list[int], act: Callable[[], object]
) -> Generator[None]:
    """Do something once nothing more is taken, though the loop turns and turns."""
    portal: Portal = object.__getattribute__(js, "_portal")
    counts = [-1]

    def is_still() -> bool:
        portal.call(turn)
        counts.append(len(taken))
        return len(counts) > STILL_LOOKS and len(set(counts[-STILL_LOOKS:])) == 1

    with when(is_still, act):
        yield


def interrupt() -> None:
    """Send this process a Ctrl-C."""
    # One that comes between the last look for signals and the wait for a lock wakes nobody.
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


def client_of(js: blocking.JetStream) -> Client:
    """Return the connection under a blocking context."""
    opened: natsstream.JetStream = object.__getattribute__(js, "_held")
    return opened._client  # pyright: ignore[reportPrivateUsage]


def run_program(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "default", "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
