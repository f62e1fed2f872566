"""Callers that give up: at every step of what they wait for, and nothing is left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import natsstream
from natsstream._wire.client import Client
from natsstream.core.core import Core
from natsstream.errors import ConnectionClosedError, TransportError
from natsstream.options import ConnectOptions
from tests.support.cancels import cancel_others
from tests.support.eventually import eventually_async
from tests.support.peers import Peer, scripted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from natsstream.testing import NatsServer
    from tests.integration.wire.conftest import Opener
    from tests.support.peers import Script

pytestmark = pytest.mark.asyncio

# Every step up to here; where a busy server makes waiting long, in ever larger ones after that.
STEPS_EACH = 200
STEPS_MAX = 1 << 24
# About twice as many as a reconnect on a quiet machine takes.
RECONNECT_STEPS = 60


async def cancelled_after(steps: int, work: Coroutine[None, None, object]) -> bool:
    """Cancel after so many turns of the loop; False when the work was done before.

    Raises:
        AssertionError: It swallowed the cancellation.
    """
    task = asyncio.ensure_future(work)
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    is_done = task.done()
    task.cancel()
    await asyncio.wait([task], timeout=30)
    assert is_done or task.cancelled(), f"not cancelled at step {steps}: {task!r}"
    if is_done:
        task.result()
    return not is_done


async def at_every_step(make: Callable[[int], Awaitable[bool]], *, first: int = 0) -> int:
    """Call `make` with 0, 1, 2, ... steps until it says that nothing was left to cancel.

    Returns:
        How often something was.
    """
    step, count = first, 0
    while step < STEPS_MAX:
        if not await make(step):
            return count
        count += 1
        step = step + 1 if step < STEPS_EACH else step * 5 // 4
    raise AssertionError(f"still not done after {STEPS_MAX} steps")


async def only(tasks: set[asyncio.Task[object]]) -> None:
    """Wait until no other tasks are left."""

    async def is_clean() -> bool:
        return asyncio.all_tasks() <= tasks

    await eventually_async(is_clean)


async def test_connecting_can_be_given_up_at_every_step(server: NatsServer) -> None:
    """nats-py and `wait_for` of Python 3.11 swallow a cancellation here and there."""
    tasks = asyncio.all_tasks()
    made: list[Client] = []

    async def connects() -> None:
        made.append(await Client.connect(ConnectOptions(servers=server.url)))

    async def once(step: int) -> bool:
        was_cancelled = await cancelled_after(step, connects())
        while made:
            await made.pop().close()
        await only(tasks)
        return was_cancelled

    assert await at_every_step(once) > 3


async def test_closing_that_is_given_up_still_ends_everything(server: NatsServer) -> None:
    tasks = asyncio.all_tasks()

    async def once(step: int) -> bool:
        client = await Client.connect(ConnectOptions(servers=server.url))
        was_cancelled = await cancelled_after(step, client.close())
        assert client.is_closed
        await only(tasks)
        return was_cancelled

    # A coroutine that was cancelled before its first step has done nothing.
    assert await at_every_step(once, first=1) > 1


@pytest.mark.parametrize("work", ["request", "flush", "subscribe", "drain", "drain all"])
async def test_what_is_given_up_at_any_step_leaves_nothing(
    work: str, server: NatsServer, open_client: Opener
) -> None:
    # No ping of the watchdog's own is among what is counted.
    async with open_client(server.url, ping_interval=600) as (client, _):
        core = Core(client)
        subscriptions = set(client.raw._subs)
        tasks = asyncio.all_tasks()
        works: dict[str, Callable[[], Coroutine[None, None, object]]] = {
            "request": lambda: client.request("$SYS.REQ.USER.INFO", timeout=30),
            "flush": lambda: client.flush(30),
            "subscribe": core.subscribe("a").open,
            "drain": lambda: asyncio.sleep(0),
            "drain all": core.drain,
        }

        async def once(step: int) -> bool:
            subscription = core.subscribe("a")
            works["subscribe"] = subscription.open
            works["drain"] = subscription.drain
            if work.startswith("drain"):
                await subscription.open()
            was_cancelled = await cancelled_after(step, works[work]())
            if step > 0 or work != "drain all":
                await subscription.close()
            await core.drain()
            await only(tasks)
            return was_cancelled

        assert await at_every_step(once) > 0
        await client.flush(30)

        assert set(client.raw._subs) == subscriptions
        assert client.requests._waiting == {}  # pyright: ignore[reportPrivateUsage]
        assert client.raw._pongs == []
        assert len(client._state._watchers) == 1  # pyright: ignore[reportPrivateUsage]


async def test_closing_from_several_tasks_at_once_ends_in_all_of_them(server: NatsServer) -> None:
    tasks = asyncio.all_tasks()
    client = await Client.connect(ConnectOptions(servers=server.url))

    async with asyncio.timeout(30):
        await asyncio.gather(*(client.close() for _ in range(5)))

    assert client.is_closed
    await only(tasks)


async def test_closing_while_it_reconnects_ends_in_time(fresh_server: NatsServer) -> None:
    tasks = asyncio.all_tasks()
    client = await Client.connect(ConnectOptions(servers=fresh_server.url))
    await asyncio.to_thread(fresh_server.kill)

    async def is_lost() -> bool:
        return not client.is_connected

    await eventually_async(is_lost)
    waiting = asyncio.ensure_future(client.wait_connected(60))

    async with asyncio.timeout(30):
        await client.close()
        with pytest.raises(ConnectionClosedError):
            await waiting
    await only(tasks)


async def serves(peer: Peer) -> None:
    await peer.greet()
    await peer.answer_pings()  # Until the client has hung up.


async def says_nothing(peer: Peer) -> None:
    await peer.reader.read()


@pytest.mark.sampled_variants
@pytest.mark.parametrize("other", [serves, says_nothing])
async def test_closing_at_any_step_of_a_reconnect_ends_it(other: Script) -> None:
    """A cancellation may be lost in `wait_for` of Python 3.11; nats-py would reconnect."""
    # With two servers, the other one is tried at once.
    async with scripted(serves) as first, scripted(other) as second:
        tasks = asyncio.all_tasks()
        for step in range(RECONNECT_STEPS):
            client = await Client.connect(ConnectOptions(servers=(first, second)))
            client.raw.abort()
            for _ in range(step):
                await asyncio.sleep(0)

            async with asyncio.timeout(30):
                await client.close()

            assert client.is_closed
            assert not client.is_connected
            await only(tasks)


async def test_subscribing_at_a_frozen_server_does_not_wait(
    fresh_server: NatsServer, open_client: Opener
) -> None:
    """nats-py's own waits for its flusher from the 1,025th on, and swallows a cancellation."""
    async with open_client(fresh_server.url) as (client, _):
        fresh_server.pause()
        while client.raw.transport.get_write_buffer_size() < 1 << 20:
            client.write(client.publish_command("nobody.listens", "", b"", bytes(1 << 20)))

        for number in range(1_500):
            subscribing = client.subscribe(f"s.{number}", lambda frames: frames.clear())
            with pytest.raises(StopIteration):  # Done without a wait.
                subscribing.send(None)

        fresh_server.resume()


