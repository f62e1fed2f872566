"""Unit tests of the reconciler: one promise each; the model test has the combinations."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import pytest

from natsstream.conat import reconcile
from natsstream.conat.reconcile import Doubt, Edit, Limits, Reconciler
from natsstream.conat.record import Record
from tests.support.simulated_stream import (
    PLAIN,
    ROLLUP,
    ROLLUP_ALL,
    TOMBSTONE,
    SimulatedStream,
    fill,
)

A, B = "cn.d.x.k.a", "cn.d.x.k.b"
MS = 1_000_000


def record(seq: int, key: str = "", headers: bytes = PLAIN) -> Record:
    return Record(seq, seq * MS, key, headers if key == "" or headers != PLAIN else ROLLUP, b"v")


def opened(*keys: str, limits: Limits | None = None, start: int = 1) -> Reconciler:
    """Return the arrays of a stream that holds a message of each of these keys."""
    client = Reconciler(limits, start_seq=start)
    for seq, key in enumerate(keys, start):
        fill(client, record(seq, key))
    assert list(client.filled(start + len(keys) - 1)) == []
    return client


def shown(edits: Iterable[Edit]) -> list[tuple[int, str]]:
    """Return sequence and kind of each edit."""
    kinds = {(False, False): "set", (False, True): "conflated", (True, False): "removed"}
    return [(each.record.seq, kinds[each.is_removal, each.is_conflated]) for each in edits]


def test_a_read_that_was_asked_before_a_deletion_does_not_undo_it() -> None:
    client = opened("", "")
    question = client.ask(1, 2)
    assert shown(client.deleted(1, 1)) == [(1, "removed")]

    assert shown(client.fetched(question, [record(1), record(2)])) == []
    assert client.log.sequences() == [2]


def test_a_message_of_a_hole_that_was_deleted_meanwhile_is_not_shown() -> None:
    client = opened("")
    assert shown(client.message(record(3))) == []
    assert client.missing == (2, 2)
    question = client.ask(2, 2)
    assert shown(client.deleted(2, 2)) == []

    assert shown(client.fetched(question, [record(2)])) == [(3, "set")]
    assert client.log.sequences() == [1, 3]


def test_a_live_message_that_was_deleted_before_it_came_is_shown_and_removed() -> None:
    client = opened("")
    assert shown(client.deleted(2, 2)) == []

    assert shown(client.message(record(2))) == [(2, "set"), (2, "removed")]
    assert client.log.sequences() == [1]


def test_an_overwrite_removes_the_older_message_before_it_is_shown() -> None:
    client = opened(A, "")
    [edit] = client.message(record(3, A), 1)

    assert edit.previous == record(1, A)
    assert client.log.sequences() == [2, 3]
    assert client.keys.live == {A: 3}


def test_setting_a_key_again_removes_its_tombstone() -> None:
    client = opened(A)
    [deletion] = client.message(record(2, A, TOMBSTONE), 1)
    assert deletion.previous == record(1, A)
    assert (client.keys.live, client.log.sequences()) == ({}, [2])
    [edit] = client.message(record(3, A), 2)

    assert edit.previous is None
    assert (client.keys.live, client.log.sequences()) == ({A: 3}, [3])


def test_values_that_were_overwritten_unseen_become_one_change() -> None:
    client = opened(A, B)
    client.expect(7)
    assert client.missing == (3, 7)

    edits = list(client.fetched(client.ask(3, 7), [record(5, B), record(7, A)]))
    assert shown(edits) == [(5, "conflated"), (7, "conflated")]
    assert edits[1].previous == record(1, A)


def test_a_value_is_not_conflated_if_all_between_were_seen() -> None:
    client = opened(A)
    client.expect(3)
    list(client.fetched(client.ask(2, 3), [record(3, A)]))

    assert shown(client.message(record(4, A), 3)) == [(4, "set")]


def test_live_messages_behind_a_hole_are_shown_although_they_were_overwritten() -> None:
    client = opened("")
    list(client.message(record(3, A), 0))
    list(client.message(record(4, A), 3))

    edits = client.fetched(client.ask(2, 2), [record(2)])
    assert shown(edits) == [(2, "set"), (3, "set"), (4, "set")]


def test_a_purge_of_a_stream_whose_history_is_gone_leaves_no_hole() -> None:
    server = SimulatedStream()
    for _ in range(9):
        server.publish("", b"x", PLAIN)
    server.purge(9)
    client = Reconciler()
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    list(client.filled(9))

    assert client.missing is None
    assert shown(client.message(server.publish("", b"y", PLAIN))) == [(10, "set")]


def test_a_full_stream_evicts_before_it_overwrites() -> None:
    """As nats-server and Conat do: the limit counts the message that is about to be replaced."""
    client = opened(A, B, limits=Limits(max_msgs=2))

    assert shown(client.message(record(3, B), 2)) == [(1, "removed"), (3, "set")]
    assert client.log.sequences() == [3]


def test_messages_expire_at_their_moment_and_not_before() -> None:
    client = opened("", "", limits=Limits(max_age_ns=10 * MS))

    assert client.next_expiry_ns == 11 * MS
    assert shown(client.tick(11 * MS - 1)) == []
    assert shown(client.tick(11 * MS)) == [(1, "removed")]


def test_a_ttl_counts_only_if_the_server_deletes_the_message_too() -> None:
    own = b"NATS/1.0\r\nCN-Enc: 0\r\nCN-TTL: 25\r\n\r\n"
    client = opened("")
    list(client.message(record(2, headers=own)))
    assert client.next_expiry_ns is None
    list(client.message(record(3, headers=own[:-2] + b"Nats-TTL: 1\r\n\r\n")))

    assert client.next_expiry_ns == 28 * MS
    assert shown(client.tick(28 * MS)) == [(3, "removed")]


def test_an_info_of_a_leader_that_was_cut_off_removes_nothing_at_first() -> None:
    server, client = SimulatedStream(), opened("", "")
    server.publish("", b"x", PLAIN)

    assert shown(client.info(client.ask_info(), server.info(lists_deleted=True), 0)) == []
    assert client.doubt is Doubt.DELETED
    assert client.log.sequences() == [1, 2]


def test_a_deletion_that_nobody_announced_is_found_by_counting() -> None:
    server, client = SimulatedStream(), opened("", "", "")
    for _ in range(3):
        server.publish("", b"x", PLAIN)
    del server.held[2]
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert client.doubt is Doubt.DELETED

    assert shown(client.info(client.ask_info(), server.info(lists_deleted=True), 0)) == [
        (2, "removed")
    ]
    assert client.doubt is Doubt.NONE


def test_older_messages_are_loaded_without_those_that_were_overwritten() -> None:
    client = opened(A, start=5)
    question = client.ask(1, 4, is_older=True)

    edits = client.fetched(question, [record(2), record(3, A)])
    assert shown(edits) == [(2, "set")]
    assert (client.floor, client.log.sequences()) == (1, [2, 5])


def test_many_holes_are_read_in_one_go_and_a_single_one_alone() -> None:
    """A feed that has dropped a little has dropped often, and each read costs round trips."""
    client = opened("")
    list(client.message(record(4)))
    list(client.message(record(5)))
    assert client.missing == (2, 3)
    list(client.message(record(8)))

    assert client.missing == (2, 8)
    edits = client.fetched(client.ask(2, 8), [record(seq) for seq in range(2, 9)])
    assert [seq for seq, _ in shown(edits)] == [2, 3, 4, 5, 6, 7, 8]
    assert client.missing is None


def anew(server: SimulatedStream, *, created_ns: int = 1) -> SimulatedStream:
    """Return the stream that follows another one: its messages have other times."""
    fresh = SimulatedStream(created_ns=created_ns)
    fresh.time_ns = lambda seq: server.time_ns(server.last_seq + seq)
    return fresh


def test_a_value_that_was_overwritten_unseen_is_not_removed_first() -> None:
    """The stream's info lists the old value as deleted before the new one was read."""
    server = SimulatedStream()
    client = opened(A)
    for _ in range(3):
        server.publish(A, b"v", ROLLUP)
    client.suspect(Doubt.DELETED)

    assert shown(client.info(client.ask_info(), server.info(lists_deleted=True), 0)) == []
    assert client.missing == (2, 3)
    [edit] = client.fetched(client.ask(2, 3), server.records(2, 3))
    assert (edit.record.seq, edit.is_conflated, edit.previous) == (3, True, record(1, A))
    assert client.doubt is Doubt.NONE


