"""The data source that Spark finds under the name `nats`.

Law: the options say what is read: `stream`, `streams`, `bucket` or `objectBucket`. They never mix.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from natsstream.errors import ConfigError, NatsStreamError
from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.failures import missing_module
from pyspark_natsstream.object_options import ObjectOptions
from pyspark_natsstream.options import NatsOptions, option_notes, spark_name
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.rows import check_columns
from pyspark_natsstream.schema import (
    BUCKET_TYPES,
    OBJECT_TYPES,
    check_schema,
    chosen_columns,
    read_schema,
    schema_of,
)
from pyspark_natsstream.streams_options import StreamsOptions
from pyspark_natsstream.write_options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        InputPartition,
    )
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

FORMAT = "nats"

_KINDS: Mapping[str, type[ReadOptions | ObjectOptions]] = {
    "stream": ReadOptions,
    "streams": StreamsOptions,
    "bucket": BucketOptions,
    "objectBucket": ObjectOptions,
}

# Options of a streaming query that Spark passes on to its sink.
_OF_SPARK = ("checkpointlocation", "queryname")


class DefaultSource(DataSource):
    """A stream or a bucket as a table; the page of Spark options has its options."""

    def __init__(self, options: dict[str, str]) -> None:
        # Spark's next process imports them before anything of this package, and tells nothing.
        for module in ("pyarrow", "numpy"):
            if find_spec(module) is None:
                raise missing_module(module)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of a read without a schema of its own.

        Raises:
            ConfigError: An option is unknown, missing or illegal.
        """
        match read_options_of(self.options):
            case BucketOptions():
                return schema_of(BUCKET_TYPES)
            case ObjectOptions() as options:
                return schema_of({name: OBJECT_TYPES[name] for name in options.default_columns})
            case ReadOptions() as options:
                return read_schema(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch read.

        Raises:
            ConfigError: An option or a column is illegal.
        """
        from pyspark_natsstream.batch import NatsReader, PushdownReader  # noqa: PLC0415 - It imports nats.
        from pyspark_natsstream.object_batch import ObjectReader  # noqa: PLC0415 - As above.
        from pyspark_natsstream.several_streams import StreamsReader  # noqa: PLC0415 - As above.

        options = read_options_of(self.options)
        if isinstance(options, ObjectOptions):
            return ObjectReader(options, chosen_columns(schema, OBJECT_TYPES))
        options.check_batch()
        _check(schema, options)
        if isinstance(options, StreamsOptions):
            return StreamsReader(options, schema)
        # Spark refuses a reader that takes filters while its own setting is off.
        reader = PushdownReader if options.filter_pushdown else NatsReader
        return reader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's.
        """Return the reader of a streaming query.

        Where an option or a column is illegal, its calls raise ConfigError.
        """
        try:
            return _stream_reader(self.options, schema)
        except NatsStreamError as error:
            # Spark's worker stops a reader that it has not got, and shows an UnboundLocalError.
            return _RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """Return the writer of a batch write.

        Raises:
            ConfigError: An option or a column is illegal, or the mode is `overwrite`.
            NatsStreamError: There is no server or no stream.
        """
        from pyspark_natsstream.driver import open_stream  # noqa: PLC0415 - As above.
        from pyspark_natsstream.sink import NatsWriter  # noqa: PLC0415 - As above.

        if overwrite:
            raise ConfigError(
                'format("nats") only appends', hint='.mode("append"); purge the stream yourself'
            )
        options = WriteOptions.parse(self.options)
        check_columns(schema, options)
        # The tasks wait for a server that is away; one that never was there is told at once.
        with open_stream(options):
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


class _RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a query that cannot start: each call raises why."""

    def __init__(self, error: NatsStreamError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's names.
        raise self._error

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        raise self._error

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        raise self._error

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, object],  # noqa: ARG002
        limit: ReadLimit,  # noqa: ARG002
    ) -> dict[str, object]:
        raise self._error

    def partitions(
        self,
        start: dict[str, object],  # noqa: ARG002
        end: dict[str, object],  # noqa: ARG002
    ) -> Sequence[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        raise self._error

    def reportLatestOffset(self) -> dict[str, object]:  # noqa: N802
        raise self._error


def _stream_reader(given: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    from pyspark_natsstream.several_streams import StreamsStreamReader  # noqa: PLC0415
    from pyspark_natsstream.streaming import NatsStreamReader  # noqa: PLC0415 - As above.

    options = read_options_of(given)
    if isinstance(options, ObjectOptions):
        raise ConfigError(
            "an object bucket is read in batches only",
            hint="its changes are messages: read them with stream=OBJ_<bucket> and "
            "subjects=$O.<bucket>.M.>",
        )
    options.check_streaming()
    _check(schema, options)
    if isinstance(options, StreamsOptions):
        return StreamsStreamReader(options, schema)
    if isinstance(options, BucketOptions):
        options = replace(options, history=True)  # The changes are the revisions.
    return NatsStreamReader(options, schema)


def read_options_of(options: Mapping[str, str]) -> ReadOptions | ObjectOptions:
    """Read the options of a read, of the kind that they name.

    Raises:
        ConfigError: They name several kinds, or one is unknown, missing or illegal.
    """
    given = {name.lower() for name in options}
    named = [name for name in _KINDS if name.lower() in given]
    if len(named) > 1:
        raise ConfigError(f"{' and '.join(named)} exclude each other", hint="give one of them")
    word = named[0] if named else "stream"
    known = {each: _lower_names(kind) for each, kind in _KINDS.items()}
    for name in options:
        others = [each for each in _KINDS if name.lower() in known[each]]
        if others and word not in others:
            raise ConfigError(
                f"{name} is no option of a read with {word}",
                hint=f"leave it out; it goes with {' or '.join(others)}",
            )
    return _KINDS[word].parse(options)


def _lower_names(kind: type[NatsOptions]) -> set[str]:
    return {spark_name(name).lower() for name in option_notes(kind)}


def _check(schema: StructType, options: ReadOptions) -> None:
    if isinstance(options, BucketOptions):
        chosen_columns(schema, BUCKET_TYPES)
    else:
        check_schema(schema, options)
