"""Writes to a core stream, and the changes that each of its clients was told; pure rules.

Law: a client is told each message once, in the order of the stream, with the value that its key had
before. A plain list that follows its changes alone has what its arrays have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scripts.chaos_runs.ledger import Findings

_SHORT = 40


def brief(value: object) -> str | None:
    """Return a value so that it can be kept: its begin and its length; None for none."""
    if not isinstance(value, str):
        return None
    return value if len(value) <= _SHORT else f"{value[:_SHORT]}~{len(value)}"


@dataclass(frozen=True, slots=True)
class Told:
    """One change that a client was told.

    Attributes:
        seq: The message's sequence.
        key: Its key; None for none.
        value: Its value, as `brief` has it; None for a tombstone or a removal.
        prev: The value before, the same way; None for none.
        is_removal: True if the message is gone.
        is_conflated: As of the change.
    """

    seq: int
    key: str | None = None
    value: str | None = None
    prev: str | None = None
    is_removal: bool = False
    is_conflated: bool = False


@dataclass(frozen=True, slots=True)
class Acked:
    """A message whose ack came.

    Attributes:
        key: Its key; None for none.
        value: Its value, as `brief` has it; None for a tombstone.
        expires: True if it had a TTL.
    """

    key: str | None
    value: str | None
    expires: bool = False


class CoreBook:
    """The writes to one core stream.

    Args:
        findings: Faults that were found.

    Attributes:
        acked: Acknowledged writes, by sequence.
        sent: The key of each value that was ever sent.
        deleted: Sequences whose deletion was tried.
        purged: The last sequence of a purge that was tried.
        counts: How often what was done.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.acked: dict[int, Acked] = {}
        self.sent: dict[str, str | None] = {}
        self.deleted: set[int] = set()
        self.purged: int = 0
        # The keys of writes with a TTL that have no ack: each may be stored, and expire.
        self._expiring: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def send(self, key: str | None, value: object, *, expires: bool = False) -> None:
        """Take down that a value is about to be sent."""
        self.counts["sent"] += 1
        text = brief(value)
        if text is not None:
            self.sent[text] = key
            if expires and key is not None:
                self._expiring[text] = key

    def ack(self, seq: int, key: str | None, value: object, *, expires: bool = False) -> None:
        """Take down an ack."""
        self.counts["acked"] += 1
        if seq in self.acked:
            self._findings.add("acknowledged", f"two messages are acknowledged as {seq}")
        self.acked[seq] = acked = Acked(key, brief(value), expires)
        self._expiring.pop(acked.value or "", None)

    def is_excused(self, seq: int) -> bool:
        """Return True if somebody may have removed a message, or it may have expired."""
        held = self.acked.get(seq)
        return seq in self.deleted or seq <= self.purged or (held is not None and held.expires)

    def judge(self, held: Sequence[Told]) -> None:
        """Compare the acks with what the stream holds in the end.

        Args:
            held: Its messages, as one client has them.
        """
        there = {each.seq: each for each in held}
        newest = {each.key: each.seq for each in held if each.key is not None}
        for seq, acked in self.acked.items():
            if seq in there:
                if (there[seq].key, there[seq].value) != (acked.key, acked.value):
                    self._findings.add("content", f"{seq} is {there[seq]}, not {acked}")
            elif not self.is_excused(seq) and not self._is_replaced(seq, acked.key, newest):
                self._findings.add("acknowledged", f"{seq} of key {acked.key} is lost")

    def _is_replaced(self, seq: int, key: str | None, newest: dict[str, int]) -> bool:
        """Return True if a later message of the key is there, or may have been removed itself."""
        if key is None:
            return False
        if newest.get(key, 0) > seq or key in self._expiring.values():
            return True
        return any(
            each > seq and held.key == key and self.is_excused(each)
            for each, held in self.acked.items()
        ) or any(each > seq for each in self.deleted if each not in self.acked)


class ClientBook:
    """The changes that one client of a core stream was told since it opened it.

    Args:
        name: For findings.
        book: The writes.
        findings: Faults that were found.

    Attributes:
        count: Number of changes.
        conflated: How many of them were conflated.
    """

    def __init__(self, name: str, book: CoreBook, findings: Findings) -> None:
        self.name: str = name
        self.count: int = 0
        self.conflated: int = 0
        self._book = book
        self._findings = findings
        self._shown: dict[int, Told] = {}
        self._of_key: dict[str, int] = {}
        self._last = 0
        self._told: set[int] = set()
        # Of each change of a key: its sequence, that of the change before, and if that was there
        # still, and if it was conflated.
        self._changes: list[tuple[str, int, int, bool, bool]] = []

    def take(self, told: Told) -> None:
        """Follow one change."""
        self.count += 1
        if told.is_removal:
            if self._shown.pop(told.seq, None) is None:
                self._add("once", f"{told.seq} is removed, and is not there")
            return
        if told.seq <= self._last:
            self._add("order", f"{told.seq} is told behind {self._last}")
        self._last = max(self._last, told.seq)
        self._told.add(told.seq)
        if told.value is not None and self._book.sent.get(told.value, "nobody") != told.key:
            self._add("content", f"{told}, which nobody has sent")
        if told.key is not None:
            self._follow_key(told, told.key)
        elif told.is_conflated:
            self._add("conflated", f"{told.seq} has no key")
        self._shown[told.seq] = told

    def _follow_key(self, told: Told, key: str) -> None:
        before = self._of_key.get(key, 0)
        held = self._shown.pop(before, None)
        if told.prev != (None if held is None else held.value):
            self._add("previous", f"{told}, and the key had {held}")
        self._of_key[key] = told.seq
        self.conflated += told.is_conflated
        self._changes.append((key, told.seq, before, held is not None, told.is_conflated))

    def compare(self, seqs: Sequence[int]) -> None:
        """Compare the plain list with the sequences of the arrays."""
        if sorted(self._shown) != list(seqs):
            wrong = sorted({*self._shown} ^ {*seqs})
            self._add("arrays", f"the changes and the arrays differ in {wrong[:20]}")

    def judge(self) -> None:
        """Compare what was told with what was written."""
        for seq, acked in self._book.acked.items():
            if acked.key is None and seq not in self._told and not self._book.is_excused(seq):
                self._add("once", f"{seq} was never told")
        of_key: dict[str, list[int]] = {}
        for seq, acked in sorted(self._book.acked.items()):
            if acked.key is not None:
                of_key.setdefault(acked.key, []).append(seq)
        for key, seq, before, was_there, is_conflated in self._changes:
            between = [each for each in of_key.get(key, ()) if before < each < seq]
            unseen = [each for each in between if each not in self._told]
            # The client was told that the value was gone, and the last one after it was deleted
            # before it came: that leaves no trace.
            asked = unseen if was_there else unseen[-1:]
            if not is_conflated and any(not self._book.is_excused(each) for each in asked):
                self._add("conflated", f"{seq} of {key}: {unseen[:9]} after {before} are not told")
            if is_conflated and all(each in self._told for each in range(before + 1, seq)):
                self._add("conflated", f"{seq} of {key}: all after {before} was told")

    def _add(self, law: str, text: str) -> None:
        self._findings.add(law, f"{self.name}: {text}")
