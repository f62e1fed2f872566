"""The one folder that holds everything of a quickstart: store, checkpoint, table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folder:
    """Where things lie.

    Attributes:
        path: The folder, absolute.
    """

    path: Path

    @property
    def server(self) -> Path:
        """Store, configuration and log of nats-server; locked by the process that runs it."""
        return self.path / "nats-server"

    @property
    def checkpoint(self) -> Path:
        """Where the ingest job stands in the stream."""
        return self.path / "flights.checkpoint"

    @property
    def table(self) -> Path:
        """The table: Parquet files, partitioned by origin."""
        return self.path / "flights.parquet"

    @property
    def scratch(self) -> Path:
        """Files that Spark needs while it runs."""
        return self.path / "spark-scratch"

    @property
    def spark_pid(self) -> Path:
        """Process id of the Java process that wrote to the table last."""
        return self.path / "spark.pid"

    @property
    def spark_log(self) -> Path:
        """What Spark's Java process printed in the last run."""
        return self.path / "spark.log"
