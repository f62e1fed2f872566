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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush, merge
from itertools import compress
from typing import NamedTuple

from natsstream.api.stream_info import StreamInfo, StreamState
from natsstream.conat.headers import may_end
from natsstream.conat.key_index import KeyIndex
from natsstream.conat.log import MessageLog
from natsstream.conat.record import Record, may_replace, replaces
from natsstream.conat.sequence_ranges import SequenceRanges
from natsstream.units import NS_PER_SECOND

# Messages behind a hole that wait for it; beyond that they are read again with the hole.
_EARLY_MAX = 65_536
# Messages that are loaded in one go, unless one of them has rules of its own.
_PIECE = 100
# Holes are remembered to tell which values were overwritten unseen; the oldest are forgotten.
_UNSEEN_RANGES_MAX = 1_000
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
    """What removes old messages: limits, and what the stream allows its messages to do.

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
    """

    first_seq: int
    last_seq: int
    is_older: bool = False


class Edit(NamedTuple):
    """A change of the arrays.

    Attributes:
        record: The message that was added or removed.
        is_removal: True if it was removed.
        previous: The message whose value the key had before; None for none.
        is_conflated: True if the key had other values in between, which nobody will see.
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
        # An info of the stream that knows of later messages.
        self._info: StreamInfo | None = None
        # The stream's deleted sequences, as counted when all were listed.
        self._deleted_count = 0
        # The last sequence that is known to exist.
        self._known = self.applied
        # Live messages behind a hole.
        self._early: dict[int, Record] = {}
        self._early_before: dict[int, int] = {}
        # Removed sequences that a late message or answer may still bring.
        self._removed = SequenceRanges()
        self._purged = 0
        self._asked: list[Question] = []
        # Sequences that were gone before anyone could see them.
        self._unseen = SequenceRanges()
        self._expiries: list[tuple[int, int]] = []
        # Messages that have expired here, and that the server may still hold for a moment.
        self._expired: dict[int, int] = {}

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
            # Reads are faster than the feed now and then. Otherwise the stream began anew.
            held, last = self.log.find(seq), self.log.last_record
            if held is not None and held.time_ns != record.time_ns:
                self._created_ns = None
                yield from self.reset()
            elif seq >= self.floor and (last is None or record.time_ns > last.time_ns):
                self.doubt = max(self.doubt, Doubt.COUNT)
        self._known = max(self._known, seq)
        if seq <= self.applied:
            return
        if seq > self.applied + 1:
            if len(self._early) >= _EARLY_MAX:
                self._early.clear()
                self._early_before.clear()
            else:
                self._early[seq] = record
                self._early_before[seq] = last_subject_seq
            return
        self.applied = seq
        yield from self._apply_live(record, last_subject_seq)
        if self._early:
            yield from self._apply_early()
        if self._info is not None:
            yield from self._compare_with_info()

    def expect(self, seq: int) -> None:
        """Take note that a message is stored, such as one whose ack has come."""
        self._known = max(self._known, seq)

    def deleted(self, first_seq: int, last_seq: int) -> Iterator[Edit]:
        """Take the deletion of a range; both ends are included."""
        if last_seq > self.applied or self._asked:
            self._removed.add(first_seq, last_seq)
        yield from self._remove_range(first_seq, last_seq)

    def purged(self, last_seq: int) -> Iterator[Edit]:
        """Take the deletion of all messages up to a sequence."""
        if last_seq > self._purged:
            self._purged = last_seq
            yield from self._remove_range(1, last_seq)

    # Answers.

    def ask(self, first_seq: int, last_seq: int, *, is_older: bool = False) -> Question:
        """Note that a range is being read, and return the question.

        `fetched` or `give_up` ends it; a reset does, too.
        """
        question = Question(first_seq, last_seq, is_older)
        self._asked.append(question)
        return question

    def give_up(self, question: Question) -> None:
        """Note that a read has failed."""
        if question in self._asked:
            self._asked.remove(question)
            self._forget_removed()

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
        yield from self._compare(max(first_seq, self.floor), known_to, records)
        early = (record for seq, record in sorted(self._early.items()) if seq <= last_seq)
        arrived = (record for record in records if record.seq > self.applied)
        for record in merge(arrived, early, key=_seq):
            if record.seq > self.applied:  # Else it came both ways.
                self._unseen.add(self.applied + 1, record.seq - 1)
                self.applied = record.seq
                if record.seq in self._early or not self._is_gone(record.seq):
                    yield from self._apply_read(record)
        if last_seq > self.applied:
            self._unseen.add(self.applied + 1, last_seq)
            self.applied = last_seq
            self.expect(last_seq)
        if len(self._unseen) > _UNSEEN_RANGES_MAX:
            self._unseen = SequenceRanges()
        if self.doubt is Doubt.ALL and first_seq <= self.floor and last_seq >= self.applied:
            self.doubt = Doubt.COUNT
        self._asked.remove(question)
        yield from self._apply_early()
        self._forget_removed()
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
            if self._are_new(seqs[start], subjects, keys, b"".join(blocks)):
                self.log.append_columns(seqs[cut], times_ns[cut], subjects, blocks, data[cut])
                self.keys.extend(keys)
            else:
                for record in map(Record, seqs[cut], times_ns[cut], subjects, blocks, data[cut]):
                    if not self._is_gone(record.seq):
                        for _ in self._roll_up(record):
                            pass
                        self.log.insert(record)
                        self._index(record)
        self.applied = seqs[-1]

    def _are_new(
        self, first_seq: int, subjects: Sequence[str], keys: dict[str, int], blocks: bytes
    ) -> bool:
        """Return True if loaded messages are there to stay, and change nothing but their keys.

        Args:
            first_seq: The first sequence of the messages.
            subjects: The subject of each one's key.
            keys: The sequence of each key.
            blocks: All header blocks, joined: one search is faster than many.
        """
        unkeyed = subjects.count("")
        return (
            first_seq > self._purged
            and not self._removed
            and not may_end(blocks)
            and not may_replace(blocks, keyed=not unkeyed)
            and len(keys) + unkeyed == len(subjects)
            and self.keys.newest.keys().isdisjoint(keys)
        )

    def filled(self, last_seq: int) -> Iterator[Edit]:
        """Take the end of the first load: the stream holds no more messages up to a sequence."""
        self.applied = max(self.applied, last_seq)
        self._known = max(self._known, self.applied)
        yield from self._apply_early()
        self._forget_removed()
        yield from self._compare_with_info()

    def info(self, info: StreamInfo, now_ns: int) -> Iterator[Edit]:
        """Compare the arrays with the stream's info, and remove what the stream lacks.

        Args:
            info: The info.
            now_ns: When it came, in nanoseconds of any one clock.
        """
        state, created_ns = info.state, self._created_ns or info.created_ns
        is_newer, is_shorter = info.created_ns > created_ns, state.last_seq < self.applied
        # So does a server that was cut off describe the stream, for a while.
        is_older = info.created_ns < created_ns or (is_shorter and not is_newer)
        self._older_since_ns = (self._older_since_ns or now_ns) if is_older else None
        if is_older and now_ns - (self._older_since_ns or 0) <= _STALE_LEADER_NS:
            self.doubt = max(self.doubt, Doubt.DELETED)
            return
        self._created_ns = info.created_ns
        if is_older or is_newer or self._is_another(state):
            yield from self.reset()
        self.expect(state.last_seq)
        self._info = info
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
        self._early_before.clear()
        self._asked.clear()
        self._removed, self._unseen = SequenceRanges(), SequenceRanges()
        self._expiries.clear()
        self._expired.clear()
        self._deleted_count = 0
        self._older_since_ns, self._info = None, None
        self.life += 1
        self.doubt = Doubt.COUNT
        yield from self._remove_range(0, applied)

    # Time and limits.

    def tick(self, now_ns: int) -> Iterator[Edit]:
        """Remove what has expired by a moment of the server's clock, in Unix nanoseconds."""
        while self._expired and next(iter(self._expired.values())) <= now_ns - _EXPIRED_KEPT_NS:
            del self._expired[next(iter(self._expired))]
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

    def _apply_live(self, record: Record, last_subject_seq: int) -> Iterator[Edit]:
        """Add a message of the live feed, also one that was deleted before it came."""
        is_gone = self._is_gone(record.seq)
        yield from self._apply(record, is_conflated=last_subject_seq in self._unseen)
        if is_gone:
            yield from self._remove_range(record.seq, record.seq)

    def _apply(self, record: Record, *, is_conflated: bool) -> Iterator[Edit]:
        """Add the message of the highest sequence so far, unless it is before the floor."""
        if record.seq < self.floor:
            return
        previous_seq = self.keys.live.get(record.key_subject)
        previous = None if previous_seq is None else self.log.find(previous_seq)
        per_key = self._limits.max_msgs_per_key
        if per_key < 1:
            # The server counts a message before it removes the one that it replaces.
            yield from self._evict()
        yield from self._roll_up(record)
        if per_key > 0:
            if per_key > 1 and record.key_subject:
                for seq in self.keys.surplus(record.key_subject, per_key - 1):
                    yield from self.deleted(seq, seq)
            yield from self._evict()
        self.log.insert(record)
        self._index(record)
        yield Edit(record, previous=previous, is_conflated=is_conflated)

    def _evict(self) -> Iterator[Edit]:
        """Remove the oldest messages that the stream has no room for when another one comes."""
        while 0 < self._limits.max_msgs <= len(self.log):
            yield from self.deleted(first := self.log.seq(0), first)

    def _removes(self, headers: bytes) -> str:
        """Return which earlier messages go for a message with this header block."""
        found = replaces(headers) if self._limits.has_rollups else ""
        return "subject" if not found and self._limits.max_msgs_per_key == 1 else found

    def _roll_up(self, record: Record) -> Iterator[Edit]:
        """Remove what the server removes for a message."""
        match self._removes(record.headers):
            case "subject" if record.key_subject:
                for seq in self.keys.replaced(record.key_subject, record.seq):
                    self.log.remove(seq)
                    self._note_removed(seq, seq)
            case "all":
                yield from self.purged(record.seq - 1)
            case "subject":  # Another client's; it concerns all messages without a key.
                self.doubt = max(self.doubt, Doubt.DELETED)
            case _:
                pass

    def _index(self, record: Record) -> None:
        if record.key_subject:
            self.keys.add(record.key_subject, record.seq, is_tombstone=record.is_tombstone)
        expires_ns = record.expires_ns if self._limits.has_ttls else None
        if expires_ns is not None:
            heappush(self._expiries, (expires_ns, record.seq))

    def _apply_early(self) -> Iterator[Edit]:
        """Apply the live messages that no hole separates any more."""
        while self._early:
            seq = self.applied + 1
            record = self._early.pop(seq, None)
            before = self._early_before.pop(seq, 0)
            if record is None:
                break
            self.applied = seq
            yield from self._apply_live(record, before)
        stale = [seq for seq in self._early if seq <= self.applied] if self._early else ()
        for seq in stale:
            del self._early[seq], self._early_before[seq]

    def _compare(self, first_seq: int, last_seq: int, records: Sequence[Record]) -> Iterator[Edit]:
        """Make the log equal to an answer in a range that was applied, or is before the floor."""
        if first_seq > last_seq:
            return
        held = {record.seq for record in self.log.records(first_seq, last_seq)}
        for record in records:
            seq = record.seq
            if seq > last_seq:
                break
            if seq < first_seq:
                continue
            if seq in held:
                held.remove(seq)
            elif not self._is_gone(seq):
                newest = self.keys.newest.get(record.key_subject, 0)
                if newest > seq and self._removes(self._headers(newest)) == "subject":
                    continue  # It was overwritten meanwhile.
                self.log.insert(record)
                self._index(record)
                yield Edit(record)
        for seq in sorted(held):
            yield from self._remove_range(seq, seq)

    def _apply_read(self, record: Record) -> Iterator[Edit]:
        """Add a message that was read, or came live behind a hole that was."""
        since = self.keys.newest.get(record.key_subject, 0) + 1
        is_keyed = bool(record.key_subject)
        is_conflated = is_keyed and self._unseen.overlaps(since, record.seq)
        is_gone = self._is_gone(record.seq)
        yield from self._apply(record, is_conflated=is_conflated)
        if is_gone:
            yield from self._remove_range(record.seq, record.seq)

    def _is_gone(self, seq: int) -> bool:
        return seq <= self._purged or seq in self._removed or seq in self._expired

    def _expire(self, seq: int, now_ns: int) -> Iterator[Edit]:
        if self.log.find(seq) is not None:
            self._expired[seq] = now_ns
            yield from self._remove_range(seq, seq)

    def _headers(self, seq: int) -> bytes:
        record = self.log.find(seq)
        return b"" if record is None else record.headers

    def _remove_range(self, first_seq: int, last_seq: int) -> Iterator[Edit]:
        """Remove the held messages of a range, one edit each."""
        for record in list(self.log.records(first_seq, last_seq)):
            self.log.remove(record.seq)
            self._note_removed(record.seq, record.seq)
            subject, previous = record.key_subject, None
            if subject:
                if self.keys.live.get(subject) == record.seq:
                    previous = record
                older = self.keys.remove(record)
                if older is not None and (found := self.log.find(older)) is not None:
                    self._index(found)
            yield Edit(record, is_removal=True, previous=previous)

    def _note_removed(self, first_seq: int, last_seq: int) -> None:
        if any(each.first_seq <= last_seq and first_seq <= each.last_seq for each in self._asked):
            self._removed.add(first_seq, last_seq)

    def _forget_removed(self) -> None:
        if not self._asked:
            self._removed.forget(self.applied)

    def _compare_with_info(self) -> Iterator[Edit]:
        """Remove what the stream lacks, once all is applied that the info knows of.

        Sooner, a value that was overwritten would be removed and come back as another one.
        """
        info = self._info
        if info is not None and self.applied >= info.state.last_seq:
            self._info = None
            yield from self.purged(info.state.first_seq - 1)
            for each in info.state.deleted or ():
                yield from self.deleted(each.first_seq, each.last_seq)
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
            is_wrong = not is_listed and state.num_deleted != self._deleted_count
        elif self.applied == state.last_seq:
            is_wrong = not 0 <= state.messages - len(self.log) <= len(self._expired)
            first_seq = self.log.first_seq or state.first_seq
            is_wrong |= not self._expired and first_seq != state.first_seq
        else:
            # Messages came meanwhile, or are to be read; those before them can only be too many.
            is_wrong = self.log.position(state.last_seq + 1) > state.messages
        if is_listed:
            self._deleted_count = state.num_deleted
        if is_wrong:
            return Doubt.ALL if is_listed else Doubt.DELETED
        return Doubt.DELETED if self.doubt >= Doubt.DELETED and not is_listed else Doubt.NONE


def _seq(record: Record) -> int:
    return record.seq
