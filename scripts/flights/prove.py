"""The proof that the table is the CSV: every row, once, value for value.

Law: the CSV is read again from the package, as bytes; nothing in it is interpreted but the commas.
The table is read as any program would, without Spark, and each of its rows is written back as a
line of CSV. A row is right when the SHA-256 of both lines is the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pyarrow as pa
from pyarrow import compute, parquet

from natsstream.errors import IntegrityError
from scripts.flights.table import committed_names, data_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_MEMBER = "flights.csv"
_COLUMNS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
_CARRIER, _ORIGIN, _DISTANCE = (
    _COLUMNS.split(",").index(name) for name in ("carrier", "origin", "distance")
)
_DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must be the same in the CSV and in the table.

    Attributes:
        name: What is compared.
        expected: As the CSV says.
        found: As the table says; the same text when the check passes.
        sequence: The first sequence that is wrong, where one can be named.
    """

    name: str
    expected: str
    found: str
    sequence: int | None = None

    @property
    def has_passed(self) -> bool:
        """Whether both say the same."""
        return self.expected == self.found


class ProofError(IntegrityError):
    """The table is not the CSV.

    Attributes:
        failed: The checks that failed.
    """

    def __init__(self, failed: Sequence[Check]) -> None:
        told = [f"{each.name}: expected {each.expected}, found {each.found}" for each in failed]
        super().__init__(
            "the table is not the CSV",
            detail="; ".join(told),
            hint="keep the folder and report it; or remove table and checkpoint in it, run again",
        )
        self.failed = tuple(failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What one side says, row by row.

    Attributes:
        sequences: Sequence of each row.
        subjects: Subject of each row.
        digests: SHA-256 of each row's line.
        distance: Sum of all distances.
    """

    sequences: Sequence[int]
    subjects: Sequence[str]
    digests: Sequence[bytes]
    distance: int


def prove(table: Path, archive: Path, *, rows: int) -> list[Check]:
    """Compare a table with the first rows of the CSV.

    Args:
        table: Folder of the table.
        archive: The zip file with the CSV.
        rows: Rows that the table must have.

    Returns:
        The checks, all passed.

    Raises:
        ProofError: A check failed; `failed` tells which, and at which sequence.

    Cost: both sides in memory, about 200 bytes a row.
    """
    wanted = _read_csv(archive, rows)
    try:
        found = _read_table(table)
    except (OSError, KeyError, ValueError) as error:
        # pyarrow's own errors are among these: a missing column, a broken file.
        unread = Check(name="table", expected="a readable table", found=str(error))
        raise ProofError([unread]) from error
    checks = [
        _check_files(table),
        Check(name="rows", expected=f"{rows:,}", found=f"{len(found.sequences):,}"),
        _check_sequences(found.sequences, rows),
        Check(
            name="sum of distances", expected=f"{wanted.distance:,}", found=f"{found.distance:,}"
        ),
        _check_values("subjects", wanted.subjects, found.subjects, found.sequences),
        _check_values("row digests", wanted.digests, found.digests, found.sequences),
    ]
    failed = [check for check in checks if not check.has_passed]
    if failed:
        raise ProofError(failed)
    return checks


def _read_csv(archive: Path, rows: int) -> _Side:
    """Return the first rows of the CSV; row n counts as sequence n."""
    with ZipFile(archive) as opened:
        header, *lines = opened.read(_MEMBER).splitlines()[: rows + 1]
    if header.decode() != _COLUMNS:
        raise IntegrityError(f"{archive} has other columns: {header.decode()}")
    subjects: list[str] = []
    distance = 0
    for line in lines:
        values = line.decode().split(",")
        subjects.append(f"flights.{values[_ORIGIN]}.{values[_CARRIER]}")
        distance += int(values[_DISTANCE])
    return _Side(
        sequences=range(1, len(lines) + 1),
        subjects=subjects,
        digests=[hashlib.sha256(line).digest() for line in lines],
        distance=distance,
    )


def _read_table(folder: Path) -> _Side:
    table = parquet.read_table(str(folder), partitioning="hive")
    if table.column("sequence").null_count:
        raise ValueError("a row has no sequence")
    texts = [_as_csv(table, name) for name in _COLUMNS.split(",")]
    lines = compute.binary_join_element_wise(
        *texts, ",", null_handling="replace", null_replacement="NA"
    )
    distances = [value for value in table.column("distance").to_pylist() if value is not None]
    return _Side(
        sequences=table.column("sequence").to_pylist(),
        subjects=table.column("subject").to_pylist(),
        digests=[hashlib.sha256(line.encode()).digest() for line in lines.to_pylist()],
        distance=sum(distances),
    )


def _as_csv(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column as the CSV writes it; unknown values stay null."""
    text = table.column(name).cast(pa.string())
    if name != "time_hour":
        return text
    # Arrow writes 2013-01-01 10:00:00.000000Z; another fraction stays, and does not compare.
    text = compute.replace_substring(text, pattern=".000000Z", replacement="Z")
    return compute.replace_substring(text, pattern=" ", replacement="T")


def _check_files(table: Path) -> Check:
    """Compare the files in the folder with those that Spark has committed."""
    committed, found = committed_names(table), set(data_files(table))
    told = f"{len(committed)} committed"
    if committed == found:
        return Check(name="files", expected=told, found=told)
    return Check(
        name="files",
        expected=told,
        found=f"{len(found - committed)} more, {len(committed - found)} missing",
    )


def _check_sequences(found: Iterable[int], rows: int) -> Check:
    """Check that every sequence is there once, and no other."""
    wanted = f"1 to {rows:,}, each once"
    counts = Counter(found)
    wrong = [number for number in range(1, rows + 1) if counts[number] != 1]
    wrong += sorted(number for number in counts if not 0 < number <= rows)
    if not wrong:
        return Check(name="sequences", expected=wanted, found=wanted)
    first = wrong[0]
    return Check(
        name="sequences",
        expected=wanted,
        found=f"{first} {counts[first]} times, {len(wrong):,} wrong in all",
        sequence=first,
    )


def _check_values(
    name: str,
    wanted: Sequence[str] | Sequence[bytes],
    found: Sequence[str] | Sequence[bytes],
    sequences: Sequence[int],
) -> Check:
    """Compare a value of each row by its sequence; rows that are missing are told elsewhere."""
    rows = len(wanted)
    wrong = [
        number
        for number, value in zip(sequences, found, strict=True)
        if not 0 < number <= rows or wanted[number - 1] != value
    ]
    expected = _digest(zip(range(1, rows + 1), wanted, strict=True))
    if wrong:
        first = min(wrong)
        told = f"another at sequence {first}, {len(wrong):,} wrong in all"
        return Check(name=name, expected=expected, found=told, sequence=first)
    told = _digest(sorted(zip(sequences, found, strict=True)))
    return Check(name=name, expected=expected, found=told)


def _digest(values: Iterable[tuple[int, str | bytes]]) -> str:
    """Return one digest for the values in the order of their sequences."""
    whole = hashlib.sha256()
    for number, value in values:
        whole.update(b"%d:" % number)
        whole.update(value if isinstance(value, bytes) else value.encode())
    return f"sha256 {whole.hexdigest()[:_DIGEST_CHARS]}"
