"""Elections: one leader at a time, seen by everybody, replaced when it is gone."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio

from natsstream.errors import ConfigError, LockHeldError, LockLostError, UsageError
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async
from tests.support.locks import LONG_TTL_S, give_back_patiently, renew_soon

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream, KeyValue, Leader, Lock
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch) -> KeyValue:
    """A bucket that can keep locks, on a server that may be slow to take them back."""
    give_back_patiently(monkeypatch)
    return await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


async def test_one_candidate_leads_until_it_resigns(kv: KeyValue) -> None:
    one, two = kv.election("e", candidate="one"), kv.election("e", candidate="two")
    assert await one.leader() is None
    async with one.lead() as term:
        assert one.is_leader
        leader = await two.leader()
        assert leader is not None
        assert (leader.candidate, leader.revision) == ("one", term.token)
        with pytest.raises(LockHeldError, match="one"):
            async with two.lead(timeout=1):
                pass
        assert not two.is_leader
        await one.resign()
        assert not one.is_leader
        async with two.lead() as later:
            assert later.token > term.token
            assert two.is_leader
    assert await one.leader() is None


async def test_observers_see_each_leader_and_no_renewals(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew_soon(monkeypatch)
    one = kv.election("e", candidate="one", ttl=LONG_TTL_S)
    two = kv.election("e", candidate="two", ttl=LONG_TTL_S)
    seen: list[str | None] = []

    async def observe(changes: AsyncIterator[Leader]) -> None:
        async for leader in changes:
            seen.append(leader.candidate)  # noqa: PERF401 - What is seen so far is looked at.

    async def has_seen(*names: str | None) -> None:
        async def is_so() -> bool:
            return seen == list(names)

        await eventually_async(is_so, within_s=20)

    async with aclosing(one.changes()) as changes:
        observing = asyncio.create_task(observe(changes))
        async with one.lead() as term:
            first = term.revision
            await has_seen("one")

            async def is_renewed() -> bool:
                return term.revision > first

            await eventually_async(is_renewed, within_s=20)
        await has_seen("one", None)
        async with two.lead():
            await has_seen("one", None, "two")
        await has_seen("one", None, "two", None)
        observing.cancel()
        await asyncio.wait([observing])


async def test_a_leader_that_is_gone_is_replaced(kv: KeyValue) -> None:
    words = b'{"holder": "gone", "claim_id": "x", "ttl": 1}'
    seen = await kv.create("e", words)
    election = kv.election("e", candidate="next")
    leader = await election.leader()
    assert leader is not None
    assert leader.candidate == "gone"
    gone = await kv.update("e", words, revision=seen, ttl=1)  # From here on its time counts.
    async with election.lead(timeout=20) as term:
        assert term.token > gone


async def test_work_is_cancelled_with_the_leadership_and_begun_anew(
    kv: KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew_soon(monkeypatch)
    tokens: list[int] = []

    async def work(term: Lock) -> None:
        tokens.append(term.token)
        if len(tokens) == 1:
            await kv.delete("e")
            await asyncio.sleep(30)

    await kv.election("e", ttl=LONG_TTL_S).run(work)
    assert len(tokens) == 2
    assert tokens[1] > tokens[0]


async def test_what_the_work_raises_ends_the_campaign_and_resigns(kv: KeyValue) -> None:
    async def work(_: Lock) -> None:
        raise ZeroDivisionError

    election = kv.election("e")
    with pytest.raises(ZeroDivisionError):
        await election.run(work)
    assert await election.leader() is None


async def test_work_without_anything_to_await_is_refused(kv: KeyValue) -> None:
    one = kv.election("e", candidate="one")
    for work, told in ((id, "work returned [0-9]+"), (print, "work returned None")):
        with pytest.raises(ConfigError, match=told) as refused:
            await one.run(cast("Any", work))
        assert "async def work(term)" in refused.value.hint
    assert await one.leader() is None


async def test_a_candidate_campaigns_once_at_a_time(kv: KeyValue) -> None:
    election = kv.election("e")
    with pytest.raises(UsageError):
        await election.resign()
    async with election.lead():
        with pytest.raises(UsageError, match="already"):
            election.lead()
    async with election.lead():
        pass
    unused = election.lead()  # Who describes a term and never enters it does not campaign.
    with pytest.raises(UsageError) as refused:
        unused.check()
    assert "election.lead(...)" in refused.value.hint
    async with election.lead(timeout=20) as term:
        assert term.is_in_use
        assert election.is_leader
    with pytest.raises(ConfigError, match="timeout"):
        election.lead(timeout=-1)


async def test_a_leader_outlives_a_change_of_the_streams_leader(
    cluster_js: JetStream,
    nats_cluster: NatsCluster,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_back_patiently(monkeypatch)
    kv = await cluster_js.kv.ensure(stream_name, limit_marker_ttl=1, replicas=3)
    one, two = kv.election("e", candidate="one", ttl=60), kv.election("e", candidate="two")
    async with one.lead() as term:
        await step_down(cluster_js, nats_cluster, kv.stream.name)

        async def is_written() -> bool:
            try:
                return await term.put("k", b"v") > term.token
            except LockLostError:
                raise
            except Exception:  # noqa: BLE001 - A new leader may take a moment.
                return False

        await eventually_async(is_written, within_s=25)
        assert one.is_leader
        token = term.token
    async with two.lead(timeout=20) as later:
        assert later.token > token
