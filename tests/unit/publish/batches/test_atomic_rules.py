"""What an atomic batch may hold, and how its answers are read."""

from __future__ import annotations

import pytest

from natsstream._wire.headers import Headers
from natsstream.api.cluster_info import ClusterInfo
from natsstream.api.stream_config import StreamConfig
from natsstream.errors import (
    BatchDuplicateError,
    BatchIncompleteError,
    BatchTooLargeError,
    ConfigError,
    ProtocolError,
)
from natsstream.fields import Fields
from natsstream.publish.batches.atomic_rules import (
    AtomicState,
    BatchAck,
    committing,
    read_batch_ack,
    read_staged,
)
from natsstream.publish.batches.outcome import is_confirmed
from natsstream.publish.outgoing import Expect, prepare


def state(**fields: object) -> AtomicState:
    config = StreamConfig(name="S", subjects=["s.>"], **fields)  # pyright: ignore[reportArgumentType]
    return AtomicState(config, "id", 3)


def test_messages_are_marked_and_no_other_header_is_added() -> None:
    batch = state()

    first = Headers(batch.take(prepare("s.a", headers={"Tag": "x"})))
    last = Headers(committing(batch.take(prepare("s.b"))))

    assert dict(first) == {
        "Tag": "x",
        "Nats-Batch-Id": "id",
        "Nats-Batch-Sequence": "1",
    }
    assert dict(last) == {
        "Nats-Batch-Id": "id",
        "Nats-Batch-Sequence": "2",
        "Nats-Batch-Commit": "1",
    }
    assert Headers(batch.ending())["Nats-Batch-Sequence"] == "3"


def test_a_full_batch_and_a_second_copy_of_an_id_are_refused() -> None:
    batch = state()
    batch.take(prepare("s.a", msg_id="1"))

    with pytest.raises(BatchDuplicateError):
        batch.check(prepare("s.b", headers={"Nats-Msg-Id": "1"}))
    batch.take(prepare("s.b"))
    batch.take(prepare("s.c"))
    with pytest.raises(BatchTooLargeError):
        batch.check(prepare("s.d"))


def test_expecting_another_subject_that_the_batch_writes_is_refused() -> None:
    batch = state()
    batch.take(prepare("s.a"))

    batch.check(prepare("s.b", expect=Expect(last_subject_seq=4, subject="s.c")))
    with pytest.raises(ConfigError):
        batch.check(prepare("s.b", expect=Expect(last_subject_seq=4, subject="s.a")))


def test_subjects_that_the_stream_does_not_have_are_told() -> None:
    batch = state()
    for subject in ("s.a", "t", "s"):
        batch.take(prepare(subject))

    assert batch.strays() == ["s", "t"]


def test_acks_and_refusals_are_read() -> None:
    ack = b'{"stream":"S","seq":9,"batch":"id","count":3}'
    refusal = b'{"error":{"code":400,"err_code":10176,"description":"x"},"stream":"S","seq":0}'

    read_staged((b"", b"", b"", b""), "x")
    assert read_batch_ack((b"", b"", b"", ack), "s", "id") == BatchAck("S", 9, 3, "id")
    for read in (
        lambda: read_batch_ack((b"", b"", b"", refusal), "s", "id"),
        lambda: read_staged((b"", b"", b"", refusal), "x"),
    ):
        with pytest.raises(BatchIncompleteError):
            read()


@pytest.mark.parametrize(
    "payload",
    [
        b'{"stream":"S","seq":9}',
        b'{"stream":"S","seq":9,"batch":"other","count":3}',
        b'{"stream":"S","seq":9,"batch":"id","count":0}',
        b'{"stream":"S","seq":9,"batch":"id","count":true}',
        b"garbage",
    ],
)
def test_what_is_no_ack_of_the_batch_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_batch_ack((b"", b"", b"", payload), "s", "id")


@pytest.mark.parametrize(
    ("actives", "expected"),
    [((5, 5), True), ((5, 50), True), ((50, 50), False), ((0, 0), False), ((5, 50, 50, 50), False)],
)
def test_a_leader_counts_only_with_a_majority_that_it_heard_of_lately(
    actives: tuple[int, ...],
    expected: bool,  # noqa: FBT001 - a parameter of the test.
) -> None:
    replicas = [{"name": "n", "current": True, "active": active} for active in actives]

    cluster = ClusterInfo.from_json(Fields({"replicas": replicas}, "cluster"))
    assert is_confirmed(cluster, within_ns=10) is expected
    assert is_confirmed(None, within_ns=10)
