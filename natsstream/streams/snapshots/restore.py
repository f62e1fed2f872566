"""Creates a stream from a backup's folder: the server acknowledges each part.

Law: no stream is ever deleted here. After a failed restore the server cleans up; if another client
has created a stream of the name meanwhile, the server refuses the restore. The restored stream is
compared with the backup.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream._wire.errors_map import server_error
from natsstream.api.features import RENAMED_RESTORE, unknown_field
from natsstream.api.metadata import without_levels
from natsstream.api.names import check_stream_name, collide
from natsstream.api.requests import Api, decode
from natsstream.api.snapshots import start_restore
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import find_streams
from natsstream.arguments import check_plain, check_seconds
from natsstream.errors import (
    BackupError,
    ConfigError,
    ServerError,
    StreamNameError,
    SubjectOverlapError,
)
from natsstream.fields import Fields
from natsstream.streams.snapshots.backup import folder_of
from natsstream.streams.snapshots.folder import BackupInfo, check_whole, open_archive, read_folder
from natsstream.streams.snapshots.progress import RestoreProgress
from natsstream.streams.snapshots.restored_consumers import wait_for_consumers

CHUNK_BYTES = 64 << 10
# After the last part the server builds the stream, which may take long.
FINISH_TIMEOUT_S = 3_600.0

# The beginning of the subjects of a bucket and a store, by the prefix of their streams.
_VIEW_SUBJECTS = {"KV_": "$KV.", "OBJ_": "$O."}
_WRAPPED_CODE = re.compile(r"\((\d{5})\)")

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
    """Create a stream from a folder; see `StreamManager.restore`."""
    folder = folder_of(path)
    if name is not None:
        check_stream_name(name)
    finish_s = FINISH_TIMEOUT_S if timeout is None else check_seconds(timeout, "timeout")
    if on_progress is not None:
        check_plain(on_progress, "on_progress", takes="a RestoreProgress", count=1)
    backup = await asyncio.to_thread(read_folder, folder)
    _check_name(backup, name)
    _check_view(backup, name or backup.stream)
    if name not in (None, backup.stream):
        await api.require(RENAMED_RESTORE)
    independent = {"mirror_direct": False} if changes.get("mirror") == {} else {}
    config = {**backup.config, **independent, **changes, "name": name or backup.stream}
    metadata = without_levels(StreamConfig.from_json(config).metadata or {})
    # An empty part stands for none: `mirror={}` ends a mirror, as it does in an update.
    config = {key: value for key, value in config.items() if key != "metadata" and value != {}}
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
    await wait_for_consumers(api, info)
    sender.report(is_done=True)
    return info


def _check_name(backup: BackupInfo, name: str | None) -> None:
    """Refuse a backup whose stream has an illegal name."""
    if name is not None:
        return
    try:
        check_stream_name(backup.stream)
    except StreamNameError as error:
        raise BackupError(
            f"the backup in {backup.path} has a stream that cannot be created: {error.message}",
            hint="restore(path, name=...) gives it another name; nothing was sent",
        ) from error


def _check_view(backup: BackupInfo, name: str) -> None:
    """Refuse one bucket or object store as another, which reads its own subjects only.

    A mirror has no subjects, and its messages may be those of the wanted bucket.
    """
    starts = tuple(_VIEW_SUBJECTS.values())
    captured = StreamConfig.from_json(backup.config).subjects or ()
    held = [each for each in captured if each.startswith(starts)]
    read = [
        f"{start}{name.removeprefix(prefix)}.>"
        for prefix, start in _VIEW_SUBJECTS.items()
        if name.startswith(prefix)
    ]
    is_other = held and read and not any(collide(each, read[0]) for each in held)
    if is_other and name != backup.stream:
        raise ConfigError(
            f"stream {backup.stream} cannot become {name}: its messages keep their subjects, "
            f"those of {held[0]}; nothing was sent",
            hint=f"restore(path) makes {backup.stream}, in another account or on another server; "
            "beside it use a plain stream: restore(path, name='VERIFY', subjects=['verify'])",
        )


async def _refuse_overlap(api: Api, config: Mapping[str, object], what: str) -> None:
    """Refuse subjects of another stream; the server would refuse them only at the end."""
    is_view = str(config["name"]).startswith(tuple(_VIEW_SUBJECTS))
    for subject in StreamConfig.from_json(config).subjects or ():
        for name in await find_streams(api, subject):
            if name != config["name"]:
                raise SubjectOverlapError(
                    f"{what}: stream {name} captures {subject} or a part of it; nothing was sent",
                    hint=f"narrow the subjects of {name}"
                    if is_view  # It reads no others.
                    else "give other subjects, for new messages: "
                    "restore(path, name=..., subjects=[...])",
                )


async def _begin(api: Api, backup: BackupInfo, config: Mapping[str, object], what: str) -> str:
    """Start the restore; return the subject for the parts."""
    try:
        return await start_restore(api, config, backup.state, what=what)
    except ServerError as error:
        code = find_error_code(error.err_code)
        if code is ErrorCode.INVALID_JSON:
            raise unknown_field(error, what) from error
        if code is ErrorCode.STREAM_RESTORE:
            raise _failed(what, error) from error
        raise


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
            if frame[3]:  # An ack is empty; any other answer is an error.
                self._read(frame[3])
            self._chunks += 1
            self._sent += len(part)
            self.report(is_done=False)

    async def finish(self, timeout: float) -> Fields:
        """Send the end; return the info of the restored stream."""
        frame = await self._client.request(self._deliver, b"", timeout=timeout)
        return self._read(frame[3])

    def report(self, *, is_done: bool) -> None:
        """Call the progress callback."""
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
    hint = (
        "the archive may be damaged; one of a server before 2.15 cannot be restored under another "
        "name"
    )
    # The server wraps the error that it would give to a creation; its code stands in the text.
    wrapped = _WRAPPED_CODE.search(error.description)
    if wrapped is not None:
        cause = server_error({"err_code": int(wrapped[1])}, what=what)
        change = cause.hint or "change what the server names"
        hint = f"{change}; fields of the stream follow the path: restore(path, replicas=1)"
    return BackupError(f"{what} failed: {error.description}", hint=hint)
