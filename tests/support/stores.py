"""Servers whose disk is set back: a store is kept, and given to the server again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.testing import NatsServer


def keep_store(server: NatsServer, folder: Path) -> None:
    """Copy the store of a server, which is down for that.

    Args:
        server: The server; its `store_dir` is `store` in the folder.
        folder: Has the copy as `kept`.
    """
    server.stop(keep_store=True)
    shutil.copytree(folder / "store", folder / "kept")
    server.start()


def set_back(server: NatsServer, folder: Path) -> None:
    """Give a server the store that was kept."""
    server.stop(keep_store=True)
    shutil.rmtree(folder / "store")
    shutil.copytree(folder / "kept", folder / "store")
    server.start()
