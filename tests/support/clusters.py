"""Clusters in tests: patience for elections, and moving a stream's leader for certain."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from natsstream import connect
from natsstream.errors import NatsStreamError

if TYPE_CHECKING:
    import pytest

    from natsstream import Connection, JetStream
    from natsstream.testing import NatsCluster

# An election takes a moment, and several seconds on a machine that is busy with other tests.
_REQUEST_TIMEOUT_S = 30.0
_RECONNECT_TIMEOUT_S = 60.0
_STEP_DOWN_TIMEOUT_S = 2.0
_PUBLISH_ATTEMPTS = 100


def connect_to(cluster: NatsCluster) -> Connection:
    """Describe a connection that may use each node and waits for elections."""
    return connect(
        cluster.urls, request_timeout=_REQUEST_TIMEOUT_S, reconnect_timeout=_RECONNECT_TIMEOUT_S
    )


def wait_for_leaders(js: JetStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let publishes wait until there is a leader; by themselves they give up after 500 ms."""
    publish = partial(js.publish, retry_attempts=_PUBLISH_ATTEMPTS)
    monkeypatch.setattr(js, "publish", publish)


async def step_down(js: JetStream, cluster: NatsCluster, stream: str) -> None:
    """Ask the stream's leader to step down; returns when there is one again.

    A leader that is just being chosen does not answer, and one that steps down may take its answer
    with it: either way there was a change of leader.
    """
    await asyncio.to_thread(cluster.wait_for_leader, stream)
    with suppress(NatsStreamError):
        subject = f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}"
        await js.core.request(subject, timeout=_STEP_DOWN_TIMEOUT_S)
    await asyncio.to_thread(cluster.wait_for_leader, stream)
