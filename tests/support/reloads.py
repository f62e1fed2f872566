"""Servers whose configuration is changed while they run."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "reloaded"
_DONE = "Reloaded server configuration"


def reloadable(folder: Path, config: str) -> NatsServer:
    """Return a server whose configuration has its name, which a reload may not change."""
    return NatsServer(store_dir=folder, name=_NAME, config=f"server_name: {_NAME}\n{config}")


async def reload(server: NatsServer, folder: Path, before: str, after: str) -> None:
    """Put other text in place of some in a server's configuration, and wait until it is used.

    Args:
        server: The server, which runs.
        folder: Its `store_dir`.
        before: Text of its configuration.
        after: The text in its place.
    """
    path = folder / "server.conf"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))

    def count() -> int:
        return server.log_tail(10_000).count(_DONE)

    done = count()
    os.kill(server.pid, signal.SIGHUP)

    async def is_done() -> bool:
        return await asyncio.to_thread(count) > done

    await eventually_async(is_done)
