"""The kv_table job: a table that is equal to a bucket, whatever happens between and in its runs."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark_natsstream.folder import Folder
from pyspark_natsstream.ingest import ingest
from pyspark_natsstream.jobs.kv_table import main
from pyspark_natsstream.kv_table import PLACE_FILE, kv_table, read_kv_table

from natsstream import blocking
from natsstream.errors import (
    ConfigError,
    MessagesLostError,
    NotFoundError,
    StreamRecreatedError,
)
from natsstream.units import format_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark_natsstream.ingest import IngestReport

    from natsstream.blocking import JetStream, KeyValue
    from natsstream.testing import NatsServer

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

ROOT = Path(__file__).parents[2]
SUBMIT_TIMEOUT_S = 300

Rows = dict[str, tuple[bytes, int]]


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    """A connection to the shared server."""
    with blocking.connect(server.url) as context:
        yield context


class Table:
    """The table of one bucket, and its folders."""

    def __init__(self, spark: SparkSession, server: NatsServer, bucket: str, folder: Path) -> None:
        self._spark = spark
        self.options = {"servers": server.url, "bucket": bucket}
        self.out = folder / "out"
        self.checkpoint = folder / "checkpoint"
        self.history = folder / "history"

    def run(self, *, with_history: bool = False, **options: str) -> IngestReport:
        """Bring the table to the bucket's end."""
        return kv_table(
            self._spark,
            options=self.options | options,
            out=str(self.out),
            checkpoint=str(self.checkpoint),
            history_out=str(self.history) if with_history else None,
        )

    def rows(self) -> Rows:
        """Value and revision of each key; a key that stands twice fails."""
        rows = read_kv_table(self._spark, str(self.out)).collect()
        found = {row.key: (bytes(row.value), row.revision) for row in rows}
        assert len(found) == len(rows)
        return found

    def changes(self) -> list[tuple[int, str]]:
        """Revision and operation of each change in the history."""
        rows = self._spark.read.parquet(str(self.history)).orderBy("revision").collect()
        return [(row.revision, row.operation) for row in rows]

    def repeat_last_batch(self) -> None:
        """Have Spark run its last micro-batch again, as after a crash before the commit."""
        commits = self.checkpoint / "commits"
        last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)

    def versions(self) -> list[str]:
        """The versions that the folder holds."""
        return sorted((path.name for path in self.out.iterdir()), key=lambda name: int(name[1:]))


@pytest.fixture
def table(spark: SparkSession, server: NatsServer, stream_name: str, tmp_path: Path) -> Table:
    """A table of the test's own bucket."""
    return Table(spark, server, stream_name, tmp_path)


def held(kv: KeyValue[bytes]) -> Rows:
    """Value and revision of each key of a bucket."""
    return {entry.key: (entry.value, entry.revision) for entry in kv.entries()}


def change(kv: KeyValue[bytes], chance: random.Random, count: int) -> None:
    """Make random changes to a dozen keys."""
    for number in range(count):
        key = f"k.{chance.randrange(12)}"
        act = chance.choice(("put", "put", "put", "delete", "purge"))
        if act == "put":
            kv.put(key, b"%d" % number)
        elif act == "delete":
            kv.delete(key)
        else:
            kv.purge(key)


@pytest.mark.sampled
def test_table_is_equal_to_the_bucket_after_random_changes_and_restarts(
    js: JetStream, stream_name: str, table: Table
) -> None:
    """Batches end anywhere, the last one comes again, and some markers go before they are read."""
    seed = secrets.randbits(32)
    chance = random.Random(seed)  # noqa: S311 - A seed that makes it the same again.
    kv = js.kv.create(stream_name, history=chance.choice((1, 4)))
    change(kv, chance, 40)
    table.run(maxMessagesPerTrigger=str(chance.randrange(25, 50)))
    assert table.rows() == held(kv), seed

    change(kv, chance, 20)
    kv.purge_deletes(older_than=0)
    table.repeat_last_batch()
    table.run()
    assert table.rows() == held(kv), seed

    newest = table.versions()[-1]
    for key in list(kv.keys()):
        kv.delete(key)
    table.run()
    assert table.rows() == {}, seed
    # The run has made two versions; who reads the one from before it goes on.
    assert newest in table.versions()
    assert len(table.versions()) == 3


