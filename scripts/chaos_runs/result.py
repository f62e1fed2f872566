"""The result of a run: its figures, as a table for people and as JSON for programs; pure rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

_MIB = 1 << 20


@dataclass(slots=True)
class Result:
    """What one run did and found.

    Attributes:
        seed: The seed of its faults.
        replicas: Replicas of the stream.
        version: The servers' version.
        seconds: How long it took, all in all.
        rounds: Rounds of faults.
        faults: Steps that were done, by kind.
        writers: By writer: sent, acked, refused, unknown, duplicates.
        readers: By reader: messages, resumes.
        hands: By consumer: deliveries, verdicts, used excuses.
        reasons: Why ordered consumers were made again, by reason.
        errors: Errors that the workers were told, by worker and name.
        counts: Other figures.
        memory_mib: Resident memory after each round.
        traced: Where memory was made, when that was traced.
        findings: What is wrong; empty when every promise held.
        steps: The rounds with their steps, up to the end.
        log: The last lines of the servers' logs, when something was found.
    """

    seed: int
    replicas: int
    version: str = ""
    seconds: float = 0.0
    rounds: int = 0
    faults: Mapping[str, int] = field(default_factory=dict[str, int])
    writers: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])
    readers: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])
    hands: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, dict[str, int]])
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    errors: Mapping[str, int] = field(default_factory=dict[str, int])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    memory_mib: list[int] = field(default_factory=list[int])
    traced: list[str] = field(default_factory=list[str])
    findings: list[str] = field(default_factory=list[str])
    steps: list[str] = field(default_factory=list[str])
    log: str = ""

    @property
    def is_good(self) -> bool:
        """True when nothing was found."""
        return not self.findings

    def note_memory(self, resident: int) -> None:
        """Add a sample of the resident memory."""
        self.memory_mib.append(resident // _MIB)

    def to_json(self) -> dict[str, object]:
        """Return everything as JSON's types."""
        return asdict(self)

    def __str__(self) -> str:
        acked = sum(row["acked"] for row in self.writers.values())
        read = sum(row["messages"] for row in self.readers.values())
        resumes = sum(row["resumes"] for row in self.readers.values())
        word = "good" if self.is_good else f"{len(self.findings)} FINDINGS"
        lines = [
            f"seed {self.seed}, R{self.replicas}, nats-server {self.version}: {word}",
            f"  {self.seconds:.0f} s, {self.rounds} rounds, {_told(self.faults)}",
            f"  {acked:,} messages acknowledged, {read:,} read, {resumes:,} resumes",
            *_rows("writer", self.writers),
            *_rows("reader", self.readers),
            *_rows("consumer", self.hands),
            f"  ordered consumers made again: {_told(self.reasons)}",
            f"  {_told(self.counts)}",
            f"  errors told: {_told(self.errors)}",
            f"  memory after each round, MiB: {' '.join(map(str, self.memory_mib))}",
        ]
        if not self.is_good:
            lines += ["steps:", *self.steps, "findings:", *self.findings, "logs:", self.log]
        return "\n".join([*lines, *self.traced])


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _rows(title: str, table: Mapping[str, Mapping[str, int]]) -> Sequence[str]:
    return [f"  {title} {name}: {_told(row)}" for name, row in table.items()]
