"""The live feed of a core stream: copies of stored messages, and announcements; pure rules.

The server republishes each stored message with headers of its own behind the message's (ADR-28).
Clients announce to each other what the server does not tell: deletions, and changes of the
configuration. An announcement may be lost; the stream's info has the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from natsstream.api.headers import Headers
from natsstream.conat.names import StreamNames
from natsstream.conat.record import Record
from natsstream.errors import ProtocolError
from natsstream.fields import Fields
from natsstream.units import parse_rfc3339
from natsstream.values import to_json

_FIRST_ADDED = b"\r\nNats-Stream: "
_ONLY_ADDED = b"NATS/1.0\r\n\r\n"
_MSG_ID = "Nats-Msg-Id"


class FeedMessage(NamedTuple):
    """A stored message that came on the feed.

    Attributes:
        record: The message as it is stored.
        last_subject_seq: The sequence of the subject's message before it; 0 for none.
    """

    record: Record
    last_subject_seq: int


def stored_copy(names: StreamNames, subject: str, block: bytes, data: bytes) -> FeedMessage | None:
    """Return the stored message of a republished one; None if it is none of the stream.

    Args:
        names: The core stream.
        subject: The subject in the feed.
        block: The header block, with the server's headers at its end.
        data: The payload.

    Raises:
        ProtocolError: The server's headers are not there: another client published it.
    """
    stored_subject = names.data_of(subject)
    if stored_subject is None:
        return None
    at = block.rfind(_FIRST_ADDED)
    if at < 0:
        raise ProtocolError(f"a message on {subject} is no copy of a stored one")
    own = block[: at + 2] + b"\r\n"
    # Always these five, in this order: a parser of headers would take half of a client's time.
    added = block[at + 2 : -4].split(b"\r\n")
    try:
        seq, stored_at, last_subject_seq = (line.partition(b": ")[2] for line in added[2:5])
        record = Record(
            int(seq),
            _time_ns(stored_at.decode()),
            stored_subject if names.is_keyed(stored_subject) else "",
            b"" if own == _ONLY_ADDED else own,
            data,
        )
        return FeedMessage(record, int(last_subject_seq))
    except ValueError as error:
        raise ProtocolError(f"a message on {subject} is no copy of a stored one") from error


def _time_ns(text: str) -> int:
    """Return the Unix nanoseconds of a server's time, which is UTC and has nine digits at most."""
    second, _, fraction = text.removesuffix("Z").partition(".")
    return _second_ns(second) + int(fraction.ljust(9, "0") or "0")


@lru_cache(maxsize=8)
def _second_ns(text: str) -> int:
    return parse_rfc3339(f"{text}Z")


def msg_id_of(record: Record) -> str | None:
    """Return the id that a message was published with; None for none."""
    return Headers(record.headers).get(_MSG_ID) if record.headers else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A note from one client to the others.

    Attributes:
        deleted: Ranges of deleted sequences, both ends included.
        purged: The last sequence of a purge; 0 for none.
        is_config_changed: True if the configuration was changed.
    """

    deleted: tuple[tuple[int, int], ...] = ()
    purged: int = 0
    is_config_changed: bool = False

    def to_json(self) -> bytes:
        """Return the payload."""
        flat = [seq for each in self.deleted for seq in each]
        body = {"ranges": flat, "purged": self.purged, "config": self.is_config_changed}
        return to_json(body).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Announcement:
        """Return the note in a payload.

        Raises:
            ProtocolError: It is none.
        """
        fields = Fields.parse(data, "an announcement")
        flat = fields.integers("ranges")
        return cls(
            deleted=tuple(zip(flat[::2], flat[1::2], strict=False)),
            purged=fields.count("purged"),
            is_config_changed=fields.flag("config"),
        )