def test_crash_in_the_middle_leaves_the_table_as_it_was_and_the_next_run_mends_it(
    js: JetStream, stream_name: str, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    kv.put("b", b"1")
    table.run(with_history=True)
    before = table.rows()
    kv.put("a", b"2")
    kv.delete("b")

    def crash(_: Folder, name: str, __: str) -> None:
        raise OSError(f"no space for {name}")

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "write", crash)
        with pytest.raises(Exception, match=r"no space for v2/_natsstream\.json"):
            table.run(with_history=True)
    assert (table.out / "v2").is_dir()
    assert table.rows() == before == {"a": (b"1", 1), "b": (b"1", 2)}

    table.run(with_history=True)
    assert table.rows() == held(kv) == {"a": (b"2", 3)}
    assert table.changes() == [(1, "PUT"), (2, "PUT"), (3, "PUT"), (4, "DEL")]


def test_key_that_is_written_all_the_time_is_in_the_table(
    js: JetStream, server: NatsServer, stream_name: str, table: Table
) -> None:
    """Its revision is gone each time that a batch is read which was planned with it."""
    js.kv.create(stream_name).put("cold", b"1")
    has_ended = threading.Event()

    def write() -> None:
        with blocking.connect(server.url) as own:
            kv = own.kv.get(stream_name)
            for number in range(100_000):
                kv.put("hot", b"%d" % number)
                if has_ended.wait(0.005):
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(2):
            before = js.kv.get(stream_name).get("hot")
            table.run()
            assert before is None or table.rows()["hot"][1] >= before.revision
            assert set(table.rows()) == {"cold", "hot"}
    finally:
        has_ended.set()
        writer.join()
    table.run()
    assert table.rows() == held(js.kv.get(stream_name))


def test_empty_bucket_makes_an_empty_table(js: JetStream, stream_name: str, table: Table) -> None:
    kv = js.kv.create(stream_name)
    for _ in range(2):
        table.run(with_history=True)
        assert table.rows() == {}
    assert table.versions() == ["v1"]
    kv.put("a", b"1")
    table.run(with_history=True)
    assert table.rows() == held(kv)
    assert table.changes() == [(1, "PUT")]


def test_batch_that_comes_again_changes_nothing_and_brings_no_deleted_key_back(
    js: JetStream, stream_name: str, table: Table
) -> None:
    """A new checkpoint reads the bucket from its beginning, with the values of deleted keys."""
    kv = js.kv.create(stream_name, history=3)
    kv.put("a", b"1")
    kv.put("b", b"1")
    kv.delete("a")
    table.run()
    before = table.versions()

    table.checkpoint = table.checkpoint.with_name("another")
    report = table.run(maxMessagesPerTrigger="1")

    assert report.rows == 3
    assert table.rows() == {"b": (b"1", 2)}
    assert table.versions() == before


def test_table_of_another_bucket_or_other_keys_is_refused(
    js: JetStream, stream_name: str, table: Table
) -> None:
    with pytest.raises(NotFoundError):
        table.rows()
    kv = js.kv.create(stream_name)
    js.kv.create(f"{stream_name}_2")
    kv.put("a.1", b"1")
    kv.put("b.1", b"1")
    table.run(keys="a.*")
    assert table.rows() == {"a.1": (b"1", 1)}

    of_a = rf"is of the keys a\.\* of bucket {stream_name}, not of"
    with pytest.raises(ConfigError, match=f"{of_a} all keys of bucket {stream_name}\n"):
        table.run()
    with pytest.raises(ConfigError, match=f"{of_a} the keys .* of bucket {stream_name}_2\n"):
        table.run(keys="a.*", bucket=f"{stream_name}_2")
    with pytest.raises(ConfigError, match="other folders"):
        table.run(keys="a.*,b.*")
    js.kv.delete(stream_name)
    js.kv.create(stream_name)
    with pytest.raises(StreamRecreatedError, match="other folders"):
        table.run(keys="a.*")


