"""The progress of a backup or a restore."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackupProgress:
    """The progress of a backup.

    Attributes:
        chunks: Parts written.
        bytes_written: Bytes written, compressed as in the file.
        stream_bytes: Bytes of the stream when the backup began, uncompressed.
        is_done: True in the last call.
    """

    chunks: int
    bytes_written: int
    stream_bytes: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """The progress of a restore.

    Attributes:
        chunks: Parts that the server has acknowledged.
        bytes_sent: Bytes that it has acknowledged.
        bytes_total: Bytes of the archive.
        is_done: True in the last call, when the stream exists.
    """

    chunks: int
    bytes_sent: int
    bytes_total: int
    is_done: bool
