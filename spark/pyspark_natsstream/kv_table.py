"""The kv_table job: keeps a table equal to a key-value bucket.

    OUT/v7/part-...parquet     the rows of a version of the table: key, value, revision, created
    OUT/v7/_natsstream.json    {"v":1,"streams":{"KV_B":{"next":124,"created":"..."}},"keys":[]}

Law: a version is the table when its _natsstream.json is there, which is written last. That file has
the place in the bucket up to which changes are in the table and in the history. A change before it
is left out, so a batch that comes again changes nothing, whatever crashes.
"""

from __future__ import annotations

import json
import operator
import re
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.

from natsstream.errors import (
    ConfigError,
    MessagesLostError,
    NotFoundError,
    StreamRecreatedError,
)
from natsstream.kv.conventions import BUCKET
from natsstream.units import format_rfc3339
from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.checkpoint import committed, has_begun_batch
from pyspark_natsstream.driver import StreamWatch, connected
from pyspark_natsstream.failures import short_failures, typed_failures
from pyspark_natsstream.folder import Folder, check_apart
from pyspark_natsstream.ingest import AVAILABLE_NOW, IngestReport, check_trigger, follow, triggered
from pyspark_natsstream.offsets import Offset, offsets_of
from pyspark_natsstream.options import spark_name
from pyspark_natsstream.plan import StreamState, resume
from pyspark_natsstream.read_options import EARLIEST
from pyspark_natsstream.registration import register
from pyspark_natsstream.source import FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("key", "value", "revision", "created")
# Spark takes no file with such a name for a part of the table.
PLACE_FILE = "_natsstream.json"
_VERSION = re.compile(r"v([1-9]\d*)")
_HISTORY = re.compile(r"version=(\d+)")
# The one before stays for readers that have begun with it, and so does that from before the run.
_VERSIONS_KEPT = 2
_NEW_TABLE = "give other folders for the table, its checkpoint and its history"


def kv_table(
    spark: SparkSession,
    *,
    options: Mapping[str, str],
    out: str,
    checkpoint: str,
    trigger: str = AVAILABLE_NOW,
    history_out: str | None = None,
    on_progress: Callable[[IngestReport], None] | None = None,
) -> IngestReport:
    """Keep a table equal to a bucket, and return a report; its rows are changes.

    The table is then equal to the bucket as it was when the run began. A key that was written
    during the run may have its newer value.

    `read_kv_table` reads the table. Only one job may write it at a time.

    Args:
        spark: A session with a driver in this process (not Spark Connect).
        options: The options of `format("nats")`, with a `bucket`.
        out: Folder of the table, a path or URL that Spark can write to.
        checkpoint: Folder of the checkpoint, kept as long as the table.
        trigger: `available-now` ends at the bucket's last revision now; an interval such as
            `10 seconds` runs until the query is stopped.
        history_out: Folder of a second table, which gets every change that was read, also those of
            one key in one batch; None writes none.
        on_progress: Called about once a second while there are changes.

    Raises:
        ConfigError: An option or the trigger is illegal, the table is of another bucket or other
            keys, or the history is of another table, or the table lacks what the checkpoint has
            read.
        StreamRecreatedError: The bucket was deleted and created again since the table was begun.
        MessagesLostError: The bucket has lost changes that the table has, as after a restore from
            an older backup.
        NatsStreamError: There is no server or no bucket, at the start or later. The next run
            continues from the checkpoint.
        StreamingQueryException: The query failed for another reason, such as a full disk.

    Cost: each micro-batch with changes reads the values of the bucket and writes the whole table.
    Each run first reads them once, for keys whose marker is gone.
    """
    asked = BucketOptions.parse(options)
    _check_whole(asked)
    check_trigger(spark, trigger)
    history = {} if history_out is None else {"history_out": history_out}
    check_apart(spark, {"out": out, "checkpoint": checkpoint, **history})
    _check_own(Folder(spark, out), _VERSION)
    if history_out is not None:
        _check_own(Folder(spark, history_out), _HISTORY)
    register(spark)
    with closing(StreamWatch(asked)) as watch:
        state = watch.state()
        table = _Table(spark, out, state.offset(1), asked, history_out)
        table.check(watch, state, checkpoint)
    with typed_failures():
        table.prepare()
    changes = spark.readStream.format(FORMAT).options(**asked.to_text()).load()
    writer = changes.writeStream.option("checkpointLocation", checkpoint)
    query = triggered(writer.foreachBatch(short_failures(table.make_next)), trigger).start()
    try:
        return follow(query, asked.stream, on_progress)
    except MessagesLostError as error:
        error.hint = "give another checkpoint; the next run tells if the table needs a new folder"
        raise
    except StreamRecreatedError as error:
        error.hint = "run the job again: its error says how to go on"
        raise


