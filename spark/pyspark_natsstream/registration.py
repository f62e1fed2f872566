"""`format("nats")` in a session where Spark does not find it by itself.

Law: a session has one data source, whatever threads register it, and its environment has every
variable that Spark sets for the process of a streaming query. Spark sets them in a map that all
queries of the data source share, without a lock: two queries that begin at one moment could each
add a variable, and after that no task of the data source can be read any more.
Source: Spark's PythonStreamingSourceRunner.init.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark_natsstream.source import DefaultSource

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql import SparkSession

_SET_BY_SPARK = (
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",
)
_lock = threading.Lock()
_registered: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Register `format("nats")` where Spark does not find it by itself.

    That is a thread of your own that writes: Spark looks for a sink in the thread's active session,
    and a new thread has none. With Spark Connect it is a server that has got the package from its
    client; batch reads find it then, and streams do not.
    """
    # Spark Connect has no JVM here; its server has the session.
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        spark.dataSource.register(DefaultSource)
        return
    with _lock:
        if spark not in _registered:
            with _variables_known(spark):
                spark.dataSource.register(DefaultSource)
            _registered.add(spark)
    session: Any = spark
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001


@contextmanager
def _variables_known(spark: SparkSession) -> Generator[None]:
    """Give what is registered meanwhile a place for each variable; Spark sets the values."""
    environment: dict[str, str] = spark.sparkContext.environment
    added = [name for name in _SET_BY_SPARK if name not in environment]
    environment.update(dict.fromkeys(added, ""))
    try:
        yield
    finally:
        for name in added:
            environment.pop(name, None)
