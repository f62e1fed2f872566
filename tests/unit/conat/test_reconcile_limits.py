"""What limits of a stream that is only read do to its arrays, and comparisons behind a hole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat.reconcile import Doubt, Edit, Limits, Reconciler
from natsstream.conat.record import Record
from tests.support.simulated_stream import EXPIRING, ROLLUP, SimulatedStream, fill

PLAIN = b""
KEYS = st.lists(st.sampled_from(("a", "b", "c")), max_size=30)
LIMITS = st.sampled_from((-1, 1, 2, 3, 5))


def record(seq: int, key: str, headers: bytes = PLAIN) -> Record:
    return Record(seq, seq * 1_000_000, key, headers, b"v")


@given(keys=KEYS, max_msgs=LIMITS, per_key=LIMITS)
def test_limits_remove_what_the_server_removes(
    keys: list[str], max_msgs: int, per_key: int
) -> None:
    """As nats-server does: first what the subject has too many of, then what the stream has.

    tests/integration/conat/test_over_limits.py asks a server.
    """
    client, held = Reconciler(Limits(max_msgs, max_msgs_per_key=per_key)), dict[int, str]()
    shown = set[int]()
    for seq, key in enumerate(keys, 1):
        held[seq] = key
        same = [each for each, its_key in held.items() if its_key == key]
        for each in same[: max(len(same) - per_key, 0)] if per_key > 0 else []:
            del held[each]
        while 0 < max_msgs < len(held):
            del held[min(held)]
        for edit in client.message(record(seq, key)):
            note(edit, shown)
        assert client.log.sequences() == sorted(held)
        newest = {its_key: each for each, its_key in held.items()}
        assert client.keys.live == newest
        if per_key == 1:  # A message that its key's next one replaces goes without an edit.
            shown &= set(newest.values())
        assert shown == set(held)


def note(edit: Edit, shown: set[int]) -> None:
    shown.remove(edit.record.seq) if edit.is_removal else shown.add(edit.record.seq)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_headers_remove_nothing_where_the_stream_does_not_allow_it(*, is_loaded: bool) -> None:
    """A mirror stores the headers of its origin, and does not act on them."""
    client = Reconciler(Limits(has_rollups=False, has_ttls=False))
    for each in (record(1, "a"), record(2, "a", ROLLUP), record(3, "a", EXPIRING)):
        if is_loaded:
            fill(client, each)
        else:
            assert len(list(client.message(each))) == 1

    assert list(client.tick(10**18)) == []
    assert client.log.sequences() == [1, 2, 3]
    question = client.ask(1, 3)
    list(client.deleted(1, 1))
    assert list(client.fetched(question, [record(2, "a", ROLLUP), record(3, "a", EXPIRING)])) == []
    assert client.log.sequences() == [2, 3]


def test_a_part_of_a_stream_is_compared_by_its_deleted_sequences_alone() -> None:
    server = SimulatedStream()
    client = Reconciler(is_partial=True)
    for key in "abcb":
        each = server.publish(key, b"v", PLAIN)
        if key != "c":
            fill(client, each)
    list(client.filled(4))
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert (client.is_whole, client.doubt) == (False, Doubt.NONE)

    del server.held[2]
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert client.doubt is Doubt.DELETED
    [edit] = client.info(client.ask_info(), server.info(lists_deleted=True), 0)
    assert (edit.record.seq, edit.is_removal, client.doubt) == (2, True, Doubt.NONE)


def test_an_info_behind_a_hole_is_compared_once_the_hole_is_filled() -> None:
    """Sooner, a value that was overwritten would be removed and come back as another one."""
    server = SimulatedStream()
    client = Reconciler()
    for key in ("a", "", ""):
        fill(client, server.publish(key, b"v", PLAIN if not key else ROLLUP))
    list(client.filled(3))
    lost = server.publish("", b"v", PLAIN)
    live = server.publish("a", b"w", ROLLUP)
    del server.held[2]
    assert list(client.message(live, 1)) == []
    assert client.is_behind

    assert list(client.info(client.ask_info(), server.info(lists_deleted=True), 0)) == []
    assert client.log.sequences() == [1, 2, 3]
    assert client.missing == (4, 4)

    edits = list(client.fetched(client.ask(4, 4), [lost]))
    assert [(each.record.seq, each.is_removal) for each in edits] == [
        (4, False),
        (5, False),
        (2, True),
    ]
    assert edits[1].previous is not None
    assert client.log.sequences() == sorted(server.held)
    assert (client.doubt, client.is_behind) == (Doubt.NONE, False)


def test_an_info_behind_a_hole_settles_no_doubt_that_came_later() -> None:
    server = SimulatedStream()
    client = Reconciler()
    fill(client, server.publish("", b"v", PLAIN))
    list(client.filled(1))
    lost = server.publish("", b"v", PLAIN)
    list(client.message(server.publish("", b"v", PLAIN)))
    list(client.info(client.ask_info(), server.info(lists_deleted=True), 0))
    client.suspect(Doubt.DELETED)
    del server.held[1]

    edits = list(client.fetched(client.ask(2, 2), [lost]))
    assert [each.record.seq for each in edits] == [2, 3]
    assert client.doubt is Doubt.DELETED
    [edit] = client.info(client.ask_info(), server.info(lists_deleted=True), 0)
    assert (edit.record.seq, edit.is_removal) == (1, True)