def read_kv_table(spark: SparkSession, out: str) -> DataFrame:
    """Return the newest version of a table of `kv_table`.

    Returns:
        `key` string, `value` binary, `revision` bigint, `created` timestamp; each key once.

    Raises:
        NotFoundError: There is no table.
    """
    version = _newest(Folder(spark, out))
    if version == 0:
        raise NotFoundError(f"{out} has no table", hint="run the job kv_table first")
    return spark.read.parquet(f"{out}/v{version}")


class _Table:
    """The versions of a table, and the changes that become the next one."""

    def __init__(
        self,
        spark: SparkSession,
        out: str,
        begin: Offset,
        options: BucketOptions,
        history_out: str | None,
    ) -> None:
        self._out = out
        self._folder = Folder(spark, out)
        self._begin = begin
        self._options = options
        self._keys = sorted(options.subjects)
        self._history = None if history_out is None else Folder(spark, history_out)
        self._spark = spark
        self._at_start = _newest(self._folder)

    def check(self, watch: StreamWatch, state: StreamState, checkpoint: str) -> None:
        """Refuse a table that cannot become equal to the bucket by what comes next.

        Raises:
            ConfigError: The query of the checkpoint has read changes that the table lacks; or the
                history is of another table; and as for `_place`.
            MessagesLostError: The bucket has lost changes that are in the table.
        """
        version = _newest(self._folder)
        place = self._place(version)
        try:
            place = watch.past_records(watch.taken_over(place, state), state)
            resume(place, state, fail_on_data_loss=True)
        except MessagesLostError as error:
            error.hint = _NEW_TABLE
            raise
        if (done := committed(self._spark, checkpoint, state.stream)) is not None:
            if done.created_ns != state.created_ns:
                self._check_restored(f"the query of checkpoint {checkpoint}")
            lacking = self._first_between(place.next_seq, min(done.next_seq, state.stop_seq))
            if lacking is not None:
                raise ConfigError(
                    f"the query of checkpoint {checkpoint} has read up to revision "
                    f"{done.next_seq - 1}, and table {self._out} has nothing from {lacking} on",
                    hint="give another checkpoint, which brings what the table lacks",
                )
        if self._history is None:
            return
        later = max(_numbers(self._history, _HISTORY), default=0)
        # A run that crashed has written the history of a version that is not there.
        if later > version + has_begun_batch(self._spark, checkpoint):
            raise ConfigError(
                f"history {self._history.url} has version {later}, and table {self._out} has "
                f"{version or 'none'}: it is of another table, or a run with another checkpoint "
                "has crashed",
                hint="give its own table and checkpoint, or another folder for the history",
            )

    def _check_restored(self, what: str) -> None:
        """Refuse what is of another bucket than this one, unless that was restored from a backup.

        Raises:
            StreamRecreatedError: It is of an earlier bucket of this name.
        """
        created_ns = self._begin.created_ns
        if not self._options.is_restored(created_ns):
            raise StreamRecreatedError(
                f"{what} is of an earlier bucket: it was created again since",
                hint="if it was restored from a backup, set "
                f"restoredAt={format_rfc3339(created_ns)} to continue; if not, {_NEW_TABLE}",
            )

    def _first_between(self, first: int, stop: int) -> int | None:
        """Return the first revision of the table's keys in a range; None for none."""
        if first >= stop:
            return None
        with connected(self._options, lambda js: js.kv.get(self._options.bucket)) as kv:
            found = kv.revisions(*self._options.subjects, first=first, last=stop - 1)
            return next((entry.revision for entry in found), None)

    def make_next(self, batch: DataFrame, _: int) -> None:
        """Make the next version, if the bucket has changes that are not in the table yet.

        It has the bucket's values now, and the history the changes of the micro-batch: a key that
        is written again and again has no revision left where the batch was planned to end.
        """
        version = _newest(self._folder)
        place = self._place(version)
        fresh = batch.where(F.col("revision") >= place.next_seq).persist()
        live = _values_now(self._spark, self._options).persist()
        try:
            last, newest = _last_revision(fresh), _last_revision(live)
            is_new = max(last, newest) >= place.next_seq
            if not (is_new or self._has_gone(version, live) or self._has_left(version)):
                return
            if self._history is not None and last:
                self._add_history(self._history, f"version={version + 1}", fresh)
            self._write(version + 1, live, max(place.next_seq, last + 1))
        finally:
            fresh.unpersist()
            live.unpersist()

    def _add_history(self, history: Folder, name: str, changes: DataFrame) -> None:
        """Write the changes of a version; those that a run that crashed has left stay.

        The bucket may have some of them no more.
        """
        if name in history.names():
            history.delete(f"{name}/_temporary")  # Spark would take what is in there, too.
            left = self._spark.read.schema(changes.schema).parquet(f"{history.url}/{name}")
            # A session may have written milliseconds alone.
            times = (F.date_trunc("millisecond", each.created) for each in (changes, left))
            is_left = (changes.revision == left.revision) & operator.eq(*times)
            changes = changes.join(left, is_left, "left_anti")
        changes.write.mode("append").parquet(f"{history.url}/{name}")

    def prepare(self) -> None:
        """Make a version if there is none of an empty bucket, or if keys are gone.

        The marker of a deletion may be gone before it is read: `purge_deletes` removes it, or it
        expires. Keys may also expire without a marker.
        """
        version = _newest(self._folder)
        live = _values_now(self._spark, self._options).persist()
        try:
            # The batch of a run that crashed comes again, and makes the version of its history.
            if self._has_gone(version, live) and not self._has_left(version):
                self._write(version + 1, live, self._place(version).next_seq)
        finally:
            live.unpersist()

    def _has_gone(self, version: int, live: DataFrame) -> bool:
        """Return True if keys of a version have no value now, or none has where there is none."""
        if version == 0:
            return live.isEmpty()
        held = self._spark.read.parquet(f"{self._out}/v{version}").select("key")
        return not held.join(live, "key", "left_anti").isEmpty()

    def _has_left(self, version: int) -> bool:
        """Return True if a run that crashed has written the history of the next version."""
        return self._history is not None and f"version={version + 1}" in self._history.names()

    def _write(self, version: int, rows: DataFrame, next_seq: int) -> None:
        """Write a version, its place last, and delete the versions that nobody reads."""
        rows.write.mode("overwrite").parquet(f"{self._out}/v{version}")
        place = Offset(
            stream=self._begin.stream, next_seq=next_seq, created_ns=self._begin.created_ns
        )
        text = json.dumps(place.to_json() | {"keys": self._keys}, separators=(",", ":"))
        self._folder.write(f"v{version}/{PLACE_FILE}", text)
        for old in _numbers(self._folder, _VERSION):
            if old <= version - _VERSIONS_KEPT and old != self._at_start:
                self._folder.delete(f"v{old}")

    def _place(self, version: int) -> Offset:
        """Return the place of a version; that of a new table without one.

        Raises:
            ConfigError: It is a table of another bucket or other keys.
            OffsetError: A newer version of the job has written it.
            StreamRecreatedError: It is of an earlier bucket of this name.
        """
        if version == 0:
            return self._begin
        text = self._folder.read(f"v{version}/{PLACE_FILE}") or ""
        (place,), keys = offsets_of(text), json.loads(text).get("keys")
        if (place.stream, keys) != (self._begin.stream, self._keys):
            raise ConfigError(
                f"table {self._out} is of {_named(place.stream, keys)}, "
                f"not of {_named(self._begin.stream, self._keys)}",
                hint=_NEW_TABLE,
            )
        if place.created_ns != self._begin.created_ns:
            self._check_restored(f"table {self._out}")
        return place


