"""The harness itself: its waits end, its processes end, and the user's settings stay outside."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.client import RefusedError
from tests.interop.clients.nats_js import NatsJs, NodeProcess
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.testing import NatsServer
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio


@pytest.fixture
def own_process(nats_js_packages: Path) -> NodeProcess:
    """A process of nats.js for this test alone, which starts and ends it."""
    node = shutil.which("node")
    assert node is not None
    return NodeProcess(node, nats_js_packages)


@pytest.mark.needs_go
async def test_cli_does_not_see_the_settings_of_the_user(
    nats_cli: NatsCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_CONTEXT", "production")
    monkeypatch.setenv("NATS_URL", "nats://127.0.0.1:1")

    assert b"Account Information" in (await nats_cli.run("account", "info")).stdout


@pytest.mark.needs_go
async def test_cli_command_without_an_end_is_killed_at_its_deadline(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})

    with pytest.raises(TimeoutError):
        await nats_cli.run("subscribe", f"--stream={stream_name}", "--all", timeout_s=0.2)


@pytest.mark.needs_go
@pytest.mark.needs_node
async def test_refusal_names_the_code_of_the_server(
    nats_cli: NatsCli, nats_js: NatsJs, stream_name: str
) -> None:
    for client in (nats_cli, nats_js):
        with pytest.raises(RefusedError) as refused:
            await client.create({"name": stream_name, "num_replicas": 3})

        assert refused.value.err_code == 10074


@pytest.mark.needs_node
async def test_call_of_nats_js_that_takes_too_long_ends(nats_js: NatsJs, stream_name: str) -> None:
    handle = await nats_js.call("subscribe", subject=stream_name)

    with pytest.raises(TimeoutError):
        # Its own time is long, so that its answer can not come together with the deadline here.
        await nats_js.call("take", handle=handle, count=1, timeout_ms=60_000, timeout_s=0.05)

    assert await nats_js.take(handle, 1, within_s=0.01) == []
    await nats_js.drop(handle)


@pytest.mark.needs_node
async def test_calls_fail_at_once_when_the_process_of_nats_js_dies(
    own_process: NodeProcess, server: NatsServer, stream_name: str
) -> None:
    with own_process:
        nats_js = NatsJs(own_process, server.url)
        handle = await nats_js.call("subscribe", subject=stream_name)
        waiting = asyncio.ensure_future(nats_js.take(handle, 1))
        # While this one is answered, the other one has begun to wait.
        assert await nats_js.take(handle, 0) == []

        os.kill(own_process.pid, signal.SIGKILL)

        with pytest.raises(RuntimeError, match="has ended"):
            await waiting
        with pytest.raises(RuntimeError, match="has ended"):
            await nats_js.take(handle, 1)


@pytest.mark.needs_node
async def test_process_of_nats_js_ends_with_its_block(own_process: NodeProcess) -> None:
    with own_process:
        pid = own_process.pid

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.needs_node
async def test_handle_gives_its_consumer_back(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    stream = await ours.js.streams.get(stream_name)
    handle = await nats_js.call("ordered", stream=stream_name, options={})

    async def is_used() -> bool:
        return (await stream.info()).state.consumer_count == 1

    assert await eventually_async(is_used, within_s=30)

    await nats_js.drop(handle)

    async def is_free() -> bool:
        return (await stream.info()).state.consumer_count == 0

    assert await eventually_async(is_free, within_s=30)