def test_a_doubt_outlives_the_answer_to_an_earlier_question() -> None:
    server, client = SimulatedStream(), opened("", "")
    for _ in range(3):
        server.publish("", b"x", PLAIN)
    early = server.info(lists_deleted=True)
    assert shown(client.info(client.ask_info(), early, 0)) == []
    client.suspect(Doubt.DELETED)
    list(client.fetched(client.ask(3, 3), server.records(3, 3)))

    assert client.doubt is Doubt.DELETED


def test_a_restarted_memory_stream_is_another_one() -> None:
    """Its identity is the old one, its sequences begin again, and the counts may be equal."""
    old = SimulatedStream()
    client = opened(*[""] * 2)
    for _ in range(2):
        old.publish("", b"x", PLAIN)
    list(client.info(client.ask_info(), old.info(lists_deleted=False), 0))
    fresh = anew(old)
    records = [fresh.publish("", b"y", PLAIN) for _ in range(2)]

    assert shown(client.message(records[0])) == [(1, "removed"), (2, "removed"), (1, "set")]
    assert shown(client.message(records[1])) == [(2, "set")]
    assert client.life == 1


def test_a_restarted_memory_stream_is_noticed_by_its_last_time() -> None:
    old = SimulatedStream()
    client = opened("", "")
    for _ in range(2):
        old.publish("", b"x", PLAIN)
    list(client.info(client.ask_info(), old.info(lists_deleted=False), 0))
    fresh = anew(old)
    for _ in range(2):
        fresh.publish("", b"y", PLAIN)

    assert shown(client.info(client.ask_info(), fresh.info(lists_deleted=False), 1)) == [
        (1, "removed"),
        (2, "removed"),
    ]
    assert client.missing == (1, 2)


