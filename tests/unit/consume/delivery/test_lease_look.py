"""When a consumer is looked at, and what becomes of leases that were shorter than was known."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from math import inf
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest

from natsstream.api.consumer_config import ConsumerConfig
from natsstream.consume.delivery.lease_look import LOOK_EVERY_S, LeaseLook
from natsstream.consume.delivery.limit_watch import LimitWatch
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.work.in_progress import InProgressTimer
from natsstream.consume.work.report import WorkReport

if TYPE_CHECKING:
    from natsstream.api.requests import Api
    from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage

pytestmark = pytest.mark.asyncio

SOURCE = ConsumerSource(
    api=cast("Api", None), stream="S", consumer="c", ack_wait_ns=60 * 10**9, max_deliver=5
)


def info_of(**config: Any) -> Any:
    """Return a consumer's info, as far as a look reads it."""
    given: dict[str, Any] = {"ack_policy": "explicit", "ack_wait": 60, "max_deliver": 5, **config}
    return SimpleNamespace(stream="S", name="c", created_ns=0, config=ConsumerConfig(**given))


async def test_looks_are_half_the_time_apart_and_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With reminders at any pace up to `LOOK_EVERY_S`, none is later than that."""
    found: list[ConsumerSource] = []
    look, asked, go_on = LeaseLook(SOURCE, LimitWatch(1), found.append), 0, asyncio.Event()

    async def info(self: ConsumerSource, timeout: float | None = None) -> Any:
        nonlocal asked
        del self, timeout
        asked += 1
        await go_on.wait()
        return info_of(ack_wait=asked)

    async def begin(ago_s: float) -> None:
        look._looked_at = asyncio.get_running_loop().time() - ago_s  # pyright: ignore[reportPrivateUsage]
        look.begin()
        await asyncio.sleep(0)

    monkeypatch.setattr(ConsumerSource, "info", info)
    look.begin()
    await begin(LOOK_EVERY_S)
    assert asked == 1  # The first has no answer yet.
    go_on.set()
    await asyncio.sleep(0)
    await begin(0.4 * LOOK_EVERY_S)
    assert asked == 1
    await begin(0.6 * LOOK_EVERY_S)
    assert asked == 2
    assert [each.lease_s for each in found] == [1, 2]


@pytest.mark.parametrize("is_known", [False, True])
async def test_what_was_held_over_a_shorter_lease_is_lost(*, is_known: bool) -> None:
    """Also what waits for a free task; not what is younger than the last reminder.

    A look after that reminder has shown that the lease was the known one.
    """
    client = SimpleNamespace(is_closed=False, is_connected=True)
    source = replace(SOURCE, api=cast("Api", SimpleNamespace(client=client)))
    look = SimpleNamespace(begin=list, end=list, known_at=-inf)
    sender = SimpleNamespace(source=source, lease_look=look, send=Mock())
    report = WorkReport()
    handled, waits, young = (cast("DeliveredMessage", Mock(is_settled=False)) for _ in range(3))
    timer = InProgressTimer(cast("AckSender", sender), report, is_kept=True)
    timer.open(lambda: [waits])
    timer.begin(handled)
    remind = timer._remind  # pyright: ignore[reportPrivateUsage]
    remind()
    await asyncio.sleep(0.1)
    remind()
    timer.begin(young)
    if is_known:
        look.known_at = monotonic()
    timer.renew(replace(SOURCE, ack_wait_ns=50_000_000))
    timer.begin(waits)
    is_lost = not is_known
    assert [timer.is_lost(each) for each in (handled, waits, young)] == [is_lost, is_lost, False]
    assert report.lost_leases == 2 * is_lost
    assert timer.blocked_s(handled) == 0
    timer.close()
