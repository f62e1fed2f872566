"""What the instances of one producer appended, what they were told, and what is stored; pure rules.

Law: a producer's items are numbered, and each instance goes on where the stream's checkpoint says.
So the stream holds the items 0, 1, 2, ... of the producer, each once and in this order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scripts.chaos_runs.ledger import Findings

LIFE_HEADER = "Chaos-Life"
"""Which instance appended an item."""

Told: TypeAlias = Literal["stored", "refused", "unknown"]

_EXAMPLES = 5
_SIZES = (0, 3, 40, 700)
_ITEM = re.compile(rb"(\S+) (\d+) ")


def make_item(name: str, number: int) -> bytes:
    """Return an item: whoever makes it, it is the same."""
    return f"{name} {number} ".encode() + b"." * (_SIZES[number % len(_SIZES)] + number % 7)


@dataclass(frozen=True, slots=True)
class Held:
    """A message of the stream.

    Attributes:
        sequence: Where it stands.
        life: The instance that appended it.
        data: Its payload.
    """

    sequence: int
    life: int
    data: bytes


@dataclass(frozen=True, slots=True)
class _Answer:
    life: int
    number: int
    told: Told
    offset: int | None


class ProducerBook:
    """The book of one producer.

    Args:
        name: The producer.
        findings: Where a broken promise is written down.
        has_turns: Its instances claim their epoch back, so a later one does not end an earlier one.

    Attributes:
        name: As given.
        lives: Instances that were opened.
        flushed: Items that are stored, as the instances were told.
        counts: Other figures.
    """

    def __init__(self, name: str, findings: Findings, *, has_turns: bool = False) -> None:
        self.name: str = name
        self.lives: int = 0
        self.flushed: int = 0
        self.counts: Counter[str] = Counter()
        self._findings = findings
        self._has_turns = has_turns
        self._answers: list[_Answer] = []

    def begin_life(self) -> int:
        """Return the number of the next instance."""
        self.lives += 1
        return self.lives

    def tell(self, life: int, number: int, told: Told, offset: int | None = None) -> None:
        """Take down what an instance was told about an item."""
        self.counts[told] += 1
        self._answers.append(_Answer(life, number, told, offset))

    def flush(self, count: int) -> None:
        """Take down that all items below a number are stored, as a flush said."""
        self.flushed = max(self.flushed, count)

    def judge(self, held: Sequence[Held], checkpoint: object, count: int) -> None:
        """Compare with what the stream has.

        Args:
            held: The producer's messages, in the order of the stream.
            checkpoint: What the next instance would go on from.
            count: How many messages the producer's state counts.
        """
        self.counts["held"] = len(held)
        wrong = [n for n, each in enumerate(held) if each.data != make_item(self.name, n)]
        if wrong:
            first = wrong[0]
            near = [
                (each.sequence, each.life, each.data[:40])
                for each in held[max(first - 2, 0) : first + _EXAMPLES]
            ]
            self._add("exactly once", f"{len(wrong)} of {len(held)} items, from {first}: {near}")
            return
        if len(held) < self.flushed:
            self._add("kept", f"{len(held)} items are stored, {self.flushed} were flushed")
        if (checkpoint or 0) != len(held) or count != len(held):
            self._add(
                "checkpoint", f"{len(held)} items are stored, the state says {checkpoint}, {count}"
            )
        lives = [each.life for each in held]
        if not self._has_turns and lives != sorted(lives):
            self._add("fenced", "an instance has stored behind one that has replaced it")
        for answer in self._answers:
            self._judge_answer(answer, held)

    def _judge_answer(self, answer: _Answer, held: Sequence[Held]) -> None:
        there = held[answer.number] if answer.number < len(held) else None
        who = f"instance {answer.life}, item {answer.number}"
        if answer.told == "stored":
            if there is None:
                self._add("acked", f"{who} was told as stored and is missing")
            elif answer.offset not in (None, there.sequence):
                self._add("acked", f"{who} stands at {there.sequence}, told was {answer.offset}")
        elif answer.told == "refused" and there is not None and there.life == answer.life:
            self._add("refused", f"{who} was told as refused and stands at {there.sequence}")

    def _add(self, law: str, text: str) -> None:
        self._findings.add(law, f"{self.name}: {text}")


def number_of(data: bytes) -> int | None:
    """Return the number of an item; None for what is none."""
    found = _ITEM.match(data)
    return None if found is None else int(found[2])
