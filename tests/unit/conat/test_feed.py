"""Messages of the live feed as nats-server writes them."""

from __future__ import annotations

import pytest

from natsstream.conat.feed import Announcement, stored_copy
from natsstream.conat.names import StreamNames
from natsstream.errors import ProtocolError

NAMES = StreamNames("hub/x")
ADDED = (
    b"Nats-Stream: CN_x\r\nNats-Subject: cn.d.x.m\r\nNats-Sequence: 42\r\n"
    b"Nats-Time-Stamp: 2026-11-23T21:34:00.1236Z\r\nNats-Last-Sequence: 41\r\n\r\n"
)


@pytest.mark.parametrize("own", [b"", b"CN-Enc: 0\r\n", b"Nats-Stream: fake\r\nCN-Enc: 0\r\n"])
def test_a_copy_has_the_headers_that_are_stored(own: bytes) -> None:
    feed = NAMES.feed_of(NAMES.unkeyed)
    copy = stored_copy(NAMES, feed, b"NATS/1.0\r\n" + own + ADDED, b"data")

    assert copy is not None
    assert copy.record.headers == (b"NATS/1.0\r\n" + own + b"\r\n" if own else b"")
    assert (copy.record.seq, copy.last_subject_seq) == (42, 41)
    assert copy.record.time_ns == 1_795_469_640_123_600_000


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"NATS/1.0\r\n\r\n",
        b"NATS/1.0\r\nNats-Stream: x\r\n\r\n",
        b"NATS/1.0\r\n" + ADDED.replace(b"42", b"many"),
        b"NATS/1.0\r\n" + ADDED.replace(b"2026", b"soon"),
        b"NATS/1.0\r\n" + ADDED.replace(b".1236", b".x"),
    ],
)
def test_another_clients_message_on_the_feed_is_no_copy(block: bytes) -> None:
    with pytest.raises(ProtocolError):
        stored_copy(NAMES, NAMES.feed_of(NAMES.unkeyed), block, b"")


def test_an_announcement_comes_back_as_it_was() -> None:
    note = Announcement(deleted=((1, 1), (4, 9)), purged=3, is_config_changed=True)
    assert Announcement.from_json(note.to_json()) == note
    with pytest.raises(ProtocolError):
        Announcement.from_json(b"no json")
