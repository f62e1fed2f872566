"""Reconciles what a core stream's server stores into arrays; pure, nothing here waits.

Law: every sequence up to `applied` is in the log, or was removed, or is known to be gone; none
beyond it is in the log. Messages are applied in the order of their sequences, each once. A removal
is never undone by an answer that was asked for before it.

Events come in as method calls: a message of the live feed, the answer to a read, an announced
deletion, the stream's info, the time. Each yields the edits of the arrays, one by one: when an edit
is yielded, the arrays already agree with it. `missing` and `doubt` say which question to ask the
server next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush, merge
from itertools import compress
from typing import NamedTuple

from natsstream.api.stream_info import StreamInfo, StreamState
from natsstream.conat.headers import may_end
from natsstream.conat.key_index import KeyIndex
from natsstream.conat.log import MessageLog
from natsstream.conat.record import Record, may_replace, replaces
from natsstream.conat.removed import Removed
from natsstream.conat.unseen import UnseenValues
from natsstream.units import NS_PER_SECOND

# Messages behind a hole that wait for it; beyond that they are read again with the hole.
_EARLY_MAX = 65_536
# Messages that are loaded in one go, unless one of them has rules of its own.
_PIECE = 100
# A leader that lost its peers takes itself for the leader for ten seconds more.
_STALE_LEADER_NS = 12 * NS_PER_SECOND
# Servers delete an expired message within two seconds or so, and count its TTL in whole ones.
_EXPIRED_KEPT_NS = 30 * NS_PER_SECOND


class Doubt(IntEnum):
    """How much the arrays may differ from the stream, from the mildest to the worst.

    Attributes:
        NONE: There is no sign of a difference.
        COUNT: Time has passed: compare numbers with the stream's info.
        DELETED: Deletions may have been missed: ask for the info with the deleted sequences.
        ALL: The arrays differ: read everything again.
    """

    NONE = 0
    COUNT = 1
    DELETED = 2
    ALL = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """The reasons for which messages are removed: limits, and headers if the stream allows them.

    Attributes:
        max_msgs: Messages of the stream, beyond which a new one evicts the oldest; -1 for no limit.
        max_age_ns: Nanoseconds after which a message expires; 0 for never.
        max_msgs_per_key: Messages of each key, beyond which its oldest go; -1 for no limit.
        has_rollups: True if a message may replace older ones by its headers.
        has_ttls: True if a message may expire by its headers.
    """

    max_msgs: int = -1
    max_age_ns: int = 0
    max_msgs_per_key: int = -1
    has_rollups: bool = True
    has_ttls: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A range that is being read from the server; both ends are included.

    Attributes:
        first_seq: The first sequence.
        last_seq: The last sequence.
        is_older: True if the messages before the floor are wanted from now on.
        is_all: True if it is about all that was applied, because the arrays differ.
        removed: Messages that were removed since; the answer may still bring them.
    """

    first_seq: int
    last_seq: int
    is_older: bool = False
    is_all: bool = False
    removed: Removed = field(default_factory=Removed)


class InfoQuestion(NamedTuple):
    """The state in which the stream's info was asked for.

    Attributes:
        life: As of the reconciler.
        applied: As of the reconciler.
    """

    life: int
    applied: int


class Edit(NamedTuple):
    """A change of the arrays.

    Attributes:
        record: The message that was added or removed.
        is_removal: True if it was removed.
        previous: The message whose value the key had in these arrays just before, and has no more;
            None if the key had none, or keeps it.
        is_conflated: True if the key had other values since the last one that was shown or loaded,
            which were stored, are gone and never will be shown. A message of the live feed tells
            what it replaced: it is exact then, if that is not older than what is held here. Else
            the server does not tell, and it is True if any message since was gone before it could
            be seen. Without a held value, values that were deleted unseen leave no trace.
    """

    record: Record
    is_removal: bool = False
    previous: Record | None = None
    is_conflated: bool = False


