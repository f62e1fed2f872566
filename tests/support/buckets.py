"""Buckets in tests: one, on one server or on three replicas."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from natsstream import connect
from tests.support.clusters import connect_to, wait_for_leaders

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import pytest

    from natsstream.kv.bucket import Bucket
    from natsstream.kv.key_value import KeyValue
    from natsstream.testing import NatsCluster, NatsNode


@asynccontextmanager
async def bucket_on(
    place: str,
    name: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    **fields: Any,
) -> AsyncGenerator[KeyValue]:
    """Make a bucket in memory, and delete it afterwards.

    Args:
        place: "R1" is the shared server, "R3" three replicas on the shared cluster.
        name: Its name.
        request: What has the servers.
        monkeypatch: Has publishes wait for leaders on the cluster.
        fields: Fields of `BucketConfig`.
    """
    if place == "R1":
        server: NatsNode = request.getfixturevalue("server")
        connection, replicas = connect(server.url), 1
    else:
        cluster: NatsCluster = request.getfixturevalue("nats_cluster")
        connection, replicas = connect_to(cluster), 3
    async with connection as js:
        if replicas > 1:
            wait_for_leaders(js, monkeypatch)
        yield await js.kv.ensure(name, storage="memory", replicas=replicas, **fields)
        await js.kv.delete(name)


def bucket_of(kv: KeyValue) -> Bucket:
    """Return what a bucket's locks and mirrors stand on."""
    return kv._bucket  # pyright: ignore[reportPrivateUsage]
