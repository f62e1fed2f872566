"""Who has held a lock, and when; pure rules.

Law: all holders live in one process and tell one book, so the order of what they tell is the order
of what was. Two hold at once when one says "mine" after a later one has said so.
"""

from __future__ import annotations

from collections import Counter

from scripts.chaos_runs.ledger import Findings


class LockBook:
    """The book of one lock.

    Args:
        name: For findings.
        findings: Where a broken promise is written down.

    Attributes:
        counts: How often it was held, lost, left and waited for in vain.
    """

    def __init__(self, name: str, findings: Findings) -> None:
        self.counts: Counter[str] = Counter()
        self._name = name
        self._findings = findings
        self._newest = 0
        self._holder = ""
        self._left: set[int] = set()
        self._written: dict[int, int] = {}

    @property
    def newest_token(self) -> int:
        """The largest token that anybody was given; 0 for none."""
        return self._newest

    def acquired(self, holder: str, token: int) -> None:
        """Take down that somebody has it now, under a token."""
        self.counts["held"] += 1
        if token <= self._newest:
            self._findings.add(
                "token", f"{self._name}: {holder} got {token} after {self._holder}: {self._newest}"
            )
            return
        self._newest, self._holder = token, holder

    def held(self, holder: str, token: int) -> None:
        """Take down that somebody believes at this moment that it is theirs."""
        self.counts["believed"] += 1
        if token < self._newest:
            self._findings.add(
                "two holders",
                f"{self._name}: {holder} holds {token}, and {self._holder} has {self._newest}",
            )
        elif token in self._left:
            self._findings.add("two holders", f"{self._name}: {holder} has left {token}")

    def left(self, token: int, how: str) -> None:
        """Take down that a holder knows that it has it no more: "released" or "lost"."""
        self.counts[how] += 1
        self._left.add(token)

    def wrote(self, token: int, revision: int) -> None:
        """Take down that a holder's guarded write was acknowledged."""
        self.counts["guarded writes"] += 1
        self._written[revision] = token

    def judge(self) -> None:
        """Compare the guarded writes as they stand: an older holder never writes behind a newer."""
        newest = 0
        for revision, token in sorted(self._written.items()):
            if token < newest:
                self._findings.add(
                    "fence", f"{self._name}: {token} wrote at {revision}, behind {newest}"
                )
            newest = max(newest, token)
