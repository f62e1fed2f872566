"""Clusters in tests: patience for elections, and moving a stream's leader for certain."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from natsstream import blocking, connect
from natsstream.errors import NatsStreamError
from tests.support.eventually import POLL_S

if TYPE_CHECKING:
    import pytest

    from natsstream import Connection, JetStream
    from natsstream.testing import NatsCluster
    from natsstream.testing.backends import NatsNodes

# An election takes a moment, and several seconds on a machine that is busy with other tests.
_REQUEST_TIMEOUT_S = 30.0
_RECONNECT_TIMEOUT_S = 60.0
_STEP_DOWN_TIMEOUT_S = 2.0
# A leader that has heard the question has given up long before.
_CHANGE_S = 5.0
_PUBLISH_ATTEMPTS = 100


def connect_to(cluster: NatsCluster) -> Connection:
    """Describe a connection that may use each node and waits for elections."""
    return connect(
        cluster.urls, request_timeout=_REQUEST_TIMEOUT_S, reconnect_timeout=_RECONNECT_TIMEOUT_S
    )


def delete_streams(cluster: NatsNodes) -> None:
    """Delete all streams; a cluster that does not answer keeps them."""
    connection = blocking.connect(
        cluster.urls, request_timeout=_STEP_DOWN_TIMEOUT_S, reconnect_timeout=_STEP_DOWN_TIMEOUT_S
    )
    with suppress(NatsStreamError), connection as js:
        for name in js.streams.names():
            js.streams.delete(name)


def wait_for_leaders(js: JetStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let publishes wait until there is a leader; by themselves they give up after 500 ms."""
    publish = partial(js.publish, retry_attempts=_PUBLISH_ATTEMPTS)
    monkeypatch.setattr(js, "publish", publish)


async def step_down(js: JetStream, cluster: NatsCluster, stream: str) -> None:
    """Ask the stream's leader to step down; returns when there is another one, or it is anew.

    A leader that is just being chosen does not answer, and one that steps down may take its answer
    with it, so who leads since when is looked at; a question that was lost is asked again.
    """
    await asyncio.to_thread(cluster.wait_for_leader, stream)
    before = await _lead(js, stream)
    deadline = asyncio.get_running_loop().time() + _REQUEST_TIMEOUT_S
    has_changed = False
    while not has_changed and asyncio.get_running_loop().time() < deadline:
        with suppress(NatsStreamError):
            subject = f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}"
            await js.core.request(subject, timeout=_STEP_DOWN_TIMEOUT_S)
        has_changed = await _is_led_anew(js, stream, before)
    await asyncio.to_thread(cluster.wait_for_leader, stream)


async def _is_led_anew(js: JetStream, stream: str, before: tuple[object, object] | None) -> bool:
    """Look for the change; what can not be told is taken for one."""
    deadline = asyncio.get_running_loop().time() + _CHANGE_S
    while before is not None and (now := await _lead(js, stream)) is not None:
        if now != before:
            break
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


async def _lead(js: JetStream, stream: str) -> tuple[object, object] | None:
    """Return who leads a stream since when; None where it does not tell."""
    try:
        info = (await js.streams.get(stream)).cached
    except NatsStreamError:
        return None
    return (info.cluster.leader, info.cluster.leader_since_ns) if info.cluster else None
