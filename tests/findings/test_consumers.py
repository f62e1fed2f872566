"""Findings 9, 10, 11, 25 and 32: consumers that are deleted, changed, created again and listed.

nats-py 2.16 waits out the whole timeout of a fetch whose consumer is gone, erases six fields when a
configuration that it has read is written back, changes a live consumer by creating it, and lists
the first page only.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from nats.js.api import ConsumerConfig as NatsPyConfig

from natsstream.errors import ConsumerDeletedError, ConsumerExistsError, PullLimitError
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

LONG_S = 30.0
LIMITS: dict[str, Any] = {
    "max_batch": 7,
    "max_expires": 3.0,
    "max_bytes": 99,
    "priority_groups": ("g",),
    "priority_policy": "pinned_client",
    "priority_timeout": 60.0,
}


@pytest.mark.finding(9)
async def test_fetch_ends_at_once_when_its_consumer_is_deleted(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name)
    consumer = await stream.consumers.create("c")
    fetch = asyncio.ensure_future(consumer.fetch(10, timeout=LONG_S))

    async def waits() -> bool:
        return (await consumer.info()).num_waiting == 1

    await eventually_async(waits)
    await stream.consumers.delete("c")
    async with asyncio.timeout(LONG_S / 3):
        done = await asyncio.gather(fetch, return_exceptions=True)

    error = done[0] if isinstance(done[0], BaseException) else done[0].error
    assert isinstance(error, ConsumerDeletedError)


@pytest.mark.finding(9)
async def test_fetch_beyond_a_limit_ends_at_once(js: JetStream, stream_name: str) -> None:
    """A server that is asked for more than the consumer allows; the handle does not know of it."""
    stream = await js.streams.create(stream_name)
    consumer = await stream.consumers.create("c")
    await stream.consumers.update("c", max_batch=2)

    async with asyncio.timeout(LONG_S / 3):
        done = await asyncio.gather(consumer.fetch(10, timeout=LONG_S), return_exceptions=True)

    error = done[0] if isinstance(done[0], BaseException) else done[0].error
    assert isinstance(error, PullLimitError)


@pytest.mark.finding(10)
async def test_configuration_that_was_read_is_written_back_whole(
    js: JetStream,
    nats_py: Any,
    stream_name: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    stream = await js.streams.create(stream_name)
    await stream.consumers.create("c", **LIMITS)
    config = (await stream.consumers.get("c")).cached.config

    written = await stream.consumers.update(replace(config, description="new"))

    held = written.cached.config
    assert {name: getattr(held, name) for name in LIMITS} == LIMITS
    assert [each.name for each in written.change.fields] == ["description"]
    theirs = (await nats_py.jetstream(timeout=30).consumer_info(stream_name, "c")).config
    await nats_py.jetstream(timeout=30).add_consumer(stream_name, theirs)
    left = (await stream.consumers.get("c")).cached.config
    erased = [name for name in LIMITS if getattr(left, name) != LIMITS[name]]
    record_testsuite_property("finding 10: nats-py erased", ", ".join(erased) or "nothing")


@pytest.mark.finding(11)
async def test_create_does_not_change_a_live_consumer(
    js: JetStream,
    nats_py: Any,
    stream_name: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    stream = await js.streams.create(stream_name)
    await stream.consumers.create("c", ack_wait=5)

    with pytest.raises(ConsumerExistsError):
        await stream.consumers.create("c", ack_wait=99)

    assert (await stream.consumers.get("c")).cached.config.ack_wait == 5
    theirs = NatsPyConfig(durable_name="c", ack_wait=99)
    await nats_py.jetstream(timeout=30).add_consumer(stream_name, theirs)
    now = (await stream.consumers.get("c")).cached.config.ack_wait
    record_testsuite_property("finding 11: nats-py's create made ack_wait", now)


@pytest.mark.finding(25)
async def test_info_has_what_the_server_says(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name)
    await js.publish(stream_name, b"x")
    await stream.consumers.create("c", priority_groups=["g"], priority_policy="overflow")
    await stream.consumers.pause("c", duration=60)

    state = (await stream.info()).state
    info = (await stream.consumers.get("c")).cached

    assert (state.first_time_ns > 0, state.last_time_ns > 0, state.num_subjects) == (True, True, 1)
    assert info.time_ns > info.created_ns > 0
    assert 0 < info.pause.remaining <= 60
    assert [group.group for group in info.priority_groups] == ["g"]
