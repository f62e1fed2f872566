"""Readers of a pull consumer against a model of a server, in virtual time, on a way full of faults.

The rules of `open_pulls.py` are driven by those who use them, `fetching.py` and `session.py`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from natsstream.consume.delivery.delivered import AckSender
from natsstream.consume.pull.fetching import Fetcher
from natsstream.consume.pull.messages import ConsumerMessages
from natsstream.consume.pull.requests import ConsumeOptions, FetchOptions
from natsstream.errors import NatsStreamError
from tests.support import virtual_time
from tests.support.pull_server import Faults, PullServer

FAULTS_S = 20.0
MESSAGES = 40
# A second for the way, one for a look at the consumer, one more for what was under way meanwhile.
LAST_WORD_S = 3.1
# A call has one pull, a second one when the first is doubtful; each cancelled one that the next can
# not take over stays for a tenth of a second, or a trip to the server.
PULLS_MAX = 8
PULLS_MAX_HEALTHY = 2


def fetch_options(server: PullServer) -> FetchOptions:
    """Draw a fetch, with heartbeats as `requests.fetch_options` gives them."""
    timeout_s = server.random.choice((0.3, 0.3, 1.0, 1.0, 6.0))
    heartbeat_s = timeout_s / 5 if timeout_s > 5 or server.random.random() < 0.2 else 0.0
    return FetchOptions(
        count=server.random.choice((1, 5, 20)),
        timeout_s=timeout_s,
        no_wait=server.random.random() < 0.1,
        heartbeat_s=heartbeat_s,
    )


async def go_wrong(server: PullServer) -> None:
    """Let things go wrong for a while."""
    loop, random, client = asyncio.get_running_loop(), server.random, server.client
    server.faults = Faults(
        lost=random.choice((0.02, 0.2, 0.5)),
        late=random.choice((0.0, 0.2)),
        late_s=random.choice((0.1, 2.0)),
        doubled=random.choice((0.0, 0.2)),
    )
    while loop.time() < FAULTS_S:
        await asyncio.sleep(random.uniform(0.1, 3))
        match random.randrange(6):
            case 0:
                server.move(tells=random.random() < 0.5)
            case 1:
                client.cut()
                await asyncio.sleep(random.uniform(0, 2))
                client.reconnect()
            case 2:
                server.is_frozen = True
                await asyncio.sleep(random.uniform(0, 4))
                server.is_frozen = False
            case _:
                server.store(random.randrange(30))
    server.faults = Faults()


async def one_fetch(server: PullServer, fetcher: Fetcher) -> None:
    """Fetch, and ack what came; now and then the call is cancelled in the middle."""
    options, loop = fetch_options(server), asyncio.get_running_loop()
    began = loop.time()
    fetching = asyncio.ensure_future(fetcher.fetch(options))
    if server.random.random() < 0.3:
        await asyncio.wait({fetching}, timeout=server.random.uniform(0, options.timeout_s))
        fetching.cancel()
    with suppress(NatsStreamError, asyncio.CancelledError):
        for message in await fetching:
            await message.ack()
    assert loop.time() - began <= max(options.timeout_s, 5.0) + LAST_WORD_S


async def fetch_through_faults(seed: int) -> None:
    server = PullServer(seed)
    loop = asyncio.get_running_loop()
    fetcher = Fetcher(AckSender(server.source))
    wrong = asyncio.ensure_future(go_wrong(server))
    while not wrong.done():
        await one_fetch(server, fetcher)
        if server.random.random() < 0.3:
            await asyncio.sleep(server.random.uniform(0, 0.3))
    await wrong
    # What was said before may still arrive.
    await asyncio.sleep(max(server.all_said_at - loop.time(), 0))
    assert server.pulls_max <= PULLS_MAX
    server.pulls_max = 0
    server.store(MESSAGES)
    stored = len(server.pending) + len(server.out) + len(server.acked)
    calls = 0
    while len(server.acked) < stored:
        has_some, calls = bool(server.pending), calls + 1
        options = fetch_options(server)
        began = loop.time()
        found = await fetcher.fetch(options)
        assert found or not has_some or options.no_wait
        assert loop.time() - began <= options.timeout_s + 0.2
        for message in found:
            await message.ack()
        await asyncio.sleep(0.01)
        assert calls < 200
    assert not server.out
    assert server.pulls_max <= PULLS_MAX_HEALTHY
    # Nothing is left behind when nobody asks any more.
    await asyncio.sleep(10)
    assert not server.client.subscriptions
    assert not server.waiting


async def consume_through_faults(seed: int) -> None:
    server = PullServer(seed)
    loop = asyncio.get_running_loop()
    options = ConsumeOptions(max_messages=10, expires_s=server.random.choice((1.0, 30.0)))
    wrong = asyncio.ensure_future(go_wrong(server))
    taken: set[int] = set()
    async with ConsumerMessages(AckSender(server.source), options) as messages:

        async def read() -> None:
            async for message in messages:
                await message.ack()
                taken.add(message.sequence)

        reading = asyncio.ensure_future(read())
        await wrong
        await asyncio.sleep(max(server.all_said_at - loop.time(), 0))
        server.store(MESSAGES)
        stored = len(server.pending) + len(server.out) + len(server.acked)
        # Heartbeats missed, a look at the consumer, and what was lost comes again.
        async with asyncio.timeout(20):
            while len(server.acked) < stored:
                await asyncio.sleep(0.05)
        reading.cancel()
        await asyncio.wait({reading})
    assert not server.out
    assert server.pulls_max <= 2 * 10
    await asyncio.sleep(40)
    assert not server.client.subscriptions


@given(st.integers(min_value=0))
@example(0)
def test_each_fetch_hears_what_is_pending_whatever_was_lost_before(seed: int) -> None:
    virtual_time.run(fetch_through_faults(seed))


@given(st.integers(min_value=0))
@example(0)
def test_a_flow_hears_what_is_pending_whatever_was_lost_before(seed: int) -> None:
    virtual_time.run(consume_through_faults(seed))
