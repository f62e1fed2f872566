"""The import of nats-py, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

IMPORT_TIMEOUT_S = 60

PROGRAM = """
import sys
import natsstream._wire.nats_py
print("aiohttp.client" in sys.modules)
from nats.aio import transport
print("aiohttp" in sys.modules)
print(transport.aiohttp.ClientSession.__name__)
import aiohttp
print(aiohttp.ClientSession is transport.aiohttp.ClientSession)
"""


def test_first_connection_imports_aiohttp_only_for_a_websocket() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=IMPORT_TIMEOUT_S,
        check=True,
    )

    assert done.stdout.split() == ["False", "False", "ClientSession", "True"]