def test_a_stream_that_was_restored_from_an_older_one_is_believed_in_time() -> None:
    server = SimulatedStream(created_ns=5)
    client = opened("")
    server.publish("", b"x", PLAIN)
    client.set_limits(Limits())
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert client.life == 1
    list(client.fetched(client.ask(1, 1), server.records(1, 1)))
    restored = SimulatedStream(created_ns=3)
    restored.publish("", b"y", PLAIN)

    info = restored.info(lists_deleted=False)
    assert shown(client.info(client.ask_info(), info, 2_000_000_000_000)) == []
    assert client.doubt is Doubt.DELETED
    assert shown(client.info(client.ask_info(), info, 2_013_000_000_000)) == [(1, "removed")]
    assert client.missing == (1, 1)


def test_an_eviction_that_did_not_happen_is_found_by_the_first_sequence() -> None:
    server = SimulatedStream(3)
    client = opened("", "", "", limits=Limits(max_msgs=3))
    for _ in range(3):
        server.publish("", b"x", PLAIN)
    del server.held[2]
    list(client.message(server.publish("", b"x", PLAIN)))
    assert client.log.sequences() == [2, 3, 4]
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))

    assert client.doubt is Doubt.DELETED


def test_a_start_behind_the_end_is_no_shorter_stream() -> None:
    server = SimulatedStream()
    server.publish("", b"x", PLAIN)
    client = Reconciler(start_seq=4)
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert list(client.filled(1)) == []
    assert (client.doubt, client.missing) == (Doubt.NONE, None)

    assert shown(client.message(server.publish("", b"x", PLAIN))) == []
    server.publish("", b"x", PLAIN)
    assert shown(client.message(server.publish("", b"x", PLAIN))) == []
    assert client.missing == (3, 3)
    assert shown(client.fetched(client.ask(3, 3), server.records(3, 3))) == [(4, "set")]


def test_messages_before_the_floor_that_come_while_older_ones_are_read_are_read_too() -> None:
    """A client that begins behind the end of its stream loads all of it meanwhile."""
    client = Reconciler(start_seq=4)
    list(client.filled(1))
    question = client.ask(1, 1, is_older=True)
    assert shown(client.message(record(2))) == []
    list(client.fetched(question, [record(1)]))
    assert client.floor == 4

    again = client.ask(1, 2, is_older=True)
    assert shown(client.fetched(again, [record(1), record(2)])) == [(1, "set"), (2, "set")]
    assert client.floor == 1