def test_table_of_a_restored_bucket_goes_on_as_the_hint_says(
    js: JetStream, stream_name: str, table: Table, tmp_path: Path
) -> None:
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    kv.put("b", b"1")
    table.run()
    kv.stream.backup(tmp_path / "backup")
    js.kv.delete(stream_name)
    js.streams.restore(tmp_path / "backup")
    kv.put("b", b"2")

    with pytest.raises(StreamRecreatedError) as caught:
        table.run()
    told = re.search("set restoredAt=([^ ]+) to continue;", caught.value.hint)

    assert told
    table.run(restoredAt=told[1])
    assert table.rows() == held(kv) == {"a": (b"1", 1), "b": (b"2", 3)}
    kv.put("a", b"4")
    table.run()
    assert table.rows() == held(kv)


@pytest.mark.parametrize("later", [0, 1, 5])
def test_table_of_a_bucket_restored_from_an_older_backup_needs_a_new_folder(
    js: JetStream, stream_name: str, table: Table, tmp_path: Path, later: int
) -> None:
    """Whatever the checkpoint: the table has changes that the bucket has lost."""
    kv = js.kv.create(stream_name, history=5)
    kv.put("a", b"1")
    kv.put("b", b"1")
    table.run(with_history=True)
    kv.stream.backup(tmp_path / "backup")
    kv.put("a", b"lost")
    kv.put("lost", b"1")
    kv.delete("b")
    table.run(with_history=True)
    js.kv.delete(stream_name)
    restored = format_rfc3339(js.streams.restore(tmp_path / "backup").info().created_ns)
    for number in range(later):
        kv.put("c", b"%d" % number)
    before = table.rows()

    for checkpoint in (table.checkpoint, tmp_path / "another"):
        table.checkpoint = checkpoint
        with pytest.raises(MessagesLostError, match="older backup") as caught:
            table.run(restoredAt=restored)
        assert caught.value.hint == (
            "give other folders for the table, its checkpoint and its history"
        )
    assert table.rows() == before

    table.out, table.checkpoint = tmp_path / "new", tmp_path / "new checkpoint"
    with pytest.raises(ConfigError, match=r"has version \d, and table .* has none"):
        table.run(with_history=True)
    table.history = tmp_path / "new history"
    table.run(with_history=True)
    assert table.rows() == held(kv)


@pytest.mark.parametrize("kept", [None, 1])
def test_table_that_lacks_what_its_checkpoint_has_read_is_refused_until_it_is_read_again(
    js: JetStream,
    stream_name: str,
    table: Table,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    kept: int | None,
) -> None:
    """It is gone, or an older copy was restored."""
    kv = js.kv.create(stream_name)
    kv.put("other", b"1")
    table.run(keys="a.*")  # Nothing of the table.
    kv.put("a.1", b"1")
    table.run(keys="a.*")
    copy = shutil.copytree(table.out, tmp_path / "copy")
    kv.put("a.2", b"2")
    kv.put("other", b"2")
    table.run(keys="a.*")
    shutil.rmtree(table.out)
    if kept:
        copy.rename(table.out)

    with pytest.raises(ConfigError, match=rf"has nothing from {3 if kept else 2} on") as caught:
        table.run(keys="a.*")

    assert "give another checkpoint" in caught.value.hint
    table.checkpoint = tmp_path / "another"
    table.run(keys="a.*")
    assert table.rows() == {"a.1": (b"1", 2), "a.2": (b"2", 3)}
    kv.put("other", b"3")
    table.run(keys="a.*")
    table.run(keys="a.*")
    assert not caplog.messages


def test_checkpoint_of_an_earlier_bucket_is_refused_without_its_table_too(
    js: JetStream, stream_name: str, table: Table, tmp_path: Path
) -> None:
    """It is ahead of the table, which may be right all the same."""
    kv = js.kv.create(stream_name)
    kv.put("a.1", b"1")
    table.run(keys="a.*")
    kv.stream.backup(tmp_path / "backup")
    for number in range(5):
        kv.put("other", b"%d" % number)
    table.run(keys="a.*")
    js.kv.delete(stream_name)
    restored = format_rfc3339(js.streams.restore(tmp_path / "backup").info().created_ns)

    with pytest.raises(MessagesLostError, match="gone") as lost:
        table.run(keys="a.*", restoredAt=restored)
    assert "give another checkpoint;" in lost.value.hint
    out, table.out = table.out, tmp_path / "new"
    with pytest.raises(StreamRecreatedError, match="the query of checkpoint") as caught:
        table.run(keys="a.*")
    assert f"restoredAt={restored}" in caught.value.hint

    table.out, table.checkpoint = out, tmp_path / "another"
    kv.put("a.2", b"2")
    table.run(keys="a.*", restoredAt=restored)
    assert table.rows() == {"a.1": (b"1", 1), "a.2": (b"2", 2)}


