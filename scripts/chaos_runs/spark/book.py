"""Compares the table and the copy with the messages of the source; pure rules.

Law: the source stream is what counts. The table has each of its messages once; the copy too, and
those of one partition in the order of their sequences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from scripts.chaos_runs.ledger import Findings

_EXAMPLES = 5


class Row(NamedTuple):
    """A message, as it stands somewhere.

    Attributes:
        sequence: Its sequence in the source.
        digest: The digest of its payload there.
    """

    sequence: int
    digest: bytes


def digest_of(data: bytes) -> bytes:
    """Return the digest of a payload."""
    return sha256(data).digest()


def judge_rows(name: str, rows: Iterable[Row], source: Mapping[int, bytes], found: Findings) -> int:
    """Compare rows with the source, and return how many there are.

    Args:
        name: Where they stand.
        rows: The rows, in any order.
        source: The digests of the source's messages, by sequence.
        found: Where a broken promise is written down.
    """
    copies: Counter[int] = Counter()
    differing: list[int] = []
    for row in rows:
        copies[row.sequence] += 1
        if source.get(row.sequence, row.digest) != row.digest:
            differing.append(row.sequence)
    wrong = {
        "missing": [sequence for sequence in source if sequence not in copies],
        "repeated": [sequence for sequence, count in copies.items() if count > 1],
        "foreign": [sequence for sequence in copies if sequence not in source],
        "differing": differing,
    }
    for law, sequences in wrong.items():
        if sequences:
            few = sorted(sequences)[:_EXAMPLES]
            found.add(law, f"{name}: {len(sequences)} of {len(source)}, such as {few}")
    return copies.total()


def judge_order(name: str, stored: Iterable[tuple[int, int]], found: Findings) -> None:
    """Check that each partition's rows stand in the order of their sequences.

    Args:
        name: Where they stand.
        stored: Partition and sequence of each row, as they stand there.
        found: Where a broken promise is written down.
    """
    newest: dict[int, int] = {}
    for partition, sequence in stored:
        before = newest.get(partition, 0)
        if sequence <= before:
            found.add("order", f"{name}: partition {partition} has {sequence} behind {before}")
            return
        newest[partition] = sequence
