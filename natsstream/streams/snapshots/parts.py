"""The parts of a snapshot, in their order; pure rules.

Law: a missing part, and an error instead of a part, end the backup.

Source: nats-server's jetstream_api.go streamSnapshot: each part but the last short one requests an
ack on a subject that ends in its size and its number, from 1; then an empty message, with or
without a status, ends the snapshot.
"""

from __future__ import annotations

from natsstream._wire.parser import Frame
from natsstream._wire.status import StatusCode, parse_status
from natsstream.errors import BackupError


class PartOrder:
    """Checks the order of one snapshot's frames.

    Args:
        stream: Name of the stream, for errors.

    Attributes:
        count: Parts so far.
        is_complete: True once the end has come.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self.count: int = 0
        self.is_complete: bool = False

    def take(self, frame: Frame) -> tuple[bytes, str]:
        """Return the next part and its reply subject; both are empty at the end.

        Raises:
            BackupError: A part is missing, or the server reports an error.
        """
        _, reply, header, payload = frame
        if not payload:
            status = parse_status(header) if header else None
            if status is not None and status.code != StatusCode.END_OF_BATCH:
                raise self.broken(f"{status.code} {status.description}")
            self.is_complete = True
            return b"", ""
        self.count += 1
        asked = reply.decode("utf-8", "surrogateescape")
        if reply and reply.split(b".")[-2:] != [b"%d" % len(payload), b"%d" % self.count]:
            raise self.broken(f"part {self.count} is missing: {asked} came instead")
        return payload, asked

    def broken(self, why: str) -> BackupError:
        """Return the error of an incomplete snapshot."""
        error = BackupError(
            f"backup of stream {self._stream} ended early: {why}",
            hint="try again; nothing is left of this one",
        )
        error.retryable = True
        return error
