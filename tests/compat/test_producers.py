"""Producers on each server version."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import pytest

from natsstream import connect
from natsstream.errors import ConfigError, NatsStreamError, UnsupportedServerError
from natsstream.testing import NatsCluster, server_binary
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import JetStream, StreamFields

pytestmark = pytest.mark.asyncio

_TTL = (2, 11)
_ATOMIC = (2, 12)


async def test_exclusive_producer_works_everywhere(
    js: JetStream, nats_name: str, line: tuple[int, int]
) -> None:
    del line
    stream = await js.streams.ensure(nats_name, subjects=[f"{nats_name}.>"])
    for life in range(2):
        options = {"subject": f"{nats_name}.d", "mode": "exclusive", "update_stream": True}
        async with await js.producer(nats_name, "p", **options) as producer:  # pyright: ignore[reportArgumentType]
            for number in range(50):
                producer.append(b"%d" % (50 * life + number), checkpoint=number)
    stored = [m.data async for m in stream.read(first_seq=1, filters=[f"{nats_name}.d"])]
    assert stored == [b"%d" % number for number in range(100)]


async def test_old_server_refuses_shared_mode_naming_the_version(
    js: JetStream, nats_name: str, line: tuple[int, int]
) -> None:
    stream = await js.streams.ensure(nats_name, subjects=[f"{nats_name}.>"])
    opening = js.producer(nats_name, "p", subject=f"{nats_name}.d", update_stream=True)
    if line < _ATOMIC:
        with pytest.raises(UnsupportedServerError, match="exclusive") as caught:
            await opening
        version = f"{line[0]}.{line[1]}."
        assert caught.value.needs == "2.12"
        assert caught.value.version.startswith(version)
        assert version in str(caught.value)
        return
    async with await opening as producer:
        for number in range(100):
            producer.append(b"%d" % number)
    stored = [m.data async for m in stream.read(first_seq=1, filters=[f"{nats_name}.d"])]
    assert stored == [b"%d" % number for number in range(100)]


async def test_stream_whose_max_age_would_remove_the_state_is_refused(
    js: JetStream, nats_name: str, line: tuple[int, int]
) -> None:
    await js.streams.ensure(nats_name, subjects=[f"{nats_name}.>"], max_age=3_600)
    opening = js.producer(nats_name, "p", mode="exclusive", update_stream=True)
    if line < _TTL:
        with pytest.raises(ConfigError, match="max_age"):
            await opening
        return
    async with await opening as producer:
        await producer.append_wait(b"x", subject=f"{nats_name}.d")


@pytest.fixture(scope="module", params=["2.11", "2.12", "2.14"])
def nats_cluster(request: pytest.FixtureRequest) -> Iterator[NatsCluster]:
    """A cluster of each release line that treats message TTLs in its own way."""
    with NatsCluster(binary=server_binary(cast("str", request.param))) as cluster:
        yield cluster


async def test_stream_with_one_replica_outlives_its_server_in_a_cluster(
    nats_cluster: NatsCluster, nats_name: str
) -> None:
    """2.11 and 2.12 lose it if its message TTLs were turned on after its creation."""
    options = {"subject": f"{nats_name}.d", "mode": "exclusive", "update_stream": True}
    async with connect(nats_cluster.urls, request_timeout=30) as js:
        stream = await js.streams.create(nats_name, subjects=[f"{nats_name}.>"], replicas=1)
        async with await js.producer(nats_name, "p", **options) as producer:  # pyright: ignore[reportArgumentType]
            await producer.append_wait(b"before")
        metadata = (await stream.info()).config.metadata
        node = await asyncio.to_thread(nats_cluster.wait_for_leader, nats_name)
        node.kill()
        await asyncio.to_thread(node.start)

        async def is_back() -> bool:
            # Servers before 2.15 begin with the configuration of the creation.
            with suppress(NatsStreamError):
                return (await stream.info()).config.metadata == metadata
            return False

        await eventually_async(is_back, within_s=30)
        async with await js.producer(nats_name, "p", **options) as producer:  # pyright: ignore[reportArgumentType]
            await producer.append_wait(b"behind")
        stream = await js.streams.get(nats_name)
        assert [m.data async for m in stream.read()] == [b"before", b"behind"]
        await asyncio.to_thread(nats_cluster.wait_until_ready)


async def test_stream_with_one_replica_and_a_max_age_needs_ttls_from_the_beginning(
    nats_cluster: NatsCluster, nats_name: str
) -> None:
    async with connect(nats_cluster.urls, request_timeout=30) as js:
        fields: StreamFields = {"subjects": [f"{nats_name}.>"], "max_age": 3_600}
        await js.streams.create(nats_name, **fields)
        opening = js.producer(nats_name, "p", mode="exclusive", update_stream=True)
        if nats_cluster.version.startswith("2.14"):
            await (await opening).detach()
            return
        with pytest.raises(ConfigError, match="allow_msg_ttl"):
            await opening
        await js.streams.delete(nats_name)
        await js.streams.create(nats_name, **fields | {"allow_msg_ttl": True})
        await (await js.producer(nats_name, "p", mode="exclusive", update_stream=True)).detach()
