"""The future of an ack, which makes the ack when it is asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.publish.ack_window import AckFuture
from natsstream.publish.pub_ack import PubAck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.asyncio

ACK = PubAck("S", 7, domain="hub")


async def by_callback(future: AckFuture) -> PubAck:
    told: list[PubAck] = []
    future.add_done_callback(lambda done: told.append(done.result()))
    await asyncio.wait([future])
    return told[0]


async def by_gather(future: AckFuture) -> PubAck:
    return (await asyncio.gather(future))[0]


async def by_timeout(future: AckFuture) -> PubAck:
    return await asyncio.wait_for(future, 5)


async def by_shield(future: AckFuture) -> PubAck:
    return await asyncio.shield(future)


async def by_await(future: AckFuture) -> PubAck:
    return await future


async def by_result(future: AckFuture) -> PubAck:
    await asyncio.wait([future])
    return future.result()


@pytest.mark.parametrize(
    "wait", [by_await, by_result, by_callback, by_gather, by_timeout, by_shield]
)
@pytest.mark.parametrize("raw", [("S", 7, False, "hub"), ACK], ids=["quick", "whole"])
async def test_every_way_of_waiting_gives_the_ack(
    wait: Callable[[AckFuture], Awaitable[PubAck]], raw: tuple[str, int, bool, str] | PubAck
) -> None:
    future = AckFuture()
    asyncio.get_running_loop().call_soon(future.settle, raw)

    ack = await wait(future)

    assert ack == ACK
    assert await future is ack