def test_a_live_message_between_several_holes_is_not_conflated() -> None:
    """Other keys' values are missing on both sides of it; nothing of its own key is."""
    client = opened(A, B)
    list(client.message(record(5, A), 1))
    list(client.message(record(9, "")))
    list(client.message(record(10, A), 5))

    edits = client.fetched(client.ask(3, 10), [record(8, B), record(9), record(10, A)])
    assert shown(edits) == [(5, "set"), (8, "conflated"), (9, "set"), (10, "set")]


def test_a_live_message_that_replaced_an_unseen_value_is_conflated() -> None:
    client = opened(A)
    list(client.message(record(3, A), 2))

    edits = list(client.fetched(client.ask(2, 2), []))
    assert shown(edits) == [(3, "conflated")]
    assert edits[0].previous == record(1, A)


def test_a_live_message_whose_held_value_was_replaced_by_a_deleted_one_is_conflated() -> None:
    """It replaced nothing: the server had lost the value that is held here, and the next one."""
    client = opened(A, B)
    list(client.message(record(4, A), 0))

    edits = list(client.fetched(client.ask(3, 3), []))
    assert shown(edits) == [(4, "conflated")]
    list(client.message(record(6, B), 2))
    assert shown(client.fetched(client.ask(5, 5), [])) == [(6, "set")]


def test_a_message_without_a_key_is_never_conflated() -> None:
    """All of them have one subject, so one comes behind the other, but replaces nothing."""
    client = opened("")
    list(client.message(record(3), 2))
    assert shown(client.fetched(client.ask(2, 2), [])) == [(3, "set")]

    list(client.message(record(5), 4))
    assert shown(client.fetched(client.ask(4, 5), [record(5)])) == [(5, "set")]


def test_a_value_that_was_deleted_before_its_answer_was_not_seen() -> None:
    client = opened(A)
    client.expect(2)
    question = client.ask(2, 2)
    list(client.deleted(2, 2))
    assert shown(client.fetched(question, [record(2, A)])) == []

    assert shown(client.message(record(3, A), 0)) == [(3, "conflated")]
    assert shown(client.message(record(4, A), 3)) == [(4, "set")]


def test_a_value_of_another_key_that_was_deleted_before_its_answer_does_not_count() -> None:
    client = opened(A, B)
    client.expect(3)
    question = client.ask(3, 3)
    list(client.deleted(3, 3))
    list(client.fetched(question, [record(3, A)]))
    client.expect(4)

    assert shown(client.fetched(client.ask(4, 4), [record(4, B)])) == [(4, "set")]


def test_holes_before_the_first_wanted_message_do_not_count() -> None:
    client = Reconciler(start_seq=4)
    list(client.filled(1))
    client.expect(4)

    edits = client.fetched(client.ask(2, 4), [record(4, A)])
    assert shown(edits) == [(4, "set")]
    assert shown(client.message(record(5, B), 3)) == [(5, "set")]


def settled(client: Reconciler, server: SimulatedStream) -> None:
    """Let a client compare itself with its stream."""
    list(client.info(client.ask_info(), server.info(lists_deleted=True), 0))
    assert (client.missing, client.doubt) == (None, Doubt.NONE)


def test_a_hole_of_long_ago_does_not_count() -> None:
    """The stream was compared since: what is stored later replaced nothing in that hole."""
    server = SimulatedStream()
    client = opened(A)
    for key in (A, B, B):
        server.publish(key, b"v", ROLLUP)
    client.expect(3)
    assert shown(client.fetched(client.ask(2, 3), [record(3, B)])) == [(3, "conflated")]
    settled(client, server)
    server.publish(A, b"v", ROLLUP)
    client.expect(4)

    assert shown(client.fetched(client.ask(4, 4), server.records(4, 4))) == [(4, "set")]


def test_a_hole_that_was_found_after_the_question_for_the_info_counts() -> None:
    """The message that replaced the value in it may be one that the info does not know."""
    server = SimulatedStream()
    client = opened(A)
    for key in (A, A, B):
        server.publish(key, b"v", ROLLUP)
    question, info = client.ask_info(), server.info(lists_deleted=True)
    server.publish(A, b"v", ROLLUP)
    client.expect(3)
    assert shown(client.fetched(client.ask(2, 3), server.records(2, 3))) == [(3, "conflated")]
    list(client.info(question, info, 0))
    client.expect(4)

    assert shown(client.fetched(client.ask(4, 4), server.records(4, 4))) == [(4, "conflated")]


