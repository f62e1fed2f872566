"""Writes a stream into a folder: the server sends parts, and each one written is acknowledged.

Law: a folder gets its name only once the whole stream is in it. A missing part, an error instead of
a part and a lost connection end the backup, and nothing is left of it.

The server sends at most its window (8 to 16 MiB) of parts without an ack, so memory is bounded by
it; a part is acknowledged when it is handed to the disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from natsstream._wire.client import Client
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream._wire.subjects import is_snapshot_ack
from natsstream.api.features import MEMORY_BACKUP
from natsstream.api.requests import Api
from natsstream.api.snapshots import SnapshotStart, start_snapshot
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import check_bool, check_int, check_plain, check_seconds, described
from natsstream.errors import BackupError, ConfigError, NatsStreamError, ServerError
from natsstream.events import PermissionDenied
from natsstream.streams.snapshots.folder import DATA_NAME, META_NAME, BackupInfo, meta_text
from natsstream.streams.snapshots.parts import PartOrder
from natsstream.streams.snapshots.progress import BackupProgress

CHUNK_BYTES = 128 << 10
PART_TIMEOUT_S = 30.0
# With `check` the server reads every message before its first answer.
CHECK_TIMEOUT_S = 3_600.0
# Twice the largest window of a server: more breaks the flow control.
_WAITING_BYTES_MAX = 64 << 20

OnBackup = Callable[[BackupProgress], object]


async def write_backup(
    api: Api,
    stream: StreamConfig,
    path: str | Path,
    *,
    consumers: bool,
    check: bool,
    chunk_size: int | None,
    on_progress: OnBackup | None,
    timeout: float | None,
) -> BackupInfo:
    """Write a stream into a folder; see `Stream.backup`."""
    if stream.storage == "memory":
        await api.require(MEMORY_BACKUP)
    folder = folder_of(path)
    check_bool(consumers, "consumers")
    # A part and its protocol line must fit into one message.
    size_max = min(1 << 20, api.client.max_payload_bytes)
    size = min(CHUNK_BYTES, size_max) if chunk_size is None else chunk_size
    check_int(size, "chunk_size", minimum=1024, maximum=size_max)
    part_s = PART_TIMEOUT_S if timeout is None else check_seconds(timeout, "timeout")
    begin_s = CHECK_TIMEOUT_S if check_bool(check, "check") and timeout is None else part_s
    if on_progress is not None:
        check_plain(on_progress, "on_progress", takes="a BackupProgress", count=1)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists already", hint="give a folder that is absent or empty")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    partial.mkdir(mode=0o700)
    try:
        body = {"no_consumers": not consumers, "jsck": check, "chunk_size": size}
        source = _Parts(api.client, stream.name, part_s, on_progress)
        with (partial / DATA_NAME).open("wb") as file:
            start = await source.receive(api, body, begin_s, file)
        # Not in threads: they continue after a cancellation, while the folder is removed.
        sha256 = source.digest.hexdigest()
        text = meta_text(start.config, start.state, archive_bytes=source.size, sha256=sha256)
        (partial / META_NAME).write_text(text, "utf-8")
        await asyncio.to_thread(_sync, partial)
        _rename(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    source.report(is_done=True)
    return BackupInfo(
        folder,
        start.name,
        start.messages,
        start.last_seq,
        source.size,
        sha256,
        start.config,
        start.state,
    )


def folder_of(path: object) -> Path:
    """Return the path of a folder.

    Raises:
        ConfigError: It is no path.
    """
    try:
        is_path = (
            isinstance(path, str | Path) and bool(str(path)) and b"\0" not in os.fsencode(path)
        )
    except UnicodeEncodeError:
        is_path = False
    if not isinstance(path, str | Path) or not is_path:
        raise ConfigError(f"path is {described(path)}", hint="give the path of a folder")
    return Path(path).resolve()


class _Parts:
    """Moves the parts of one snapshot from the subscription to a file."""

    def __init__(
        self, client: Client, stream: str, timeout: float, on_progress: OnBackup | None
    ) -> None:
        self._client = client
        self._stream = stream
        self._timeout = timeout
        self._on_progress = on_progress
        self._waiting: deque[Frame] = deque()
        self._waiting_bytes = 0
        self._wake = asyncio.Event()
        self._failure: NatsStreamError | None = None
        self._denied: NatsStreamError | None = None
        self._order = PartOrder(stream)
        self.digest = hashlib.sha256()
        self.size: int = 0
        self._stream_bytes = 0

    async def receive(
        self, api: Api, body: Mapping[str, object], begin_s: float, file: BinaryIO
    ) -> SnapshotStart:
        """Request the snapshot, write all parts, and return what it is of."""
        client = self._client
        await client.wait_connected(client.options.request_timeout)
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox, self._on_frames, on_denied=self._fail)
        unwatch = client.watch(self._on_connection)
        unwatch_denied = client.watch_denied(self._on_denied)
        try:
            # The server needs the subscription first, and a denial comes before the answer.
            await client.flush(client.options.request_timeout)
            self._check()
            try:
                start = await start_snapshot(api, self._stream, body, inbox=inbox, timeout=begin_s)
            except ServerError as error:
                if find_error_code(error.err_code) is not ErrorCode.STREAM_SNAPSHOT:
                    raise
                raise self._order.broken(error.description) from error
            self._stream_bytes = start.bytes
            while not self._order.is_complete:
                await self._write_some(file)
        except BackupError as error:
            if self._denied is None:
                raise
            raise self._denied from error  # The server has waited for acks in vain.
        finally:
            unwatch()
            unwatch_denied()
            subscription.close()
        return start

    async def _write_some(self, file: BinaryIO) -> None:
        """Wait for parts, write and acknowledge them."""
        if not self._waiting:
            self._check()
            self._wake.clear()
            try:
                async with asyncio.timeout(self._timeout):
                    await self._wake.wait()
            except TimeoutError:
                raise self._order.broken(f"no part came for {self._timeout:g} s") from None
            self._check()
        parts, replies = self._take()
        if parts:
            await asyncio.to_thread(self._store, file, parts)
        for reply in replies:
            self._client.write(self._client.publish_command(reply, "", b"", b""))
        if parts:
            self.report(is_done=False)

    def _take(self) -> tuple[list[bytes], list[str]]:
        """Return the waiting parts and their reply subjects, and note the end."""
        parts: list[bytes] = []
        replies: list[str] = []
        while self._waiting and not self._order.is_complete:
            part, reply = self._order.take(self._waiting.popleft())
            self._waiting_bytes -= len(part)
            if part:
                parts.append(part)
            if reply:
                replies.append(reply)
        return parts, replies

    def _store(self, file: BinaryIO, parts: list[bytes]) -> None:
        for part in parts:
            file.write(part)
            self.digest.update(part)
            self.size += len(part)

    def report(self, *, is_done: bool) -> None:
        """Call the progress callback."""
        if self._on_progress is not None:
            self._on_progress(
                BackupProgress(self._order.count, self.size, self._stream_bytes, is_done)
            )

    def _on_frames(self, frames: list[Frame]) -> None:
        self._waiting.extend(frames)
        self._waiting_bytes += sum(len(frame[3]) for frame in frames)
        if self._waiting_bytes > _WAITING_BYTES_MAX:
            self._fail(self._order.broken("the server sent more than its window"))
        self._wake.set()

    def _on_connection(self) -> None:
        # Parts in flight are lost, also after a reconnect.
        self._fail(self._order.broken("the connection broke"))

    def _on_denied(self, event: PermissionDenied) -> None:
        # A small stream comes without an ack; of a large one no more parts come.
        if event.operation == "publish" and is_snapshot_ack(event.subject, self._stream):
            self._denied = denied_error(event)

    def _fail(self, error: NatsStreamError) -> None:
        self._failure = self._failure or error
        self._wake.set()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


def _sync(partial: Path) -> None:
    """Flush both files to the disk."""
    for name in (DATA_NAME, META_NAME):
        with (partial / name).open("rb") as file:
            os.fsync(file.fileno())


def _rename(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError as error:
        raise BackupError(
            f"{folder} is not empty any more: another program has written to it",
            detail=str(error),
            hint="give another folder; this one is unchanged",
        ) from error
