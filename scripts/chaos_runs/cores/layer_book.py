"""What was written to a map and to a log, and what each of their clients was told; pure rules.

Law: each key has one owner, and each writer counts its values up, so order shows in the values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from scripts.chaos_runs.ledger import Findings


def number_of(value: object) -> int:
    """Return the number of a value: its text begins with its writer, a dash and the number."""
    return int(str(value).split("-", 2)[1])


class MapBook:
    """What the owners of a map's keys have written, and what clients were told.

    Args:
        findings: What is wrong.

    Attributes:
        wanted: What each key has in the end; a key that was deleted is not there.
        counts: How often what was done.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.wanted: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._told: dict[tuple[str, str], tuple[int, str | None]] = {}

    def take(self, client: str, key: str, value: object, *, is_owner: bool = False) -> None:
        """Follow a change that a client was told.

        Args:
            client: The client.
            key: The key.
            value: The value; None for a deletion.
            is_owner: True if the client owns the key: it is told what it has, saved or not.
        """
        last, _ = self._told.get((client, key), (0, None))
        text = None if value is None else str(value)
        number = last if text is None else number_of(text)
        if text is not None and (number < last or (number == last and not is_owner)):
            self._findings.add("order", f"{client}: {key} is told {number} behind {last}")
        self._told[client, key] = number, text

    def compare(self, client: str, held: Mapping[str, object]) -> None:
        """Compare a client's map with what was written, and with the changes that it was told."""
        if held != self.wanted:
            keys = sorted(
                key for key in {*held, *self.wanted} if held.get(key) != self.wanted.get(key)
            )
            self._findings.add("acknowledged", f"{client}: the keys {keys} are wrong")
        for (name, key), (_, text) in self._told.items():
            if name == client and text != self.wanted.get(key):
                self._findings.add("once", f"{client}: the last change of {key} is another value")


class LogBook:
    """What the writers of a log have written, and what clients were told.

    Args:
        findings: What is wrong.

    Attributes:
        written: The values of each writer, in order.
        counts: How often what was done.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.written: dict[str, list[str]] = {}
        self.counts: Counter[str] = Counter()
        self._told: dict[str, list[str]] = {}

    def write(self, writer: str, value: str) -> None:
        """Take down a value that is written next."""
        self.written.setdefault(writer, []).append(value)

    def take(self, client: str, value: object) -> None:
        """Follow a change that a client was told."""
        self._told.setdefault(client, []).append(str(value))

    def compare(self, client: str, held: Sequence[object], *, is_told: bool = True) -> None:
        """Compare a client's log with what was written, and with the changes that it was told."""
        values = [str(each) for each in held]
        for writer, written in self.written.items():
            mine = [each for each in values if each.startswith(f"{writer}-")]
            if mine != written:
                wrong = sorted(Counter(mine) - Counter(written)) or sorted({*written} - {*mine})
                text = f"order, or {wrong[:9]}"
                self._findings.add("acknowledged", f"{client}: values of {writer}: {text}")
        if is_told and self._told.get(client, []) != values:
            self._findings.add("once", f"{client}: the changes are not the log")