def test_a_hole_before_the_last_seen_value_does_not_count_when_that_is_gone() -> None:
    client = opened("")
    client.expect(3)
    list(client.fetched(client.ask(2, 3), [record(3, A)]))
    assert shown(client.deleted(3, 3)) == [(3, "removed")]
    client.expect(4)

    assert shown(client.fetched(client.ask(4, 4), [record(4, A)])) == [(4, "set")]


def test_the_values_before_a_reset_are_not_those_of_the_new_stream() -> None:
    client = opened("")
    client.expect(3)
    list(client.fetched(client.ask(2, 3), [record(3)]))
    list(client.reset())
    list(client.message(record(1), 0))

    assert shown(client.message(record(2, A), 2)) == [(2, "set")]


def test_previous_is_no_value_that_the_limit_evicted_first() -> None:
    client = opened(A, limits=Limits(max_msgs=1))

    edits = list(client.message(record(2, A), 1))
    assert shown(edits) == [(1, "removed"), (2, "set")]
    assert [each.previous for each in edits] == [record(1, A), None]


def test_previous_is_no_value_that_a_purge_removed_first() -> None:
    client = opened(A, "")

    edits = list(client.message(record(3, A, ROLLUP_ALL), 1))
    assert shown(edits) == [(1, "removed"), (2, "removed"), (3, "set")]
    assert [each.previous for each in edits] == [record(1, A), None, None]


def test_previous_is_named_for_a_message_that_is_read_again() -> None:
    """An announcement was wrong, and all was read again."""
    client = opened(A)
    list(client.message(record(2, A), 1))
    list(client.deleted(2, 2))
    older = record(1, A)
    list(client.fetched(client.ask(1, 2), [older]))
    client.suspect(Doubt.ALL)

    [edit] = client.fetched(client.ask(1, 2), [record(2, A)])
    assert (edit.record, edit.previous) == (record(2, A), older)
    assert client.log.sequences() == [2]


def test_an_older_message_that_is_read_changes_no_value() -> None:
    plain = Record(2, 2 * MS, A, PLAIN, b"v")
    newer = Record(5, 5 * MS, A, PLAIN, b"v")
    client = Reconciler(start_seq=5)
    fill(client, newer)
    list(client.filled(5))

    [edit] = client.fetched(client.ask(1, 4, is_older=True), [plain])
    assert (edit.record, edit.previous) == (plain, None)
    assert client.keys.live == {A: 5}
    [removal] = client.deleted(2, 2)
    assert removal.previous is None


def test_the_value_before_comes_back_when_a_plain_one_is_deleted() -> None:
    """Another program wrote the key without a rollup, so both values are stored."""
    plain = Record(2, 2 * MS, A, PLAIN, b"v")
    client = opened(A)
    [edit] = client.message(plain, 1)
    assert edit.previous == record(1, A)

    [removal] = client.deleted(2, 2)
    assert removal.previous == plain
    assert client.keys.live == {A: 1}


def test_a_late_answer_brings_back_no_value_that_was_replaced() -> None:
    """The value that replaced it is gone, too, when the answer comes."""
    client = Reconciler(start_seq=4)
    list(client.filled(3))
    question = client.ask(1, 3, is_older=True)
    assert shown(client.message(record(4, A), 2)) == [(4, "set")]
    assert shown(client.deleted(4, 4)) == [(4, "removed")]

    assert shown(client.fetched(question, [record(1), record(2, A)])) == [(1, "set")]


def test_a_late_answer_brings_back_nothing_that_an_earlier_one_lacked() -> None:
    client = opened("")
    client.expect(2)
    late, early = client.ask(2, 2), client.ask(2, 2)
    assert shown(client.fetched(early, [])) == []

    assert shown(client.fetched(late, [record(2)])) == []


