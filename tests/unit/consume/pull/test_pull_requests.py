"""Unit tests of what the pulls of a flow say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.pull.requests import ConsumeOptions, GroupOptions, PullRequests
from natsstream.units import NS_PER_SECOND

if TYPE_CHECKING:
    from natsstream.api.requests import Api


def source(**fields: Any) -> ConsumerSource:
    """Return a consumer that is never asked."""
    return ConsumerSource(api=cast("Api", None), stream="S", consumer="c", **fields)


def said(asking: PullRequests, count: int = 5, max_bytes: int = 0) -> dict[str, object]:
    """Return what a pull says."""
    return json.loads(asking.body(count, max_bytes))


def test_pull_waits_no_longer_than_the_consumer_allows() -> None:
    asking = PullRequests(ConsumeOptions(expires_s=30), source(max_expires_ns=3 * NS_PER_SECOND))
    assert said(asking)["expires"] == 3 * NS_PER_SECOND
    # Heartbeats fit twice into it.
    assert said(asking)["idle_heartbeat"] == 3 * NS_PER_SECOND // 2
    asking.limit_expires(60 * NS_PER_SECOND)
    assert said(asking)["expires"] == 30 * NS_PER_SECOND
    asking.limit_expires(2 * NS_PER_SECOND)
    asking.limit_expires(0)
    assert said(asking)["expires"] == 30 * NS_PER_SECOND


def test_pull_carries_the_pin_while_there_is_one() -> None:
    options = ConsumeOptions(group=GroupOptions(group="jobs"))
    asking = PullRequests(options, source(priority_policy="pinned_client"))
    assert asking.is_pinning
    assert "id" not in said(asking)
    assert asking.set_pin("a")
    assert not asking.set_pin("a")
    assert said(asking)["id"] == "a"
    assert asking.set_pin("")
    assert "id" not in said(asking)


def test_bodies_that_are_kept_are_bounded() -> None:
    asking = PullRequests(ConsumeOptions(), source())
    for count in range(1, 1_000):
        assert said(asking, count)["batch"] == count
    assert len(asking._bodies) <= 64  # pyright: ignore[reportPrivateUsage]
