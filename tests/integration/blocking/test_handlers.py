"""Functions that a method awaits, given to its blocking proxy: plain ones, run in threads."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from natsstream.blocking.proxies import wrap
from natsstream.errors import ConfigError, ConnectionClosedError, StreamNotFoundError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from natsstream.blocking.portal import Portal

WAIT_S: Final = 20.0

Handler: TypeAlias = Callable[["Item"], Awaitable[object]]


class Item:
    """Has something to await, so that its proxy crosses."""

    __module__ = "natsstream.for_tests"  # Only classes of natsstream have proxies.

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.acked: int = 0

    async def ack(self) -> int:
        await asyncio.sleep(0)
        self.acked += 1
        return self.number


class Work:
    """Calls handlers as a consumer does."""

    __module__ = "natsstream.for_tests"

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.results: list[object] = []
        self.failures: list[BaseException] = []

    async def run(self, handler: Handler, *, count: int = 3, concurrency: int = 1) -> int:
        limit = asyncio.Semaphore(concurrency)

        async def handle(number: int) -> None:
            item = Item(number)
            self.items.append(item)
            async with limit:
                try:
                    self.results.append(await handler(item))
                except Exception as error:  # noqa: BLE001 - as the worker of a consumer.
                    self.failures.append(error)

        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(handle(number))
        return count

    async def run_named(self, *, on_item: Callable[[Item], Awaitable[object]] | None) -> None:
        if on_item is not None:
            self.results.append(await on_item(Item(7)))

    async def keep(self, key: Callable[[int], int]) -> int:
        return key(3)


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def door(work: Work, portal: Portal) -> Any:
    """The proxy, whose types only the generator would know."""
    return wrap(work, portal)


def test_handler_is_a_plain_function_with_twins_as_arguments(work: Work, door: Any) -> None:
    def handle(item: Any) -> int:
        return item.ack() * 10

    assert door.run(handle) == 3

    assert sorted(work.results, key=repr) == [0, 10, 20]
    assert [item.acked for item in work.items] == [1, 1, 1]


def test_handler_given_by_name_or_not_at_all_crosses_too(work: Work, door: Any) -> None:
    def number(item: Any) -> int:
        return item.number

    door.run_named(on_item=number)
    door.run_named(on_item=None)

    assert work.results == [7]


def test_handler_may_be_a_method_a_partial_or_an_object(work: Work, door: Any) -> None:
    class Named:
        def __call__(self, item: Any) -> str:
            return f"called {item.number}"

        def method(self, item: Any) -> str:
            return f"method {item.number}"

    def two(word: str, item: Any) -> str:
        return f"{word} {item.number}"

    for handler in (Named(), Named().method, functools.partial(two, "partial")):
        door.run(handler, count=1)

    assert work.results == ["called 0", "method 0", "partial 0"]


def test_handlers_run_side_by_side_and_never_on_the_loop(door: Any) -> None:
    four, lock = threading.Barrier(4), threading.Lock()
    threads: set[str] = set()
    running: list[int] = []
    peaks: list[int] = []

    def handle(_: Any) -> None:
        with lock:
            running.append(1)
            peaks.append(len(running))
            threads.add(threading.current_thread().name)
        four.wait(WAIT_S)
        with lock:
            running.pop()

    door.run(handle, count=8, concurrency=4)

    assert len(peaks) == 8
    assert max(peaks) == 4
    assert "natsstream" not in threads


def test_error_of_a_handler_reaches_whoever_awaits_it(work: Work, door: Any) -> None:
    def handle(item: Any) -> None:
        raise StreamNotFoundError(f"no {item.number}")

    door.run(handle, count=1)

    assert isinstance(work.failures[0], StreamNotFoundError)


@pytest.mark.parametrize("leave", [sys.exit, lambda: next(iter(()))], ids=["exit", "stop"])
def test_what_no_future_takes_is_an_error_of_the_handler(
    work: Work, door: Any, leave: Callable[[], object]
) -> None:
    def handle(_: Any) -> object:
        return leave() if len(work.items) == 1 else None

    door.run(handle, count=1)

    assert isinstance(work.failures[0], RuntimeError)
    assert door.run(handle, count=1) == 1


def test_async_handler_is_refused_before_anything_is_done(work: Work, door: Any) -> None:
    async def handle(item: Any) -> None: ...

    class Awaited:
        async def __call__(self, item: Any) -> None: ...

    for handler in (handle, Awaited()):
        with pytest.raises(ConfigError, match="is an async function") as raised:
            door.run(handler)
        assert "plain function" in raised.value.hint

    assert work.items == []


def test_coroutine_that_a_handler_returns_is_its_failure(work: Work, door: Any) -> None:
    async def later(item: Any) -> None: ...

    def handle(item: Any) -> object:
        return later(item)

    door.run(handle, count=1)

    assert isinstance(work.failures[0], ConfigError)


def test_function_that_is_not_awaited_is_called_as_it_is(door: Any) -> None:
    def double(number: int) -> int:
        return number * 2

    assert door.keep(double) == 6


def test_closing_wakes_what_a_handler_waits_for(portal: Portal, door: Any) -> None:
    begun, ended = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def handle(item: Any) -> None:
        begun.set()
        ended.wait(WAIT_S)
        try:
            item.ack()
        except ConnectionClosedError as error:
            errors.append(error)

    running = threading.Thread(target=run_until_closed, args=(door, handle))
    running.start()
    begun.wait(WAIT_S)
    portal.stop()
    ended.set()
    running.join(WAIT_S)

    assert not running.is_alive()
    eventually(lambda: len(errors) == 1)
    eventually(lambda: handler_threads() == [])


def run_until_closed(door: Any, handler: Callable[[Any], object]) -> None:
    with pytest.raises(ConnectionClosedError):
        door.run(handler, count=1)


def handler_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("natsstream handler")]