def test_an_answer_that_was_asked_for_later_is_believed() -> None:
    """An eviction did not happen, while an older question waits for its answer."""
    client = opened("", "", limits=Limits(max_msgs=2))
    client.ask(1, 2)
    assert shown(client.message(record(3))) == [(1, "removed"), (3, "set")]

    edits = client.fetched(client.ask(1, 3), [record(1), record(3)])
    assert shown(edits) == [(1, "set"), (2, "removed")]


def test_a_purge_that_was_another_streams_is_not_believed_for_ever() -> None:
    client = opened("", "")
    assert shown(client.purged(2)) == [(1, "removed"), (2, "removed")]

    edits = client.fetched(client.ask(1, 2), [record(1), record(2)])
    assert shown(edits) == [(1, "set"), (2, "set")]


def test_a_rollup_of_messages_without_a_key_removes_them() -> None:
    client = opened("", A, "")

    edits = client.message(record(4, "", ROLLUP), 3)
    assert shown(edits) == [(1, "removed"), (3, "removed"), (4, "set")]
    assert client.log.sequences() == [2, 4]


def test_everything_that_is_read_again_settles_the_doubt_of_a_busy_stream() -> None:
    client = opened("", "")
    client.suspect(Doubt.ALL)
    question = client.ask(1, 2)
    assert shown(client.message(record(3))) == [(3, "set")]
    assert shown(client.fetched(question, [record(1), record(2)])) == []

    assert client.doubt is Doubt.COUNT


def test_an_answer_that_was_asked_for_before_the_doubt_does_not_settle_it() -> None:
    client = opened("", "")
    question = client.ask(1, 2)
    client.suspect(Doubt.ALL)
    list(client.fetched(question, [record(1), record(2)]))

    assert client.doubt is Doubt.ALL


def test_an_answer_about_a_part_does_not_settle_the_doubt_of_all() -> None:
    client = opened("", "", "")
    client.suspect(Doubt.ALL)
    list(client.fetched(client.ask(1, 2), [record(1), record(2)]))
    list(client.fetched(client.ask(2, 3), [record(2), record(3)]))

    assert client.doubt is Doubt.ALL


def test_an_info_that_is_behind_messages_that_came_meanwhile_is_no_stale_one() -> None:
    server, client = SimulatedStream(), opened("")
    server.publish("", b"x", PLAIN)
    question, info = client.ask_info(), server.info(lists_deleted=False)
    list(client.message(server.publish("", b"x", PLAIN)))

    assert shown(client.info(question, info, 0)) == []
    assert client.doubt is Doubt.NONE


def test_an_info_that_was_asked_for_before_a_reset_says_nothing() -> None:
    server, client = SimulatedStream(), opened("")
    for _ in range(5):
        server.publish("", b"x", PLAIN)
    question, info = client.ask_info(), server.info(lists_deleted=True)
    list(client.reset())

    assert shown(client.info(question, info, 0)) == []
    assert (client.missing, client.doubt) == (None, Doubt.COUNT)


def test_a_late_message_of_the_stream_before_is_ignored() -> None:
    old = SimulatedStream()
    late = old.publish("", b"x", PLAIN)
    fresh = anew(old)
    client = Reconciler()
    assert shown(client.message(fresh.publish("", b"y", PLAIN))) == [(1, "set")]

    assert shown(client.message(late)) == []
    assert client.life == 0


def test_a_message_older_than_the_one_before_makes_all_doubtful() -> None:
    """It waited behind a hole while the stream was made anew."""
    old = SimulatedStream()
    old.publish("", b"x", PLAIN)
    waiting = old.publish("", b"x", PLAIN)
    fresh = anew(old)
    client = Reconciler()
    list(client.message(waiting))
    assert shown(client.message(fresh.publish("", b"y", PLAIN))) == [(1, "set"), (2, "set")]
    assert client.doubt is Doubt.ALL
    fresh.publish("", b"y", PLAIN)

    edits = client.fetched(client.ask(1, 2), fresh.records(1, 2))
    assert shown(edits) == [(2, "removed"), (2, "set")]
    assert list(client.log.records()) == fresh.records(1, 2)