def test_history_is_kept_where_an_older_copy_of_the_table_was_restored(
    js: JetStream, stream_name: str, table: Table
) -> None:
    kv = js.kv.create(stream_name)
    for number in range(3):
        kv.put("a", b"%d" % number)
        table.run(with_history=True)
    before = table.changes()
    shutil.rmtree(table.out / "v3")
    kv.put("a", b"4")

    with pytest.raises(ConfigError, match=r"has version 3, and table .* has 2"):
        table.run(with_history=True)

    assert table.changes() == before


@pytest.mark.parametrize("has_table", [False, True])
def test_key_that_is_deleted_between_plan_and_read_is_not_in_the_table(
    js: JetStream,
    stream_name: str,
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_table: bool,
) -> None:
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    if has_table:
        table.run()
        kv.put("a", b"2")
    module = sys.modules["pyspark_natsstream.kv_table"]
    reads: list[Callable[..., DataFrame]] = [module._values_now] * 2

    def values_now(*arguments: Any) -> DataFrame:
        if len(reads) == 1:  # For the micro-batch, behind that for the start.
            kv.delete("a")
        return reads.pop()(*arguments)

    monkeypatch.setattr(module, "_values_now", values_now)
    table.run()
    assert table.rows() == {}


@pytest.mark.parametrize("gone", ["a", "b", "c", "ab", "bc", "abc"])
def test_changes_that_are_gone_when_a_crashed_batch_comes_again_stay_in_the_history(
    js: JetStream, stream_name: str, table: Table, gone: str
) -> None:
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    table.run(with_history=True)
    kv.put("b", b"1")
    kv.put("c", b"1")
    table.run(with_history=True)
    shutil.rmtree(table.out / "v2")
    table.repeat_last_batch()
    for key in gone:
        kv.delete(key)
    kv.purge_deletes(older_than=0)

    for _ in range(2):
        table.run(with_history=True)

    assert table.rows() == held(kv)
    assert table.changes() == [(1, "PUT"), (2, "PUT"), (3, "PUT")]


def test_history_that_a_crash_has_left_half_written_is_made_whole(
    js: JetStream, stream_name: str, table: Table
) -> None:
    """Spark moves the files of its tasks one by one to where they are read."""
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    table.run(with_history=True)
    shutil.rmtree(table.out / "v1")
    table.repeat_last_batch()
    version = table.history / "version=1"
    task = version / "_temporary" / "0" / "task_0_m_000000"
    task.mkdir(parents=True)
    (version / "_SUCCESS").unlink()
    for file in version.glob("*.parquet"):
        file.rename(task / file.name)

    table.run(with_history=True)

    assert table.changes() == [(1, "PUT")]


def test_history_of_another_table_is_refused_and_kept(
    js: JetStream, stream_name: str, table: Table, tmp_path: Path
) -> None:
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    kv.put("b", b"1")
    table.run(with_history=True)
    before = table.changes()

    table.out, table.checkpoint = tmp_path / "new", tmp_path / "new checkpoint"
    with pytest.raises(ConfigError, match=r"has version 1, and table .* has none"):
        table.run(with_history=True)

    assert table.changes() == before


@pytest.mark.parametrize("crashed", [1, 2])
def test_history_has_each_change_once_after_a_crash_before_the_table_was_written(
    js: JetStream, stream_name: str, table: Table, crashed: int
) -> None:
    kv = js.kv.create(stream_name)
    for number in range(crashed):
        kv.put("a", b"%d" % number)
        kv.put(f"k{number}", b"")
        table.run(with_history=True)
    before = table.changes()
    shutil.rmtree(table.out / f"v{crashed}")
    table.repeat_last_batch()
    if crashed > 1:  # A key of an earlier batch is dropped, as a version of its own.
        kv.purge("k0")
        kv.purge_deletes(older_than=0)

    table.run(with_history=True)

    assert table.rows() == held(kv)
    assert table.changes() == before


