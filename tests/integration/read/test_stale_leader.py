"""A leader that was cut off answers with what it had then: a read must not take that for a loss.

Found by `scripts/chaos --replicas 3 --seed 21`: two leaders of a stream for a moment. Here the real
cluster's own earlier answer is given once more, in the middle of a read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.read.leader_reads import LeaderReads
from tests.support.clusters import connect_to
from tests.support.ordered import delete_consumers
from tests.support.streams import by_messages, fill, read_and_disturb

if TYPE_CHECKING:
    from natsstream.api.stream_info import StreamInfo
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

OLD, COUNT = 300, 6_000
SIZE = 8_000
TIMES = 4


async def test_answer_of_a_leader_that_was_cut_off_is_not_taken_for_a_loss(
    nats_cluster: NatsCluster, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, OLD, size=SIZE, replicas=3)
        old = await stream.info()
        await fill(js, stream_name, COUNT - OLD, size=SIZE, start=OLD, replicas=3)
        told: list[StreamInfo] = []
        is_cut_off = False
        ask = LeaderReads.info

        async def info(self: LeaderReads, **options: bool | float | None) -> StreamInfo:
            if is_cut_off and len(told) < TIMES:
                told.append(old)
                return old
            return await ask(self, **options)  # pyright: ignore[reportArgumentType] - passed on.

        monkeypatch.setattr(LeaderReads, "info", info)

        async def cut_off() -> None:
            nonlocal is_cut_off
            is_cut_off = True
            await delete_consumers(js, stream_name)

        found = await read_and_disturb(by_messages(stream.read()), cut_off, after=OLD + 1)
        assert found == list(range(1, COUNT + 1))
        assert told
        monkeypatch.undo()
        await stream.delete()
