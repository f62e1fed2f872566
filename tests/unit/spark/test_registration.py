"""One data source a session, with a place for each variable that Spark sets in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from pyspark_natsstream import DefaultSource, register

SET_BY_SPARK = {
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",
}


class Session:
    """Stands for Spark's session, and keeps what is registered with its environment."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(environment={"SPARK_LOCAL_DIRS": "/own"})
        self.dataSource = SimpleNamespace(register=self._register)
        self.found: list[tuple[object, dict[str, str]]] = []
        self._jvm = MagicMock()
        self._jsparkSession = object()

    def _register(self, source: object) -> None:
        self.found.append((source, dict(self.sparkContext.environment)))


def test_threads_register_one_source_whose_variables_are_all_there() -> None:
    session: Any = Session()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(register, [session] * 4))

    [(source, variables)] = session.found
    assert source is DefaultSource
    assert variables.keys() == SET_BY_SPARK
    assert variables["SPARK_LOCAL_DIRS"] == "/own"
    assert session.sparkContext.environment == {"SPARK_LOCAL_DIRS": "/own"}
    classic = session._jvm.org.apache.spark.sql.classic.SparkSession
    assert classic.setActiveSession.call_count == 4
