"""Making a stream from a backup's folder: parts go to the server, which answers each.

Law: no stream is ever deleted here. A restore that fails leaves the server to clear up what it had
begun; a stream of the name that somebody has made meanwhile is theirs, and the server refuses the
restore. What the server made is compared with what the backup has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from natsstream._wire import subjects
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream.api.features import RENAMED_RESTORE, unknown_field
from natsstream.api.names import check_stream_name
from natsstream.api.requests import Api, decode
from natsstream.api.stream_config import StreamConfig, without_levels
from natsstream.api.stream_info import StreamInfo
from natsstream.arguments import check_callable, check_seconds
from natsstream.errors import (
    BackupError,
    ProtocolError,
    ServerError,
    StreamNameError,
    SubjectOverlapError,
)
from natsstream.fields import Fields
from natsstream.streams.snapshots.backup import folder_of
from natsstream.streams.snapshots.folder import BackupInfo, check_whole, open_archive, read_folder
from natsstream.streams.snapshots.progress import RestoreProgress

CHUNK_BYTES = 64 << 10
# After the last part the server builds the stream, which takes as long as it takes.
FINISH_TIMEOUT_S = 3_600.0

OnRestore = Callable[[RestoreProgress], object]


async def restore_backup(
    api: Api,
    path: str | Path,
    *,
    name: str | None,
    changes: Mapping[str, object],
    on_progress: OnRestore | None,
    timeout: float | None,
) -> StreamInfo:
    """Make a stream from a folder; see `StreamManager.restore`."""
    folder = folder_of(path)
    if name is not None:
        check_stream_name(name)
    finish_s = FINISH_TIMEOUT_S if timeout is None else check_seconds(timeout, "timeout")
    if on_progress is not None:
        check_callable(on_progress, "on_progress", takes="a RestoreProgress")
    backup = await asyncio.to_thread(read_folder, folder)
    _check_name(backup, name)
    if name not in (None, backup.stream):
        await api.require(RENAMED_RESTORE)
    config = {**backup.config, **changes, "name": name or backup.stream}
    metadata = without_levels(StreamConfig.from_json(config).metadata or {})
    config = {key: value for key, value in config.items() if key != "metadata"}
    if metadata:
        config["metadata"] = metadata
    what = f"restore of stream {config['name']} from {folder}"
    await _refuse_overlap(api, config, what)
    deliver = await _begin(api, backup, config, what)
    sender = _Sender(api, deliver, backup, on_progress, what)
    with open_archive(folder) as file:
        await sender.send(file)
    answer = await sender.finish(finish_s)
    info = StreamInfo.from_json(answer)
    check_whole(info, backup, changes, what)
    sender.tell(is_done=True)
    return info


def _check_name(backup: BackupInfo, name: str | None) -> None:
    """Refuse a folder whose stream has a name that would not be taken from a caller either."""
    if name is not None:
        return
    try:
        check_stream_name(backup.stream)
    except StreamNameError as error:
        raise BackupError(
            f"the backup in {backup.path} is of a stream that can not be made: {error.message}",
            hint="restore(path, name=...) gives it another name; nothing was sent",
        ) from error


async def _refuse_overlap(api: Api, config: Mapping[str, object], what: str) -> None:
    """Refuse subjects that another stream has; the server would say so only at the end."""
    for subject in StreamConfig.from_json(config).subjects or ():
        body: dict[str, object] = {"subject": subject}
        answer = await api.read(subjects.STREAM_NAMES, body, what=what)
        for name in answer.texts("streams"):
            if name != config["name"]:
                raise SubjectOverlapError(
                    f"{what}: stream {name} captures {subject} or a part of it; nothing was sent",
                    hint="give other subjects: restore(path, name=..., subjects=[...])",
                )


async def _begin(api: Api, backup: BackupInfo, config: Mapping[str, object], what: str) -> str:
    """Announce the restore; returns where the parts go."""
    body: dict[str, object] = {"config": config, "state": backup.state}
    subject = subjects.stream_restore(str(config["name"]))
    try:
        answer = await api.change(subject, body, what=what)
    except ServerError as error:
        code = find_error_code(error.err_code)
        if code is ErrorCode.INVALID_JSON:
            raise unknown_field(error, what) from error
        if code is ErrorCode.STREAM_RESTORE:
            raise _failed(what, error) from error
        raise
    deliver = answer.text("deliver_subject", "")
    if not deliver:
        raise ProtocolError(f"{what}: the server does not say where the parts go")
    return deliver


class _Sender:
    """Sends the archive part by part."""

    def __init__(
        self, api: Api, deliver: str, backup: BackupInfo, on_progress: OnRestore | None, what: str
    ) -> None:
        self._client = api.client
        self._deliver = deliver
        self._total = backup.archive_bytes
        self._on_progress = on_progress
        self._what = what
        self._chunks = 0
        self._sent = 0

    async def send(self, file: BinaryIO) -> None:
        """Send the archive; each part waits for the answer to the one before."""
        size = min(CHUNK_BYTES, self._client.max_payload_bytes)
        while part := await asyncio.to_thread(file.read, size):
            frame = await self._client.request(
                self._deliver, part, timeout=self._client.options.request_timeout
            )
            if frame[3]:  # An answer that says something says what went wrong.
                self._read(frame[3])
            self._chunks += 1
            self._sent += len(part)
            self.tell(is_done=False)

    async def finish(self, timeout: float) -> Fields:
        """Say that this was all; returns the info of the stream that is there now."""
        frame = await self._client.request(self._deliver, b"", timeout=timeout)
        return self._read(frame[3])

    def tell(self, *, is_done: bool) -> None:
        """Report how far it is."""
        if self._on_progress is not None:
            self._on_progress(RestoreProgress(self._chunks, self._sent, self._total, is_done))

    def _read(self, payload: bytes) -> Fields:
        try:
            return decode(payload, self._what)
        except ServerError as error:
            if find_error_code(error.err_code) is ErrorCode.STREAM_RESTORE:
                raise _failed(self._what, error) from error
            raise


def _failed(what: str, error: ServerError) -> BackupError:
    return BackupError(
        f"{what} failed: {error.description}",
        hint="the archive may be damaged; one of a server before 2.15 can not be restored under "
        "another name",
    )
