"""The data source that Spark finds under the name `nats`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from natsstream.errors import ConfigError
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.rows import check_columns
from pyspark_natsstream.schema import check_schema, read_schema
from pyspark_natsstream.write_options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

FORMAT = "nats"

# Options of a streaming query that Spark passes on to its sink.
_OF_SPARK = ("checkpointlocation", "queryname")


class DefaultSource(DataSource):
    """A JetStream stream as a table; the page of Spark options has its options."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of a read without a schema of its own.

        Raises:
            ConfigError: An option is unknown, missing or illegal.
        """
        return read_schema(ReadOptions.parse(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read.

        Raises:
            ConfigError: An option or a column is illegal.
        """
        from pyspark_natsstream.batch import NatsReader, PushdownReader  # noqa: PLC0415 - It imports nats.

        options = ReadOptions.parse(self.options)
        options.check_batch()
        check_schema(schema, options)
        # Spark refuses a reader that takes filters while its own setting is off.
        reader = PushdownReader if options.filter_pushdown else NatsReader
        return reader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's.
        """Return the reader of a streaming query.

        Raises:
            ConfigError: An option or a column is illegal.
        """
        from pyspark_natsstream.streaming import NatsStreamReader  # noqa: PLC0415 - As above.

        options = ReadOptions.parse(self.options)
        options.check_streaming()
        check_schema(schema, options)
        return NatsStreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Return the writer of a batch write.

        Raises:
            ConfigError: An option or a column is illegal, or the mode is `overwrite`.
        """
        from pyspark_natsstream.sink import NatsWriter  # noqa: PLC0415 - As above.

        if overwrite:
            raise ConfigError(
                'format("nats") only appends', hint='.mode("append"); purge the stream yourself'
            )
        options = WriteOptions.parse(self.options)
        check_columns(schema, options)
        return NatsWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802
        """Return the writer of a micro-batch.

        Raises:
            ConfigError: An option or a column is illegal, or the output mode is `complete`.
        """
        from pyspark_natsstream.sink import NatsStreamWriter  # noqa: PLC0415 - As above.

        if overwrite:
            raise ConfigError(
                'format("nats") only appends', hint='.outputMode("append") or "update"'
            )
        own = {name: text for name, text in self.options.items() if name.lower() not in _OF_SPARK}
        options = WriteOptions.parse(own)
        options.check_streaming()
        check_columns(schema, options)
        return NatsStreamWriter(options)


def register(spark: SparkSession) -> None:
    """Register `format("nats")` in a session that does not find it by itself (Spark Connect)."""
    spark.dataSource.register(DefaultSource)