def _values_now(spark: SparkSession, options: BucketOptions) -> DataFrame:
    """Return the rows of the keys that have a value."""
    now = replace(
        options,
        max_messages_per_trigger=None,
        max_bytes_per_trigger=None,
        restored_at=None,
        min_partitions=1,
        max_records_per_partition=None,
    )
    return spark.read.format(FORMAT).options(**now.to_text()).load().select(*COLUMNS)


def _last_revision(rows: DataFrame) -> int:
    """Return the last revision of some rows, 0 for none."""
    return rows.agg(F.max("revision").alias("revision")).collect()[0].revision or 0


def _check_whole(options: BucketOptions) -> None:
    """Refuse options that would leave changes out."""
    options.check_streaming()
    plain = {"starting_offsets": EARLIEST, "fail_on_data_loss": True, "history": False, "job": None}
    for name, needed in plain.items():
        if getattr(options, name) != needed:
            raise ConfigError(
                f"{spark_name(name)} is not for kv_table",
                hint="leave it out: the table is equal to the bucket, or the job fails",
            )


def _check_own(folder: Folder, own: re.Pattern[str]) -> None:
    """Refuse a folder with files of others, such as a table of `ingest`."""
    names = [name for name in folder.names() if not name.startswith((".", "_"))]
    if names and not any(map(own.fullmatch, names)):
        raise ConfigError(
            f"folder {folder.url} holds {min(names)}, which kv_table has not written",
            hint="give an empty folder",
        )


def _named(stream: str, keys: Sequence[str]) -> str:
    filters = f"the keys {', '.join(keys)}" if keys else "all keys"
    return f"{filters} of bucket {BUCKET.name_of(stream)}"


def _numbers(folder: Folder, name: re.Pattern[str]) -> list[int]:
    """Return the numbers of the versions in a folder, in their order."""
    found = map(name.fullmatch, folder.names())
    return sorted(int(each[1]) for each in found if each)


def _newest(folder: Folder) -> int:
    """Return the newest whole version, 0 for none."""
    for version in reversed(_numbers(folder, _VERSION)):
        if folder.read(f"v{version}/{PLACE_FILE}") is not None:
            return version
    return 0
