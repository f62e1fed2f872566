"""What was put into an object store, and what is read from it; pure rules.

Law: each name has one owner, who writes one thing after the other. An object's bytes say which
attempt they are, so a mix of two, a part of one, and one that was never put are all seen.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.views.bucket_book import End

_HEADER_BYTES = 64
_BLOCK_BYTES = 32

Deed: TypeAlias = Literal["put", "delete"]


@dataclass(slots=True)
class Deal:
    """One call that changes an object.

    Attributes:
        number: Counts up from 1, through all names.
        name: The object's.
        deed: Which call.
        size: Its bytes.
        end: What became of it.
    """

    number: int
    name: str
    deed: Deed
    size: int = 0
    end: End = "open"

    @property
    def is_possible(self) -> bool:
        """True when it may be stored though nobody was told so."""
        return self.end in ("open", "unknown")


def make_data(name: str, number: int, size: int) -> bytes:
    """Return the bytes of an object: every block of them is of this attempt alone."""
    header = f"{number} {size} {name} ".encode().ljust(_HEADER_BYTES, b".")
    # A hash as the pattern: no offset, no other attempt and no swapped chunk looks the same.
    pattern = b"".join(
        hashlib.sha256(b"%d %d" % (number, block)).digest() for block in range(_BLOCK_BYTES)
    )
    body = bytearray((pattern * (size // len(pattern) + 1))[: max(size - len(header), 0)])
    for start in range(0, len(body) - 8, 1024):
        body[start : start + 8] = start.to_bytes(8, "big")
    return (header + bytes(body))[:size]


class ObjectBook:
    """The book of one store.

    Args:
        findings: Where a broken promise is written down.

    Attributes:
        ends: How many attempts ended how.
        counts: Other figures.
    """

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._deals: list[Deal] = []
        self._of_name: dict[str, list[Deal]] = defaultdict(list)
        self._last_acked: dict[str, Deal] = {}
        self.ends: Counter[End] = Counter()
        self.counts: Counter[str] = Counter()

    @property
    def names(self) -> Sequence[str]:
        """Every name that somebody has tried to put."""
        return [*self._of_name]

    def begin(self, name: str, deed: Deed, size: int = 0) -> Deal:
        """Take down that an object is about to be changed; a put has 64 bytes at least."""
        deal = Deal(len(self._deals) + 1, name, deed, size)
        self._deals.append(deal)
        self._of_name[name].append(deal)
        return deal

    def end(self, deal: Deal, end: End) -> None:
        """Take down what became of an attempt."""
        deal.end = end
        self.ends[end] += 1
        if end == "acked":
            self._last_acked[deal.name] = deal

    def may_be_gone(self, name: str) -> bool:
        """Tell whether an object may be away, now or a moment ago."""
        last = self._last_acked.get(name)
        return (
            last is None
            or last.deed == "delete"
            or any(each.is_possible and each.deed == "delete" for each in self._of_name[name])
        )

    def see(self, name: str, data: bytes, reader: str, *, offset: int = 0) -> Deal | None:
        """Compare bytes that somebody has read, from some offset of a put that they name.

        A range that does not begin at 0 does not tell whose it is: any attempt may be it.
        """
        deal = self._deal_of(name, data) if offset == 0 else self._deal_with(name, data, offset)
        if deal is None:
            self._findings.add(
                "payload",
                f"{reader}: {name} from {offset} gives {len(data)} bytes, {data[:40]!r}..., that "
                f"nobody has put",
            )
        elif deal.end == "refused":
            self._findings.add("refused", f"{reader}: {name} gives put {deal.number}")
        return deal

    def _deal_of(self, name: str, data: bytes) -> Deal | None:
        try:
            deal = self._deals[int(data[:_HEADER_BYTES].split(b" ", 1)[0]) - 1]
        except (ValueError, IndexError):
            return None
        is_whole = (deal.name, deal.deed) == (name, "put") and data == make_data(
            name, deal.number, deal.size
        )
        return deal if is_whole else None

    def _deal_with(self, name: str, data: bytes, offset: int) -> Deal | None:
        for deal in reversed(self._of_name[name]):
            if deal.deed != "put" or deal.size < offset + len(data):
                continue
            if make_data(name, deal.number, deal.size)[offset : offset + len(data)] == data:
                return deal
        return None

    def judge(self, stored: Mapping[str, bytes | None]) -> None:
        """Compare the store with what was acknowledged; None is a name without an object."""
        for name in stored.keys() - self._of_name.keys():
            self._findings.add("content", f"{name} is there, and nobody has put it")
        for name, deals in self._of_name.items():
            last, data = self._last_acked.get(name), stored.get(name)
            found = self.see(name, data, "the end") if data is not None else None
            if data is not None and found is None:
                continue
            if last is found or (found is None and (last is None or last.deed == "delete")):
                continue
            wanted: Deed = "put" if found is not None else "delete"
            if any(each.is_possible and each.deed == wanted for each in deals) and (
                found is None or found.is_possible
            ):
                self.counts["objects that end with what nobody was told of"] += 1
                continue
            told = f"{last.deed} {last.number}" if last is not None else "nothing"
            now = f"put {found.number}" if found is not None else "gone"
            self._findings.add("acknowledged", f"{name}: acknowledged was {told}, found is {now}")
