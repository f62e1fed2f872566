"""A server that comes back with an older disk gives sequences anew, and their readers are told.

So does one whose machine lost power before its disk had all. Here the store is set back while the
server is down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import natsstream
from natsstream.errors import StreamRecreatedError
from natsstream.read.leader_reads import LeaderReads
from natsstream.testing import NatsServer
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async
from tests.support.ordered import delete_consumers
from tests.support.stores import keep_store, set_back

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from natsstream.api.stream_info import StreamInfo
    from natsstream.testing import NatsCluster, ServerOptions

pytestmark = pytest.mark.asyncio

KEPT, LOST = 3, 5


@pytest.fixture
def server(nats_server_options: ServerOptions, tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(**nats_server_options, store_dir=tmp_path / "store") as own:
        yield own


READERS: dict[str, Callable[[natsstream.Stream], Any]] = {
    "ordered": lambda stream: stream.ordered(),
    "with a filter": lambda stream: stream.ordered(filters=["*"]),
    "new messages": lambda stream: stream.ordered(deliver_policy="new"),
    "latest": lambda stream: stream.latest(),
}


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
async def test_reader_of_a_stream_that_lost_its_end_is_told(
    server: NatsServer,
    stream_name: str,
    tmp_path: Path,
    make: Callable[[natsstream.Stream], Any],
) -> None:
    async with natsstream.connect(server.url) as js:
        stream = await js.streams.create(stream_name, subjects=["*"])
        for number in range(KEPT):
            await js.publish(f"kept{number}", b"")
        keep_store(server, tmp_path)
        async with make(stream) as reader:
            async with js.publisher(retry_for=20) as publisher:
                for number in range(LOST):
                    await publisher.send(f"lost{number}", b"")
            while (await anext(reader)).sequence < KEPT + LOST:
                pass
            set_back(server, tmp_path)

            with pytest.raises(StreamRecreatedError) as caught:
                await anext(reader)
            for number in range(LOST + 1):
                await stream.publish(f"new{number}", b"")
            with pytest.raises(StreamRecreatedError):
                await anext(reader)

    assert f"ends at {KEPT}, before {KEPT + LOST}" in caught.value.message
    assert "it lost its end" in caught.value.detail


async def test_reader_that_has_read_nothing_yet_is_told_as_well(
    server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    async with natsstream.connect(server.url) as js:
        stream = await js.streams.create(stream_name, subjects=["*"])
        await js.publish("kept", b"")
        keep_store(server, tmp_path)
        async with js.publisher(retry_for=20) as publisher:
            await publisher.send("lost", b"")
        async with stream.ordered(deliver_policy="new") as reader:
            set_back(server, tmp_path)

            with pytest.raises(StreamRecreatedError, match="ends at 1, before 2"):
                await anext(reader)


async def test_mirror_of_a_bucket_that_lost_its_end_answers_no_more(
    server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    async with natsstream.connect(server.url) as js:
        kv = await js.kv.create(stream_name)
        await kv.put("a", b"kept")
        keep_store(server, tmp_path)
        async with kv.cached() as mirror:
            revision = await mirror.put("a", b"lost")
            assert mirror.get("a") is not None
            set_back(server, tmp_path)

            async def has_ended() -> bool:
                try:
                    mirror.get("a")
                except StreamRecreatedError as error:
                    return f"ends at {revision - 1}, before {revision}" in error.message
                return False

            await eventually_async(has_ended, within_s=40)


async def test_short_answer_of_a_leader_that_was_cut_off_ends_no_reader(
    nats_cluster: NatsCluster, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await js.streams.create(stream_name, subjects=[stream_name], replicas=3)
        await js.publish(stream_name, b"1")
        old = await stream.info()
        await js.publish(stream_name, b"2")
        told: list[StreamInfo] = []
        ask = LeaderReads.info

        async def info(self: LeaderReads, **options: float | None) -> StreamInfo:
            if len(told) < 2:
                told.append(old)
                return old
            return await ask(self, **options)

        async with stream.ordered() as reader:
            assert [(await anext(reader)).sequence for _ in range(2)] == [1, 2]
            monkeypatch.setattr(LeaderReads, "info", info)
            await delete_consumers(js, stream_name)
            await js.publish(stream_name, b"3")

            assert (await anext(reader)).sequence == 3
        assert told == [old, old]
