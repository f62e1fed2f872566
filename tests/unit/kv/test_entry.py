"""What a stored message says of its key."""

from __future__ import annotations

import pytest

from natsstream.api.message import Message
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.entry import Operation, entry_of, operation_of
from natsstream.kv.formats import RAW

_PLACE = BucketSubjects("b", "KV_b", "$KV.b.", "$KV.b.")


def _message(headers: str = "", data: bytes = b"") -> Message:
    block = f"NATS/1.0\r\n{headers}\r\n\r\n".encode() if headers else b""
    return Message((b"$KV.b.a.b", b"", block, data), (7, 1_795_337_866_061_877_851))


@pytest.mark.parametrize(
    ("headers", "operation"),
    [
        ("", "PUT"),
        ("X: y", "PUT"),
        ("KV-Operation: DEL", "DEL"),
        ("KV-Operation: PURGE", "PURGE"),
        ("KV-Operation: PUT", "PUT"),
        ("Nats-Marker-Reason: MaxAge", "PURGE"),
        ("Nats-Marker-Reason: Purge", "PURGE"),
        ("Nats-Marker-Reason: Remove", "DEL"),
        ("Nats-Marker-Reason: Unheard-Of", "PUT"),
        ("KV-Operation: DEL\r\nNats-Marker-Reason: MaxAge", "DEL"),
        ("X: Nats-Marker-Reason: MaxAge", "PUT"),
    ],
)
def test_an_operation_is_what_nats_go_reads(headers: str, operation: Operation) -> None:
    assert operation_of(_message(headers)) == operation


def test_an_entry_has_the_nanoseconds_and_the_empty_value() -> None:
    entry = entry_of(_PLACE, _message(), RAW)

    assert (entry.key, entry.value, entry.revision) == ("a.b", b"", 7)
    assert entry.created_ns == 1_795_337_866_061_877_851
    assert entry.created.isoformat() == "2026-11-22T08:57:46.061877+00:00"
    assert not entry.is_deleted


def test_the_reason_of_a_marker_is_a_property_of_the_message() -> None:
    assert _message("Nats-Marker-Reason: MaxAge").marker_reason == "MaxAge"
    assert _message("X: Nats-Marker-Reason").marker_reason is None
    assert _message().marker_reason is None