class Reconciler:
    """The arrays of one core stream, and what they lack.

    Args:
        limits: The stream's limits.
        start_seq: The first sequence that is wanted.
        is_partial: True if not all messages of the stream are wanted, wherever they are.

    Attributes:
        log: The messages.
        keys: The newest message of each key.
        applied: The last sequence of the law.
        floor: The first sequence that was asked for; older messages are not loaded.
        doubt: How much the arrays may differ from the stream.
        life: Counts how often the stream was made anew: a sequence is another message then.
        is_partial: As given.
    """

    def __init__(
        self, limits: Limits | None = None, *, start_seq: int = 1, is_partial: bool = False
    ) -> None:
        self.log: MessageLog = MessageLog()
        self.keys: KeyIndex = KeyIndex()
        self.floor: int = max(start_seq, 1)
        self.applied: int = 0
        self.doubt: Doubt = Doubt.NONE
        self.life: int = 0
        self.is_partial: bool = is_partial
        self._limits = limits or Limits()
        self._created_ns: int | None = None
        self._older_since_ns: int | None = None
        # An info of the stream that knows of later messages, with the state when it was asked for.
        self._info: tuple[InfoQuestion, StreamInfo] | None = None
        # Number of deleted sequences and the first one that is not, when all were listed.
        self._listed = (0, 1)
        # The last sequence that is known to exist.
        self._known = self.applied
        # Live messages behind a hole, each with the sequence that it replaced.
        self._early: dict[int, tuple[Record, int]] = {}
        # Deletions of messages that have not come yet.
        self._removed = Removed()
        self._purged = 0
        self._asked: list[Question] = []
        self._unseen = UnseenValues()
        self._expiries: list[tuple[int, int]] = []
        self._last_ns, self._is_filling = 0, False
        # When messages expired here that the server may still hold for a moment. A plain dict
        # searches its first item behind the places of all that were removed.
        self._expired: OrderedDict[int, int] = OrderedDict()

    @property
    def missing(self) -> tuple[int, int] | None:
        """The range to read from the server next, both ends included; None for none.

        It is the hole before the first live message that waits, or everything if there are more
        holes: a feed that has dropped a little has dropped often.
        """
        last = self._known
        if self._early:
            hole_end = min(self._early) - 1
            if hole_end - self.applied == last - self.applied - len(self._early):
                last = hole_end
        return (self.applied + 1, last) if last > self.applied else None

    @property
    def is_behind(self) -> bool:
        """True if a range is missing."""
        return self._known > self.applied

    @property
    def created_ns(self) -> int | None:
        """The stream's identity; None before its first info."""
        return self._created_ns

    @property
    def is_whole(self) -> bool:
        """True if all messages of the stream are wanted, not only later or chosen ones."""
        return not self.is_partial and self.floor <= max(1, self._purged + 1)

    @property
    def next_expiry_ns(self) -> int | None:
        """When the next message expires, in Unix nanoseconds; None for never."""
        if not self._expiries and not self._limits.max_age_ns:
            return None
        while self._expiries and self.log.find(self._expiries[0][1]) is None:
            heappop(self._expiries)
        moments = [self._expiries[0][0]] if self._expiries else []
        if self._limits.max_age_ns and len(self.log):
            moments.append(self.log.record(0).time_ns + self._limits.max_age_ns)
        return min(moments, default=None)

    # The live feed.

    def message(self, record: Record, last_subject_seq: int = 0) -> Iterator[Edit]:
        """Take a message of the live feed.

        Args:
            record: The message.
            last_subject_seq: The sequence of the subject's message before it; 0 for none.
        """
        seq = record.seq
        if seq <= self.applied:
            yield from self._compare_late(record)
        self._known = max(self._known, seq)
        if seq == self.applied + 1 and not self._is_filling:
            yield from self._apply_live(record, last_subject_seq)
            if self._early:
                yield from self._apply_early()
            if self._info is not None:
                yield from self._compare_with_info()
        elif seq > self.applied and len(self._early) < _EARLY_MAX:
            self._early[seq] = record, last_subject_seq
        elif seq > self.applied:
            self._early.clear()

    def expect(self, seq: int) -> None:
        """Take note that a message is stored, such as one whose ack has come."""
        self._known = max(self._known, seq)

    def deleted(self, first_seq: int, last_seq: int) -> Iterator[Edit]:
        """Take the deletion of a range; both ends are included."""
        if last_seq > self.applied:
            self._removed.add(first_seq, last_seq)
        yield from self._remove_range(first_seq, last_seq)

    def purged(self, last_seq: int) -> Iterator[Edit]:
        """Take the deletion of all messages up to a sequence."""
        self._purged = max(self._purged, last_seq)
        yield from self.deleted(1, last_seq)

    # Answers.

    def ask(self, first_seq: int, last_seq: int, *, is_older: bool = False) -> Question:
        """Note that a range is being read, and return the question.

        `fetched` or `give_up` ends it; a reset does, too.
        """
        is_all = first_seq <= self.floor and last_seq >= self.applied
        is_all = is_all and self.doubt is Doubt.ALL
        question = Question(first_seq, last_seq, is_older, is_all)
        self._asked.append(question)
        return question

    def give_up(self, question: Question) -> None:
        """Note that a read has failed."""
        if question in self._asked:
            self._asked.remove(question)

    def fetched(self, question: Question, records: Sequence[Record]) -> Iterator[Edit]:
        """Take all messages that the stream has in a range, ascending.

        A message of the range that is not among them is gone.
        """
        if question not in self._asked:
            return  # The stream was made anew meanwhile.
        first_seq, last_seq = question.first_seq, question.last_seq
        if question.is_older and last_seq >= min(self.floor - 1, self.applied):
            # Else messages before the floor came meanwhile, and were not taken: ask again.
            self.floor = min(self.floor, max(first_seq, 1))
        known_to = min(last_seq, self.applied)
        yield from self._compare(max(first_seq, self.floor), known_to, records, question.removed)
        early = (record for seq, (record, _) in sorted(self._early.items()) if seq <= last_seq)
        arrived = (record for record in records if record.seq > self.applied)
        for record in merge(arrived, early, key=_seq):
            if record.seq > self.applied:  # Else it came both ways.
                self._pass(record.seq - 1)
                yield from self._apply_read(record, question.removed)
        self._pass(last_seq)
        if question.is_all and self.doubt is Doubt.ALL:
            self.doubt = Doubt.COUNT
        self._asked.remove(question)
        yield from self._apply_early()
        self._removed.forget(self.applied)
        yield from self._compare_with_info()

    def fill(
        self,
        seqs: Sequence[int],
        times_ns: Sequence[int],
        key_subjects: Sequence[str],
        headers: Sequence[bytes],
        data: Sequence[bytes],
    ) -> None:
        """Take the next messages of the first load, as columns; there are no edits.

        `filled` ends the load; until then messages of the live feed wait.
        """
        for start in range(0, len(seqs), _PIECE):
            cut = slice(start, start + _PIECE)
            subjects, blocks = key_subjects[cut], headers[cut]
            keys = dict(zip(filter(None, subjects), compress(seqs[cut], subjects), strict=True))
            if self._are_new(subjects, keys, b"".join(blocks)):
                self.log.append_columns(seqs[cut], times_ns[cut], subjects, blocks, data[cut])
                self.keys.extend(keys)
            else:
                for record in map(Record, seqs[cut], times_ns[cut], subjects, blocks, data[cut]):
                    if record not in self._removed:
                        for _ in self._insert(record):
                            pass
        self.applied, self._is_filling = seqs[-1], True

    def _are_new(self, subjects: Sequence[str], keys: dict[str, int], blocks: bytes) -> bool:
        """Return True if loaded messages are there to stay, and change nothing but their keys.

        Args:
            subjects: The subject of each one's key.
            keys: The sequence of each key.
            blocks: All header blocks, joined: one search is faster than many.
        """
        unkeyed = subjects.count("")
        return (
            not self._removed
            and not may_end(blocks)
            and not may_replace(blocks, keyed=not unkeyed)
            and len(keys) + unkeyed == len(subjects)
            and self.keys.newest.keys().isdisjoint(keys)
        )

    def filled(self, last_seq: int) -> Iterator[Edit]:
        """Take the end of the first load: the stream holds no more messages up to a sequence."""
        self.applied, self._is_filling = max(self.applied, last_seq), False
        yield from self._apply_early()
        yield from self._compare_with_info()

    def ask_info(self) -> InfoQuestion:
        """Return the question for the stream's info, which is asked for now."""
        return InfoQuestion(self.life, self.applied)

    def info(self, question: InfoQuestion, info: StreamInfo, now_ns: int) -> Iterator[Edit]:
        """Compare the arrays with the stream's info, and remove what the stream lacks.

        Args:
            question: As `ask_info` returned it.
            info: The info.
            now_ns: When it came, in nanoseconds of any one clock.
        """
        if question.life != self.life:
            return  # The stream was made anew meanwhile, and is still in doubt.
        state, created_ns = info.state, self._created_ns or info.created_ns
        is_newer, is_shorter = info.created_ns > created_ns, state.last_seq < question.applied
        # So does a server that was cut off describe the stream, for a while.
        is_older = info.created_ns < created_ns or (is_shorter and not is_newer)
        self._older_since_ns = (self._older_since_ns or now_ns) if is_older else None
        if is_older and now_ns - (self._older_since_ns or 0) <= _STALE_LEADER_NS:
            self.doubt = max(self.doubt, Doubt.DELETED)
            return
        self._created_ns = info.created_ns
        if is_older or is_newer or self._is_another(state):
            yield from self.reset()
            question = self.ask_info()
        self.expect(state.last_seq)
        self._info = question, info
        yield from self._compare_with_info()

    def suspect(self, doubt: Doubt) -> None:
        """Note a doubt; infos that were asked for before do not settle it."""
        self._info = None
        self.doubt = max(self.doubt, doubt)

    def reset(self) -> Iterator[Edit]:
        """Forget everything, and begin with the first sequence again."""
        if self.is_whole:
            self.floor = 1
        applied, self.applied, self._known, self._purged = self.applied, 0, 0, 0
        self._early.clear()
        self._asked.clear()
        self._removed, self._unseen = Removed(), UnseenValues()
        self._expiries.clear()
        self._expired.clear()
        self._listed = (0, 1)
        self._older_since_ns, self._info, self._last_ns = None, None, 0
        self.life += 1
        self.doubt = Doubt.COUNT
        yield from self._remove_range(0, applied)

    # Time and limits.

    def tick(self, now_ns: int) -> Iterator[Edit]:
        """Remove what has expired by a moment of the server's clock, in Unix nanoseconds."""
        while self._expired and next(iter(self._expired.values())) <= now_ns - _EXPIRED_KEPT_NS:
            self._expired.popitem(last=False)
        while self._expiries and self._expiries[0][0] <= now_ns:
            yield from self._expire(heappop(self._expiries)[1], now_ns)
        age_ns = self._limits.max_age_ns
        while age_ns and len(self.log) and self.log.record(0).time_ns + age_ns <= now_ns:
            yield from self._expire(self.log.seq(0), now_ns)

    def set_limits(self, limits: Limits) -> None:
        """Take other limits; the stream's info says what they have removed."""
        if limits != self._limits:
            self._limits = limits
            if len(self.log):
                self.doubt = max(self.doubt, Doubt.DELETED)

    # Internals.

    def _compare_late(self, record: Record) -> Iterator[Edit]:
        """Look at a live message whose sequence was passed.

        Reads are faster than the feed now and then. Otherwise the stream began anew.
        """
        held, last = self.log.find(record.seq), self.log.last_record
        if held is not None and held.time_ns < record.time_ns:
            self._created_ns = None
            yield from self.reset()
        elif record.seq >= self.floor and (last is None or record.time_ns > last.time_ns):
            self.doubt = max(self.doubt, Doubt.COUNT)

    def _apply_live(self, record: Record, replaced_seq: int) -> Iterator[Edit]:
        """Add the next message, which came live, also if it was deleted before it came."""
        self.applied = record.seq
        is_gone = record in self._removed
        yield from self._apply(record, replaced_seq)
        if is_gone:
            self._removed.forget(record.seq)
            yield from self._remove_range(record.seq, record.seq)

    def _apply_read(self, record: Record, removed: Removed) -> Iterator[Edit]:
        """Add the next message, which was read, or came live behind a hole that was."""
        early = self._early.get(record.seq)
        if early is not None:
            yield from self._apply_live(*early)
            return
        self.applied = record.seq
        if record not in removed and record not in self._removed:
            yield from self._apply(record)
        elif record.seq >= self.floor:
            self._unseen.skip(record)

    def _pass(self, last_seq: int) -> None:
        """Go on to a sequence: what comes before it is gone, and nobody saw it."""
        if last_seq > self.applied:
            self._unseen.add(max(self.applied + 1, self.floor), last_seq)
            self._note_removed(self.applied + 1, last_seq)
            self.applied = last_seq

    def _apply(self, record: Record, replaced_seq: int | None = None) -> Iterator[Edit]:
        """Add the message of the highest sequence so far, unless it is before the floor."""
        if record.seq < self.floor:
            return
        if record.time_ns < self._last_ns:
            self.doubt = Doubt.ALL  # One of the two is of an earlier life, or clocks differ.
        self._last_ns = record.time_ns
        yield from self._make_room(record.key_subject)
        newest = self.keys.newest.get(record.key_subject, 0)
        is_conflated = self._unseen.precede(record, newest, replaced_seq)
        yield from self._insert(record, is_conflated=is_conflated)

    def _make_room(self, subject: str) -> Iterator[Edit]:
        """Remove what the limits have no room for when another message of a subject comes.

        The server counts a message before it removes the one that it replaces, unless that is done
        by the limit of its subject.
        """
        per_key, n_replaced = self._limits.max_msgs_per_key, 0
        if per_key > 1 and subject:
            for seq in self.keys.surplus(subject, per_key - 1):
                yield from self._remove_range(seq, seq)
        elif per_key == 1 and subject in self.keys.newest:
            n_replaced = 1
        while 0 < self._limits.max_msgs <= len(self.log) - n_replaced:
            yield from self._remove_range(first := self.log.seq(0), first)

    def _removes(self, headers: bytes) -> str:
        """Return which earlier messages go for a message with this header block."""
        found = replaces(headers) if self._limits.has_rollups else ""
        return "subject" if not found and self._limits.max_msgs_per_key == 1 else found

    def _insert(self, record: Record, *, is_conflated: bool = False) -> Iterator[Edit]:
        """Add a message, and remove what the server has removed for it."""
        seq, subject, scope = record.seq, record.key_subject, self._removes(record.headers)
        if scope == "all":
            yield from self.purged(seq - 1)
        elif scope and not subject:  # Another client's; it replaces all messages without a key.
            for each in list(self.log.records(0, seq - 1)):
                if not each.key_subject:
                    yield from self._remove_range(each.seq, each.seq)
        previous = None
        if subject and self.keys.newest.get(subject, 0) < seq:
            previous = self.log.find(self.keys.live.get(subject, 0))
        if scope == "subject":
            for question in self._asked:
                question.removed.replaced_by(record)
            for older in self.keys.replaced(subject, seq):
                self.log.remove(older)
        self.log.insert(record)
        self._index(record)
        yield Edit(record, previous=previous, is_conflated=is_conflated)

    def _index(self, record: Record) -> None:
        if record.key_subject:
            self.keys.add(record.key_subject, record.seq, is_tombstone=record.is_tombstone)
        expires_ns = record.expires_ns if self._limits.has_ttls else None
        if expires_ns is not None:
            heappush(self._expiries, (expires_ns, record.seq))

    def _apply_early(self) -> Iterator[Edit]:
        """Apply the live messages that no hole separates any more."""
        while self._early:
            next_ = self._early.pop(self.applied + 1, None)
            if next_ is None:
                break
            yield from self._apply_live(*next_)
        for seq in [seq for seq in self._early if seq <= self.applied]:
            del self._early[seq]

    def _compare(
        self, first_seq: int, last_seq: int, records: Sequence[Record], removed: Removed
    ) -> Iterator[Edit]:
        """Make the log equal to an answer in a range that was applied, or is before the floor."""
        if first_seq > last_seq:
            return
        held = {record.seq: record.time_ns for record in self.log.records(first_seq, last_seq)}
        for record in records:
            seq = record.seq
            if seq > last_seq:
                break
            if seq < first_seq:
                continue
            if held.get(seq) == record.time_ns:
                del held[seq]
            elif record not in removed and not self._is_over(record):
                if held.pop(seq, None) is not None:  # The stream began anew, and this is another.
                    yield from self._remove_range(seq, seq)
                yield from self._insert(record)
        for seq in sorted(held):
            yield from self._remove_range(seq, seq)

    def _is_over(self, record: Record) -> bool:
        """Return True if a message of an answer is gone all the same.

        It has expired, and the server is late; or the key's newest message has replaced it, and the
        replica that answered was behind.
        """
        if record.seq in self._expired:
            return True
        newest = self.log.find(self.keys.newest.get(record.key_subject, 0))
        if newest is None or newest.seq < record.seq:
            return False
        return self._removes(newest.headers) == "subject"

    def _expire(self, seq: int, now_ns: int) -> Iterator[Edit]:
        if self.log.find(seq) is not None:
            self._expired[seq] = now_ns
            yield from self._remove_range(seq, seq)

    def _remove_range(self, first_seq: int, last_seq: int) -> Iterator[Edit]:
        """Remove the held messages of a range, one edit each."""
        self._note_removed(first_seq, last_seq)
        for record in list(self.log.records(first_seq, last_seq)):
            self.log.remove(record.seq)
            self._unseen.removed(record)
            subject, previous = record.key_subject, None
            if subject:
                if self.keys.live.get(subject) == record.seq:
                    previous = record
                older = self.keys.remove(record)
                if older is not None and (found := self.log.find(older)) is not None:
                    self._index(found)
            yield Edit(record, is_removal=True, previous=previous)

    def _note_removed(self, first_seq: int, last_seq: int) -> None:
        for question in self._asked:
            question.removed.add(first_seq, last_seq)

    def _compare_with_info(self) -> Iterator[Edit]:
        """Remove what the stream lacks, once all is applied that the info knows of.

        Sooner, a value that was overwritten would be removed and come back as another one.
        """
        if self._info is not None and self.applied >= self._info[1].state.last_seq:
            (question, info), self._info = self._info, None
            yield from self.purged(info.state.first_seq - 1)
            for each in info.state.deleted or ():
                yield from self.deleted(each.first_seq, each.last_seq)
            self._unseen.settle(question.applied)
            self.doubt = self._doubt_after(info)

    def _is_another(self, state: StreamState) -> bool:
        """Return True if the stream's last message was stored at another time than ours."""
        last = self.log.last_record
        return (
            last is not None and last.seq == state.last_seq and last.time_ns != state.last_time_ns
        )

    def _doubt_after(self, info: StreamInfo) -> Doubt:
        """Return what is still in doubt after the stream's info."""
        state, is_listed = info.state, info.state.deleted is not None
        if not self.is_whole:
            # Numbers of the whole stream say nothing of its end, but that something was deleted.
            is_wrong = not is_listed and (state.num_deleted, state.first_seq) != self._listed
        elif self.applied == state.last_seq:
            is_wrong = not 0 <= state.messages - len(self.log) <= len(self._expired)
            if len(self.log) and not self._expired:
                first = self.log.record(0)
                is_wrong |= (first.seq, first.time_ns) != (state.first_seq, state.first_time_ns)
        else:
            # Messages came meanwhile, or are to be read; those before them can only be too many.
            is_wrong = self.log.position(state.last_seq + 1) > state.messages
        if is_listed:
            self._listed = state.num_deleted, state.first_seq
        if is_wrong:
            return Doubt.ALL if is_listed else Doubt.DELETED
        return Doubt.DELETED if self.doubt >= Doubt.DELETED and not is_listed else Doubt.NONE


def _seq(record: Record) -> int:
    return record.seq
