"""The reconciler beside a simulated server and a plain list, under every fault of a feed.

The server stores, overwrites, evicts, deletes, purges and is made anew; the feed drops, delays,
reorders and repeats; answers to reads and infos come late. After the last fault the arrays are what
the server holds, and each change was emitted once, in order.
"""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from natsstream.api.stream_info import StreamInfo
from natsstream.conat.reconcile import Doubt, Edit, Limits, Question, Reconciler
from natsstream.conat.record import Record
from tests.support.simulated_stream import PLAIN, ROLLUP, TOMBSTONE, SimulatedStream, fill

KEYS = ("", "cn.d.x.k.a", "cn.d.x.k.b", "cn.d.x.k.c")
STALE_NS = 13_000_000_000


class FeedFaults(RuleBasedStateMachine):
    """One client of one stream."""

    @initialize(
        max_msgs=st.sampled_from((-1, -1, 3)),
        start=st.sampled_from((1, 1, 4)),
        before=st.lists(st.sampled_from(KEYS), max_size=6),
    )
    def open(self, max_msgs: int, start: int, before: list[str]) -> None:
        self.server = SimulatedStream(max_msgs)
        for key in before:
            self.server.publish(key, b"before", ROLLUP if key else PLAIN)
        self.limits = Limits(max_msgs)
        self.client = Reconciler(self.limits, start_seq=start)
        self.feed: list[tuple[Record, int] | tuple[int, int]] = []
        self.server.on_stored = self.on_stored
        # With each the length of `gone` when it was asked.
        self.questions: list[tuple[Question, list[Record] | None, int]] = []
        self.infos: list[StreamInfo] = []
        self.now_ns = 1
        # Of this life of the stream: what was emitted, as a list that a user would keep.
        self.shown: list[int] = []
        self.added: list[int] = []
        # Sequences that the client was told are gone, and messages that came by the feed.
        self.gone: list[int] = []
        self.came_live: set[int] = set()
        # All messages of this life.
        self.stored: dict[int, Record] = {}
        self.take(self.client.info(self.server.info(lists_deleted=False), self.now_ns))
        for record in self.server.records(self.client.floor, self.server.last_seq):
            fill(self.client, record)
        self.take(self.client.filled(self.server.last_seq))
        self.shown = self.client.log.sequences()

    def on_stored(self, record: Record, last: int) -> None:
        self.feed.append((record, last))
        self.stored[record.seq] = record

    def take(self, edits: Iterator[Edit]) -> None:
        """Keep a plain list by the edits alone, and compare it with the arrays at each of them."""
        for edit in edits:
            note(f"  {edit}")
            seq, log = edit.record.seq, self.client.log
            if edit.is_removal:
                self.shown.remove(seq)
                self.gone.append(seq)
                assert log.find(seq) is None
            else:
                assert seq not in self.added, "emitted twice"
                self.added.append(seq)
                self.shown = sorted({*self.shown, seq} - self.overwritten(edit))
                assert log.find(seq) == edit.record
            assert log.sequences() == self.shown

    def overwritten(self, edit: Edit) -> set[int]:
        """Return the messages that left without a word, as a rollup removes them."""
        held = set(self.client.log.sequences())
        gone = {seq for seq in self.shown if seq not in held}
        if edit.record.headers == PLAIN:
            assert not gone
        assert gone <= ({edit.previous.seq} if edit.previous else gone)
        return gone

    # The server.

    @rule(key=st.sampled_from(KEYS), is_deletion=st.booleans())
    def publish(self, key: str, *, is_deletion: bool) -> None:
        headers = (TOMBSTONE if is_deletion else ROLLUP) if key else PLAIN
        self.server.publish(key, b"x", headers)

    @rule(at=st.integers(0, 20), is_announced=st.booleans())
    def delete(self, at: int, *, is_announced: bool) -> None:
        held = sorted(self.server.held)
        if held:
            seq = held[at % len(held)]
            del self.server.held[seq]
            if is_announced:
                self.feed.append((seq, seq))

    @rule(seq=st.integers(1, 30), is_announced=st.booleans())
    def purge(self, seq: int, *, is_announced: bool) -> None:
        last = min(seq, self.server.last_seq)
        self.server.purge(last)
        if is_announced:
            self.feed.append((0, last))

    @rule()
    def create_anew(self) -> None:
        fresh = SimulatedStream(self.server.max_msgs, self.server.created_ns + 1)
        fresh.on_stored = self.server.on_stored
        self.server = fresh
        # The connection tells: what the old one sent is not read as the new one's.
        self.feed.clear()
        self.questions.clear()
        self.take(self.client.info(fresh.info(lists_deleted=False), self.now_ns))
        self.added.clear()
        self.gone.clear()
        self.came_live.clear()
        self.stored.clear()

    # The feed.

    @precondition(lambda self: self.feed)
    @rule(at=st.integers(0, 3), is_repeated=st.booleans())
    def deliver(self, at: int, *, is_repeated: bool) -> None:
        at %= len(self.feed)
        item = self.feed[at] if is_repeated else self.feed.pop(at)
        first, last = item
        if isinstance(first, Record):
            self.came_live.add(first.seq)
            self.take(self.client.message(first, last))
        else:
            self.gone.extend(range(max(first, 1), last + 1))
            self.take(self.client.deleted(first, last) if first else self.client.purged(last))

    @precondition(lambda self: self.feed)
    @rule(at=st.integers(0, 3))
    def drop(self, at: int) -> None:
        self.feed.pop(at % len(self.feed))

    # Requests.

    @rule(is_older=st.booleans())
    def ask(self, *, is_older: bool) -> None:
        span = self.client.missing
        if is_older:
            span = (max(1, self.client.floor - 2), self.client.applied)
        if span is not None and span[0] <= span[1]:
            question = self.client.ask(*span, is_older=is_older)
            self.questions.append((question, None, len(self.gone)))

    @precondition(lambda self: self.questions)
    @rule(at=st.integers(0, 5))
    def read(self, at: int) -> None:
        """The server answers at one moment, the answer comes at a later one."""
        at %= len(self.questions)
        question, _, asked = self.questions[at]
        records = self.server.records(question.first_seq, question.last_seq)
        self.questions[at] = question, records, asked

    @precondition(lambda self: self.questions)
    @rule(at=st.integers(0, 5))
    def answer(self, at: int) -> None:
        question, records, asked = self.questions.pop(at % len(self.questions))
        if records is None:
            self.client.give_up(question)
        else:
            gone, added = set(self.gone[asked:]), len(self.added)
            self.forget_shown_below(question.first_seq)
            added = len(self.added)
            self.take(self.client.fetched(question, records))
            undone = gone.intersection(self.added[added:]) - self.came_live
            assert not undone, "an answer undid a deletion"
            assert not gone.intersection(self.shown), "an answer undid a deletion"

    @rule(is_older=st.booleans(), turns=st.lists(st.integers(0, 50), min_size=1, max_size=6))
    def race(self, *, is_older: bool, turns: list[int]) -> None:
        """Much happens, and is told, between a question and its answer."""
        before = len(self.questions)
        self.ask(is_older=is_older)
        if len(self.questions) == before:
            return
        self.read(before)
        for turn in turns:
            key = KEYS[turn % len(KEYS)]
            match turn % 3:
                case 0:
                    self.server.publish(key, b"race", ROLLUP if key else PLAIN)
                case 1:
                    self.delete(turn, is_announced=True)
                case _:
                    self.purge(turn % 8 + 1, is_announced=True)
            if self.feed and turn % 5:
                self.deliver(len(self.feed) - 1, is_repeated=False)
        self.answer(before)

    def forget_shown_below(self, first_seq: int) -> None:
        """Let messages that a read brings back be emitted again."""
        if first_seq <= self.client.applied:
            self.added = [seq for seq in self.added if self.client.log.find(seq) is not None]

    @rule(lists_deleted=st.booleans())
    def look(self, *, lists_deleted: bool) -> None:
        self.infos.append(self.server.info(lists_deleted=lists_deleted))

    @precondition(lambda self: self.infos)
    @rule(at=st.integers(0, 5))
    def learn(self, at: int) -> None:
        before = len(self.gone)
        self.take(self.client.info(self.infos.pop(at % len(self.infos)), self.now_ns))
        for seq in self.gone[before:] if self.client.floor == 1 else ():
            assert not self.is_overwritten(seq), "a value was removed before it was replaced"

    def is_overwritten(self, seq: int) -> bool:
        """Tell whether a newer value of a message's key exists that the client has not shown."""
        held = self.stored.get(seq)
        if held is None or not held.key_subject:
            return False
        newer = [each for each in self.server.held.values() if each.key_subject == held.key_subject]
        last_known = max(self.client.applied, *(each.seq for each in newer), 0)
        return any(seq < each.seq <= last_known and each.seq not in self.added for each in newer)

    @rule()
    def converge(self) -> None:
        """The faults end: whatever the state, some requests make the arrays the server's."""
        self.feed.clear()
        self.client.suspect(Doubt.DELETED)
        for _ in range(8):
            self.now_ns += STALE_NS
            span = self.client.missing
            if span is None and self.client.doubt is Doubt.ALL:
                span = (self.client.floor, self.client.applied)
            if span is None and self.client.doubt is not Doubt.NONE:
                lists = self.client.doubt >= Doubt.DELETED
                self.take(self.client.info(self.server.info(lists_deleted=lists), self.now_ns))
            if span is not None:
                question = self.client.ask(*span)
                self.forget_shown_below(question.first_seq)
                self.take(self.client.fetched(question, self.server.records(*span)))
        wanted = self.server.records(self.client.floor, self.server.last_seq)
        assert list(self.client.log.records()) == wanted
        newest = {each.key_subject: each for each in wanted if each.key_subject}
        live = {key: each.seq for key, each in newest.items() if not each.is_tombstone}
        assert self.client.keys.live == live
        assert self.client.doubt is Doubt.NONE
        assert self.client.missing is None

    @invariant()
    def keys_agree_with_the_log(self) -> None:
        if hasattr(self, "client"):
            log = self.client.log
            for key, seq in self.client.keys.live.items():
                record = log.find(seq)
                assert record is not None
                assert record.key_subject == key

    def teardown(self) -> None:
        if hasattr(self, "client"):
            self.converge()


TestFeedFaults = FeedFaults.TestCase
TestFeedFaults.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