async def test_drain_of_all_ends_all_also_when_the_server_is_gone(
    fresh_server: NatsServer, open_client: Opener
) -> None:
    async with open_client(fresh_server.url) as (client, _):
        core = Core(client)
        subscriptions = [await core.subscribe(f"s.{number}").open() for number in range(5)]
        await asyncio.to_thread(fresh_server.kill)

        with pytest.raises(TransportError):
            await core.drain()

        for subscription in subscriptions:
            assert [message async for message in subscription] == []


async def test_subscription_that_could_not_be_opened_is_not_kept(
    server: NatsServer, open_client: Opener
) -> None:
    async with open_client(server.url) as (client, _):
        core = Core(client)
        watchers = len(client._state._watchers)  # pyright: ignore[reportPrivateUsage]
        await client.close()

        for _ in range(3):
            with pytest.raises(ConnectionClosedError):
                await core.subscribe("a").open()

        assert len(client._state._watchers) == watchers  # pyright: ignore[reportPrivateUsage]
        await core.drain()


async def test_connection_outlives_the_cancelling_of_all_its_tasks(
    fresh_server: NatsServer,
) -> None:
    async with natsstream.connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["s"])
        await asyncio.wait(cancel_others())
        assert (await js.publish("s", b"1")).sequence == 1
        async with js.core.subscribe("a") as subscription:
            await js.core.publish("a", b"2")
            assert (await anext(subscription)).data == b"2"

        fresh_server.stop(keep_store=True)
        await eventually_async(lambda: _is(not js.is_connected))
        await asyncio.wait(cancel_others())
        fresh_server.start()
        await eventually_async(lambda: _is(js.is_connected))
        assert (await stream.info()).state.last_seq == 1
        await asyncio.wait(cancel_others())
        await js.core.rtt()


async def _is(value: bool) -> bool:  # noqa: FBT001 - for `eventually_async`.
    return value