def test_a_restarted_memory_stream_that_is_longer_is_noticed_by_its_first_time() -> None:
    old, client = SimulatedStream(), opened("", "")
    for _ in range(2):
        old.publish("", b"x", PLAIN)
    fresh = anew(old)
    for _ in range(4):
        fresh.publish("", b"y", PLAIN)
    client.expect(4)
    list(client.fetched(client.ask(3, 4), fresh.records(3, 4)))

    list(client.info(client.ask_info(), fresh.info(lists_deleted=False), 0))
    assert client.doubt is Doubt.DELETED
    list(client.info(client.ask_info(), fresh.info(lists_deleted=True), 0))
    assert client.doubt is Doubt.ALL


def test_a_client_without_the_beginning_finds_deletions_that_leave_the_number_of_holes() -> None:
    """One hole is new, and another one is before the first message now."""
    server = SimulatedStream()
    for _ in range(6):
        server.publish("", b"x", PLAIN)
    del server.held[2]
    client = Reconciler(start_seq=4)
    for each in server.records(4, 6):
        fill(client, each)
    list(client.filled(6))
    list(client.info(client.ask_info(), server.info(lists_deleted=True), 0))
    assert client.doubt is Doubt.NONE
    del server.held[1], server.held[5]
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))

    assert client.doubt is Doubt.DELETED
    edits = client.info(client.ask_info(), server.info(lists_deleted=True), 0)
    assert shown(edits) == [(5, "removed")]


def test_messages_behind_a_hole_are_dropped_when_too_many_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconcile, "_EARLY_MAX", 2)
    client = opened("")
    for seq in (3, 4, 5):
        list(client.message(record(seq)))

    assert client.missing == (2, 5)
    assert shown(client.message(record(2))) == [(2, "set")]
    assert client.missing == (3, 5)


def test_an_expired_message_that_the_server_still_holds_does_not_come_back_for_a_while() -> None:
    server = SimulatedStream()
    client = opened("", "", limits=Limits(max_age_ns=10 * MS))
    for _ in range(2):
        server.publish("", b"x", PLAIN)
    assert shown(client.tick(11 * MS)) == [(1, "removed")]
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert client.doubt is Doubt.NONE
    assert shown(client.fetched(client.ask(1, 2), server.records(1, 2))) == []

    list(client.tick(11 * MS + 30_000 * MS))
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    assert client.doubt is Doubt.DELETED


class SearchedDict(OrderedDict[int, int]):
    """Counts the searches for the first item: a plain dict looks at all removed ones before it."""

    searches = 0

    def __iter__(self) -> Iterator[int]:
        self.searches += 1
        return super().__iter__()


def test_expired_messages_are_forgotten_without_a_search_for_the_oldest() -> None:
    client = opened(*[""] * 20, limits=Limits(max_age_ns=10 * MS))
    expired = client._expired = SearchedDict()  # pyright: ignore[reportPrivateUsage]
    assert len(list(client.tick(30 * MS))) == len(expired) == 20

    list(client.tick(30 * MS + 30_000 * MS))
    assert (len(expired), expired.searches) == (0, 0)


def test_an_answer_counts_once() -> None:
    client = opened("")
    client.expect(2)
    question = client.ask(2, 2)
    assert shown(client.fetched(question, [record(2)])) == [(2, "set")]

    assert shown(client.fetched(question, [])) == []
    assert client.log.sequences() == [1, 2]


def test_live_messages_wait_for_the_end_of_the_first_load() -> None:
    """One of them may be the next message that is loaded."""
    client = Reconciler()
    fill(client, record(1))
    assert shown(client.message(record(2))) == []
    assert shown(client.message(record(3))) == []
    fill(client, record(2))

    assert shown(client.filled(2)) == [(3, "set")]
    assert client.log.sequences() == [1, 2, 3]
    assert (client.missing, client.is_behind) == (None, False)


def test_an_info_that_came_before_the_load_is_compared_at_its_end() -> None:
    server, client = SimulatedStream(), Reconciler()
    each = server.publish("", b"x", PLAIN)
    client.suspect(Doubt.COUNT)
    list(client.info(client.ask_info(), server.info(lists_deleted=False), 0))
    fill(client, each)
    assert client.doubt is Doubt.COUNT

    assert shown(client.filled(1)) == []
    assert client.doubt is Doubt.NONE


def test_a_client_without_the_beginning_has_all_once_that_is_purged() -> None:
    client = opened("", "", start=4)
    assert not client.is_whole
    list(client.purged(3))
    list(client.purged(2))

    assert client.is_whole