def test_folder_of_a_table_of_ingest_is_refused_for_table_and_history(
    spark: SparkSession, js: JetStream, stream_name: str, table: Table
) -> None:
    js.kv.create(stream_name).put("a", b"1")
    js.streams.create(f"{stream_name}_S", subjects=[f"{stream_name}.>"])
    js.publish(f"{stream_name}.a", b"1")
    options = {"servers": table.options["servers"], "stream": f"{stream_name}_S"}
    other = table.out.with_name("other")
    ingest(spark, options=options, out=str(other), checkpoint=f"{other}-checkpoint")
    before = sorted(other.iterdir())

    with pytest.raises(ConfigError, match=r"other holds .*, which kv_table has not written"):
        run_in(spark, table, out=other)
    with pytest.raises(ConfigError, match=r"other holds .*, which kv_table has not written"):
        run_in(spark, table, history_out=other)

    assert sorted(other.iterdir()) == before
    assert not table.out.exists()


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({"checkpoint": "out"}, "out .* is the same folder as checkpoint "),
        ({"checkpoint": "out/checkpoint"}, "checkpoint .* is inside of out "),
        ({"history_out": "checkpoint/"}, "checkpoint .* is the same folder as history_out "),
        ({"history_out": "out/../out/h"}, "history_out .* is inside of out "),
    ],
)
def test_folders_that_are_not_apart_are_refused_before_anything_is_written(
    spark: SparkSession, table: Table, tmp_path: Path, names: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        run_in(spark, table, **{name: f"{tmp_path}/{each}" for name, each in names.items()})

    assert not [*tmp_path.iterdir()]


def run_in(spark: SparkSession, table: Table, **folders: str | Path) -> IngestReport:
    """Run the job with other folders than those of the table."""
    given = {"out": table.out, "checkpoint": table.checkpoint, "history_out": table.history}
    out, checkpoint, history_out = (str(each) for each in (given | folders).values())
    return kv_table(
        spark, options=table.options, out=out, checkpoint=checkpoint, history_out=history_out
    )


@pytest.mark.parametrize(
    ("option", "text"), [("startingOffsets", "latest"), ("failOnDataLoss", "false"), ("job", "a")]
)
def test_options_that_would_leave_changes_out_are_refused(
    spark: SparkSession, table: Table, option: str, text: str
) -> None:
    options = table.options | {option: text}

    with pytest.raises(ConfigError, match=f"{option} is not for kv_table"):
        kv_table(spark, options=options, out=str(table.out), checkpoint=str(table.checkpoint))


def test_command_refuses_a_wrong_option_before_spark_starts(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--servers", "nats://h:1", "--out", str(table.out), "--checkpoint", "c"]

    assert main([*words, "--bucket", "a.b"]) == 2
    assert "illegal character" in capsys.readouterr().err


def test_command_refuses_a_trigger_that_spark_does_not_know(
    js: JetStream, stream_name: str, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    js.kv.create(stream_name).put("a", b"1")
    words = table.options | {"out": str(table.out), "checkpoint": str(table.checkpoint)}
    given = [word for name, text in words.items() for word in (f"--{name}", text)]

    with pytest.raises(SystemExit) as ended:
        main([*given, "--trigger", "5 minuts"])
    assert ended.value.code == 2
    assert "'5 minuts' is no trigger: write available-now, or" in capsys.readouterr().err
    assert not table.out.exists()


@pytest.mark.sampled
def test_spark_submit_runs_the_job_from_a_file(
    js: JetStream, stream_name: str, table: Table, tmp_path: Path
) -> None:
    kv = js.kv.create(stream_name)
    kv.put("a", b"1")
    words = table.options | {"out": str(table.out), "checkpoint": str(table.checkpoint)}
    config = tmp_path / "job.toml"
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in words.items()))
    submit = str(Path(sys.executable).with_name("spark-submit"))

    done = subprocess.run(
        [submit, "--master", "local[1]", str(ROOT / "spark/jobs/kv_table.py"), "--config", config],
        capture_output=True,
        text=True,
        timeout=SUBMIT_TIMEOUT_S,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )

    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["rows"], report["end"]["streams"][f"KV_{stream_name}"]["next"]) == (1, 2)
    assert (table.out / "v1" / PLACE_FILE).is_file()
    assert table.rows() == held(kv)
