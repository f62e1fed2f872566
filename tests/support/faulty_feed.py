"""A reconciler beside a simulated server and a plain list, under every fault of a feed.

The server stores, replaces, evicts, expires, deletes, purges, restarts and is made anew. The feed
drops, delays, reorders and repeats. Answers come late, in any order, or never. All of it is drawn
from one function, so that a run can be repeated, and cut down by Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from natsstream.api.stream_info import StreamInfo
from natsstream.conat.reconcile import (
    Doubt,
    Edit,
    InfoQuestion,
    Limits,
    Question,
    Reconciler,
)
from natsstream.conat.record import Record, replaces
from tests.support.simulated_stream import PLAIN, ROLLUP, ROLLUP_ALL, TOMBSTONE, SimulatedStream

Draw = Callable[[int], int]
"""Returns a number from 0 to one less than its argument."""

KEYS = ("", "cn.d.x.k.a", "cn.d.x.k.b", "cn.d.x.k.c")
MS = 1_000_000
# The client hides the message after 25 ms, and the server deletes it after a second.
BRIEF = b"NATS/1.0\r\nCN-Enc: 0\r\nNats-Rollup: sub\r\nCN-TTL: 25\r\nNats-TTL: 1\r\n\r\n"
_BRIEF_MS, _BRIEF_STORED_MS = 25, 1_000
_STALE_NS = 13_000 * MS
_EXPIRED_KEPT_MS = 31_000
# Two for what is missing, then the worst doubt: numbers, list, everything, numbers; and once more.
QUESTIONS_MAX = 9


class FaultyFeed:
    """One core stream, its server and its one client.

    Args:
        draw: Decides everything.
        steps: How much happens before all faults end.

    Attributes:
        log: What happened, for the report of a failure.
        counts: How often the rarer things happened.
    """

    def __init__(self, draw: Draw, steps: int) -> None:
        self._draw = draw
        self._steps = steps
        self.log: list[str] = []
        self.counts: dict[str, int] = {}
        self._age_ms = (0, 0, 0, 200)[draw(4)]
        self._may_expire = draw(4) == 0 or self._age_ms > 0
        self._skew_ms = (0, 0, 5)[draw(3)]
        self._limits = Limits((-1, -1, 3, 5)[draw(4)], self._age_ms * MS)
        self._now_ns = 1_000 * MS
        # Of another clock.
        self._asked_ns = 1
        self.server = SimulatedStream(self._limits.max_msgs)
        self.server.on_stored = self._on_stored
        # What is under way: copies with what they replaced, and announcements of deletions.
        self._feed: list[tuple[Record, int] | tuple[int, int]] = []
        # With each answer the length of `_gone` when it was asked for.
        self._questions: list[tuple[Question, list[Record] | None, int]] = []
        # In which life each question was asked.
        self._lives: dict[Question, int] = {}
        self._infos: list[tuple[InfoQuestion, StreamInfo]] = []
        for _ in range(draw(7)):
            self._publish()
        self.client = Reconciler(self._limits, start_seq=(1, 1, 4)[draw(3)])
        # The plain list, which follows the edits alone.
        self._view: list[Record] = []
        self._life = 0
        self._is_in_step = True
        # The sequence of the message that is being delivered.
        self._delivering = 0
        self._begin_life()
        self._load()

    # What was seen.

    def _begin_life(self) -> None:
        """Forget what was seen: sequences begin again."""
        # What was loaded counts as seen, and what was before as never wanted.
        self._base = 0
        self._told: set[int] = set()
        self._last_told = 0
        self._live: set[int] = set()
        self._is_wanted: dict[int, bool] = {}
        # What came in an answer and was gone already, by key.
        self._skipped: list[Record] = []
        # Everything that the client knows is gone: sequences, and keys up to a sequence.
        self._gone: list[int | tuple[str, int]] = []
        self._heard: set[int] = set()
        self._was_removed: set[int] = set()

    def _note(self, text: str) -> None:
        self.log.append(text)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _take(self, edits: Iterator[Edit], *, answer: int | None = None) -> None:
        """Follow the edits, and check each.

        Args:
            edits: The edits.
            answer: Of an answer, the length of `_gone` when it was asked for.
        """
        client, applied, floor = self.client, self.client.applied, self.client.floor
        for edit in edits:
            self._note(f"    {edit}")
            applied = self._notice_life(applied)
            self._check_previous(edit)
            if edit.is_removal:
                self._view.remove(edit.record)
                self._gone.append(edit.record.seq)
                self._was_removed.add(edit.record.seq)
            else:
                if self._is_in_step:
                    self._check_told(edit, applied, floor, answer)
                self._add(edit.record)
            self._check_arrays()
        applied = self._notice_life(applied)
        for seq in range(applied + 1, client.applied + 1):
            self._is_wanted[seq] = seq >= client.floor
            is_told = seq in self._told or seq < client.floor or not self._is_in_step
            assert is_told or seq not in self._live, f"{seq} came and was not told"

    def _notice_life(self, applied: int) -> int:
        """Begin anew if the client did; return what was applied when this began."""
        if self.client.life == self._life:
            return applied
        self._life = self.client.life
        self._begin_life()
        self._is_in_step = True
        if self._delivering:
            self._live.add(self._delivering)
        return 0

    def _add(self, record: Record) -> None:
        """Add a message as users do who know of keys: the new value replaces the old one."""
        assert all(each.seq != record.seq for each in self._view), "told twice"
        self._told.add(record.seq)
        key = record.key_subject
        if key and replaces(record.headers) == "subject":
            self._gone.append((key, record.seq))
            older = [each for each in self._view if each.key_subject == key]
            self._view = [each for each in self._view if each not in older or each.seq > record.seq]
        self._view = sorted([*self._view, record])

    def _value(self, key: str) -> Record | None:
        held = [each for each in self._view if each.key_subject == key]
        return None if not key or not held or held[-1].is_tombstone else held[-1]

    def _check_previous(self, edit: Edit) -> None:
        record, before = edit.record, self._value(edit.record.key_subject)
        if edit.is_removal:
            assert edit.previous == (before if before == record else None)
            return
        newer = [
            each.seq
            for each in self._view
            if each.key_subject == record.key_subject and each.seq > record.seq
        ]
        assert edit.previous == (None if newer else before)

    def _check_arrays(self) -> None:
        client = self.client
        assert list(client.log.records()) == self._view
        keys = {each.key_subject for each in self._view if each.key_subject}
        values = {key: value.seq for key in keys if (value := self._value(key)) is not None}
        assert client.keys.live == values

    def _check_told(self, edit: Edit, applied: int, floor: int, answer: int | None) -> None:
        """A message is told in order, or is brought by an answer that was asked for it."""
        record, seq = edit.record, edit.record.seq
        if seq > applied:
            assert seq > self._last_told, "out of order, or twice"
            self._last_told = seq
            self._check_conflated(edit)
            if seq not in self._live and answer is not None:
                self._check_present(record, answer)
            return
        assert answer is not None, "behind what was told"
        assert seq < floor or seq in self._was_removed, "told late"
        assert not edit.is_conflated
        self._check_present(record, answer)

    def _check_present(self, record: Record, answer: int) -> None:
        for each in self._gone[answer:]:
            if isinstance(each, int):
                assert each != record.seq, "an answer undid a removal"
            elif each[0] == record.key_subject:
                assert record.seq > each[1], "an answer undid a replacement"

    def _is_unseen(self, seq: int) -> bool:
        is_wanted = self._is_wanted.get(seq, seq >= self.client.floor)
        return seq > self._base and is_wanted and seq not in self._told

    def _check_conflated(self, edit: Edit) -> None:
        """Compare with what the server knows of the key."""
        record, key = edit.record, edit.record.key_subject
        if not key:
            assert not edit.is_conflated
            return
        of_key = [seq for seq in self._told if self._key_of[seq] == key and seq < record.seq]
        seen = max(of_key, default=0)
        is_skipped = any(
            each.key_subject == key and seen < each.seq < record.seq for each in self._skipped
        )
        replaced = self.server.replaced[record.seq]
        is_conflated = is_skipped or (replaced > seen and self._is_unseen(replaced))
        held = max((each.seq for each in self._view if each.key_subject == key), default=0)
        if record.seq in self._live and replaced >= held and record.headers != ROLLUP_ALL:
            assert edit.is_conflated == is_conflated, f"replaced {replaced}, seen {seen}"
            self._count("conflated live" if is_conflated else "not conflated live")
            return
        may_be = is_skipped or any(map(self._is_unseen, range(seen + 1, record.seq)))
        assert edit.is_conflated or not is_conflated, f"replaced {replaced}, seen {seen}"
        assert may_be or not edit.is_conflated, f"seen {seen}"
        self._count("conflated read" if edit.is_conflated else "not conflated read")

    # The server.

    def _on_stored(self, record: Record, before: int) -> None:
        self._feed.append((record, before))
        self._key_of[record.seq] = record.key_subject

    _key_of: dict[int, str]

    def _publish(self, key: str | None = None) -> None:
        if self.server.last_seq == 0:
            self._key_of = {}
        self._now_ns += MS
        key = KEYS[self._draw(len(KEYS))] if key is None else key
        kind = self._draw(24)
        headers = ROLLUP if key else PLAIN
        if kind == 0:
            headers = ROLLUP_ALL
        elif kind == 1:  # Another program's.
            headers = PLAIN if key else ROLLUP
        elif kind < 6 and key:
            headers = TOMBSTONE
        elif kind < 12 and self._may_expire and not self._age_ms:
            headers = BRIEF
        record = self.server.publish(key, b"x", headers, time_ns=self._now_ns)
        self._note(f"  stored {record.seq} {key[-1:]} {headers[10:]!r}")

    def _delete(self) -> None:
        held = sorted(self.server.held)
        if held:
            seq = held[self._draw(len(held))]
            del self.server.held[seq]
            self._announce(seq, seq)

    def _purge(self) -> None:
        last = self._draw(self.server.last_seq + 1)
        self.server.purge(last)
        self._announce(0, last)

    def _announce(self, first: int, last: int) -> None:
        is_announced = self._draw(2) == 0
        self._note(f"  deleted {first}..{last} {'' if is_announced else 'un'}announced")
        if is_announced:
            self._feed.append((first, last))

    def _sweep(self, now_ns: int | None = None) -> None:
        """Let the server delete what has expired; it is late at times."""
        now_ns = self._now_ns if now_ns is None else now_ns

        def is_over(record: Record) -> bool:
            age_ns = now_ns - record.time_ns
            if record.headers == BRIEF and age_ns >= _BRIEF_STORED_MS * MS:
                return True
            return 0 < self._age_ms * MS <= age_ns

        self.server.expire(is_over)

    def _pass_time(self) -> None:
        self._now_ns += (1, 10, 30, 1_200)[self._draw(4)] * MS

    def _restart(self) -> None:
        """All that is under way is lost, and the client connects again."""
        self._break()
        self._suspect(Doubt.DELETED)

    def _lose_memory(self) -> None:
        """A stream in memory begins again with the old identity; the connection tells."""
        if self.client.floor == 1:
            self._replace(self.server.created_ns)
            for _ in range(self._draw(9)):
                self._publish()
            self._suspect(Doubt.DELETED)

    def _create_anew(self) -> None:
        self._replace(self.server.created_ns + 1)
        self._suspect(Doubt.DELETED)

    def _replace(self, created_ns: int) -> None:
        self._break()
        self.server = SimulatedStream(self._limits.max_msgs, created_ns)
        self.server.on_stored = self._on_stored
        self._key_of = {}
        self._is_in_step = False
        self._count("made anew")

    def _break(self) -> None:
        self._feed.clear()
        while self._questions:
            self.client.give_up(self._questions.pop()[0])
        self._infos.clear()

    # The feed.

    def _deliver(self, at: int | None = None) -> None:
        if not self._feed:
            return
        at = self._draw(min(4, len(self._feed))) if at is None else at
        is_repeated = self._draw(8) == 0
        first, last = self._feed[at] if is_repeated else self._feed.pop(at)
        if isinstance(first, Record):
            self._note(f"  live {first.seq}, which replaced {last}")
            if first.seq > self.client.applied:
                self._live.add(first.seq)
            self._delivering = first.seq
            self._take(self.client.message(first, last))
            self._delivering = 0
        else:
            self._note(f"  heard of {first}..{last}")
            gone = range(max(first, 1), last + 1)
            self._gone.extend(gone)
            self._heard.update(gone)
            client = self.client
            self._take(client.deleted(first, last) if first else client.purged(last))

    def _deliver_many(self) -> None:
        for _ in range(len(self._feed)):
            self._deliver(0)

    def _drop(self) -> None:
        if self._feed:
            self._note(f"  dropped {self._feed.pop(self._draw(min(4, len(self._feed))))}")

    # Questions.

    def _load(self) -> None:
        client, server = self.client, self.server
        self._take(client.info(client.ask_info(), server.info(lists_deleted=False), self._asked_ns))
        records = server.records(client.floor, server.last_seq)
        if records:
            client.fill(*map(list, zip(*records, strict=True)))
        self._view = list(records)
        self._told = {each.seq for each in records}
        self._base = server.last_seq
        self._take(client.filled(server.last_seq))
        if not self._draw(3):
            self._feed.clear()  # Else it comes late.

    def _ask(self) -> None:
        span, is_older = self.client.missing, self._draw(4) == 0
        if is_older:
            span = (max(1, self.client.floor - 2), min(self.client.floor - 1, self.client.applied))
        elif span is None or self._draw(4) == 0:
            span = (self.client.floor, self.client.applied)
        if span[0] <= span[1]:
            question = self.client.ask(*span, is_older=is_older)
            self._lives[question] = self.client.life
            self._questions.append((question, None, len(self._gone)))
            self._note(f"  asked {question}")

    def _read(self) -> None:
        """The server reads at one moment, and the answer comes at a later one."""
        if self._questions:
            at = self._draw(len(self._questions))
            question, _, asked = self._questions[at]
            records = self.server.records(question.first_seq, question.last_seq)
            self._questions[at] = question, records, asked

    def _answer(self) -> None:
        if not self._questions:
            return
        question, records, asked = self._questions.pop(self._draw(len(self._questions)))
        self._note(f"  answered {question.first_seq}..{question.last_seq} {_seqs(records)}")
        if records is None:
            self.client.give_up(question)
            return
        self._take_answer(question, records, asked)

    def _take_answer(self, question: Question, records: list[Record], asked: int) -> None:
        client = self.client
        for each in records if self._lives[question] == client.life else ():
            is_new = each.seq > client.applied and each.seq >= client.floor
            if is_new and each.seq in self._heard - self._live:
                self._skipped.append(each)
        self._take(client.fetched(question, records), answer=asked)

    def _race(self) -> None:
        """Much happens, and is told, between a question and its answer."""
        before = len(self._questions)
        self._ask()
        if len(self._questions) == before:
            return
        self._read()
        for _ in range(self._draw(6)):
            (self._publish, self._delete, self._purge)[self._draw(3)]()
            if self._draw(4):
                self._deliver(len(self._feed) - 1 if self._feed else None)
        self._answer()

    def _look(self) -> None:
        question = self.client.ask_info()
        info = self.server.info(lists_deleted=self._draw(2) == 0)
        self._infos.append((question, info))

    def _learn(self) -> None:
        if self._infos:
            question, info = self._infos.pop(self._draw(len(self._infos)))
            state = info.state
            self._note(f"  info {state.messages} of {state.first_seq}..{state.last_seq}")
            self._take(self.client.info(question, info, self._asked_ns))

    def _tick(self) -> None:
        self._take(self.client.tick(self._now_ns + self._skew_ms * MS))

    def _suspect(self, doubt: Doubt) -> None:
        self._note(f"  suspect {doubt.name}")
        self.client.suspect(doubt)

    # The run.

    def run(self) -> None:
        """Let everything happen, then let all faults end; nothing may be left of them."""
        actions = [self._publish] * 8 + [self._deliver] * 8 + [self._drop] * 2
        actions += [self._ask, self._read, self._answer] * 3
        actions += [self._delete, self._purge, self._race, self._look, self._learn] * 2
        actions += [self._deliver_many, self._tick, self._sweep, self._restart]
        actions += [self._pass_time] * (2 if self._may_expire else 0)
        actions += [self._converge]
        rare = [self._create_anew, self._lose_memory]
        for _ in range(self._steps):
            choice = self._draw(len(actions) * 4 + len(rare))
            act = actions[choice // 4] if choice < len(actions) * 4 else rare[-1 - choice % 2]
            act()
        self._converge()

    def _converge(self) -> None:
        """The faults end: some questions make the arrays the server's, and no more are asked."""
        self._note("  the faults end")
        self._break() if self._draw(2) else self._deliver_many()
        self._feed.clear()
        if self._may_expire:
            for _ in range(2):
                self._now_ns += _EXPIRED_KEPT_MS * MS
                self._sweep()
                self._tick()
            for _ in range(3):
                self._publish()
            self._feed.clear()
        self._suspect(Doubt.DELETED if self._draw(2) or not self._is_in_step else Doubt.COUNT)
        count = 0
        while self.client.missing is not None or self.client.doubt:
            count += 1
            assert count <= QUESTIONS_MAX, "it asks and asks"
            self._ask_next()
        wanted = self.server.records(self.client.floor, self.server.last_seq)
        assert self._view == wanted
        if self._is_in_step:
            later = {each.seq for each in wanted if each.seq > self._base}
            assert later <= self._told, "never told"

    def _ask_next(self) -> None:
        client, server = self.client, self.server
        span = client.missing
        if span is None and client.doubt is Doubt.ALL:
            span = (client.floor, client.applied)
        if span is not None:
            question = client.ask(*span)
            self._lives[question] = client.life
            records = server.records(*span)
            self._note(f"  asked {question}: {_seqs(records)}")
            self._take_answer(question, records, len(self._gone))
            return
        self._asked_ns += _STALE_NS
        info = server.info(lists_deleted=client.doubt >= Doubt.DELETED)
        self._note(f"  info {info.state.messages} of ..{info.state.last_seq}, {client.doubt.name}")
        self._take(client.info(client.ask_info(), info, self._asked_ns))


def _seqs(records: list[Record] | None) -> list[int] | None:
    return None if records is None else [each.seq for each in records]
