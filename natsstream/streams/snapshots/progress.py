"""How far a backup or a restore is; pure shapes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackupProgress:
    """How far a backup is.

    Attributes:
        chunks: Parts that are written.
        bytes_written: Bytes that are written, as they are stored: compressed.
        stream_bytes: Bytes of the stream when the backup began, not compressed.
        is_done: True in the last call.
    """

    chunks: int
    bytes_written: int
    stream_bytes: int
    is_done: bool


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """How far a restore is.

    Attributes:
        chunks: Parts that the server has taken.
        bytes_sent: Bytes that it has taken.
        bytes_total: Bytes of the archive.
        is_done: True in the last call, when the stream is there.
    """

    chunks: int
    bytes_sent: int
    bytes_total: int
    is_done: bool
