"""Importing the package stays light: one import that fails would hide every Python source."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark_natsstream import DefaultSource, source

from natsstream.errors import MissingExtraError

IMPORT_TIMEOUT_S = 60

BLOCKED_IMPORT = """
import sys
from importlib.machinery import ModuleSpec

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"nats", "pyarrow", "numpy", "pandas"}:
            return ModuleSpec(name, self)

    def exec_module(self, module):
        raise ImportError(module.__name__ + " is blocked")

sys.meta_path.insert(0, Refuse())
import pyspark_natsstream

source = pyspark_natsstream.DefaultSource({"servers": "nats://h:1", "stream": "ORDERS"})
print(source.name(), source.schema().fieldNames())
"""


def test_package_imports_and_shows_its_schema_without_nats_and_pyarrow() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED_IMPORT],
        capture_output=True,
        text=True,
        timeout=IMPORT_TIMEOUT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "nats ['stream', 'subject', 'sequence', 'time', 'data']\n"


def test_missing_pyarrow_is_told_before_a_process_of_spark_dies_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_spec(name: str) -> object:
        return None if name == "pyarrow" else object()

    monkeypatch.setattr(source, "find_spec", find_spec)

    with pytest.raises(MissingExtraError, match="find no module pyarrow"):
        DefaultSource({"servers": "nats://h:1", "stream": "ORDERS"})
