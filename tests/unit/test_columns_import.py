"""What columns may not import: run in a process of its own, so that no other test has done it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
import numpy
from natsstream import columns

positions = numpy.array([0, 2]), numpy.array([2, 4])
arrays = [
    columns.constant_column("S", 2),
    columns.text_column(b"abcd", *positions),
    columns.integer_column(positions[0]),
    columns.time_column(positions[0], "us"),
    columns.headers_column(b"abcd", positions[0], positions[0], lambda block: ()),
    columns.binary_column(b"abcd", *positions),
]
schema = columns.message_schema(time_unit="us")
batch = columns.record_batch(arrays, schema)
batch.validate(full=True)
columns.join_batches([batch, batch])
columns.table([batch], schema)
print("pandas" in sys.modules)
"""


def test_columns_do_not_import_pandas() -> None:
    """Pandas would cost every process that reads columns the better part of a second."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
