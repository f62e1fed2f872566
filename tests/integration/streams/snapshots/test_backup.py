"""Backup of a stream into a folder and back: whole, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import StreamSource, SubjectTransform, connect
from natsstream.errors import (
    BackupError,
    ConfigError,
    InvalidConfigError,
    PermissionDeniedError,
    StreamExistsError,
    StreamNotFoundError,
    SubjectOverlapError,
)
from natsstream.streams.snapshots import restored_consumers
from natsstream.testing import NatsServer
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async
from tests.support.raw_nats import request
from tests.support.streams import change, consumer_count, fill

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import BackupProgress, JetStream, Message, RestoreProgress, Stream
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio


async def add_consumer(js: JetStream, stream: str, name: str) -> None:
    """Make a durable consumer."""
    config = {"name": name, "durable_name": name, "ack_policy": "explicit"}
    await change(js, f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})


async def content(stream: Stream) -> list[tuple[int, str, int, bytes, bytes]]:
    """Return all that a stream holds."""
    return [
        (each.sequence, each.subject, each.time_ns, each.headers.source, each.data)
        async for each in stream.read()
    ]


async def readers_gone(stream: Stream) -> None:
    """Wait until the server has removed what a read has made; a consumer of the test stays."""

    async def is_one() -> bool:
        return await consumer_count(stream) == 1

    await eventually_async(is_one)


async def test_parts_are_as_small_as_the_server_wants(tmp_path: Path) -> None:
    with NatsServer(max_payload_bytes=8_192) as server:
        async with connect(server.url) as js:
            stream = await fill(js, "S", 50, size=1_000)
            before = await content(stream)
            await stream.backup(tmp_path / "backup")
            await js.streams.delete("S")
            assert await content(await js.streams.restore(tmp_path / "backup")) == before


async def backed_up(stream: Stream, path: Path) -> None:
    """Save a replicated stream, which may not be ready right after other work."""

    async def is_saved() -> bool:
        try:
            await stream.backup(path)
        except BackupError as error:
            if not error.retryable:
                raise
            return False
        return True

    await eventually_async(is_saved)


def entries(folder: Path) -> list[str]:
    """Return what is in a folder, hidden entries as well."""
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.smoke
@pytest.mark.proves("1a", "snapshot / restore (backup)")
async def test_restored_stream_is_what_was_saved(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 300, size=200, max_msgs=1_000, metadata={"a": "b"})
    await js.publish(f"{stream_name}.0", b"", headers={"A": ["1", "2"]})
    await stream.delete_message(5)
    await add_consumer(js, stream_name, "worker")
    before = await content(stream)
    await readers_gone(stream)

    made = await stream.backup(tmp_path / "backup")
    await stream.delete()
    restored = await js.streams.restore(tmp_path / "backup")
    info = await restored.info()

    assert await content(restored) == before
    assert (made.stream, made.messages, made.last_seq) == (stream_name, 300, 301)
    assert info.state.consumer_count == 1
    assert (info.config.max_msgs, (info.config.metadata or {})["a"]) == (1_000, "b")
    assert entries(tmp_path) == ["backup"]
    assert entries(tmp_path / "backup") == ["backup.json", "stream.tar.s2"]


async def test_consumers_are_left_out_on_request(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 3)
    await add_consumer(js, stream_name, "worker")

    await stream.backup(tmp_path / "backup", consumers=False)
    await stream.delete()
    restored = await js.streams.restore(tmp_path / "backup")

    assert (await restored.info()).state.consumer_count == 0


async def test_large_stream_comes_in_parts_that_are_reported(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    # Random bytes do not compress; more than a server's window goes over the wire.
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    for _ in range(24):
        await js.publish(f"{stream_name}.0", os.urandom(1 << 20))
    saved: list[BackupProgress] = []
    sent: list[RestoreProgress] = []

    made = await stream.backup(
        tmp_path / "backup", check=True, chunk_size=64 << 10, on_progress=saved.append
    )
    before = await content(stream)
    await stream.delete()
    restored = await js.streams.restore(tmp_path / "backup", on_progress=sent.append)

    assert await content(restored) == before
    assert made.archive_bytes > 24 << 20
    assert [each.is_done for each in saved] == [*[False] * (len(saved) - 1), True]
    assert saved[-1].bytes_written == made.archive_bytes
    assert saved[-1].chunks >= 24 * 16
    assert (sent[-1].bytes_sent, sent[-1].is_done) == (made.archive_bytes, True)


async def test_stream_of_memory_is_saved_too(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 5, storage="memory")
    before = await content(stream)

    await stream.backup(tmp_path / "backup")
    await stream.delete()

    assert await content(await js.streams.restore(tmp_path / "backup")) == before


async def test_stream_is_restored_under_another_name_and_settings(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 5)
    await stream.backup(tmp_path / "backup")

    with pytest.raises(SubjectOverlapError):
        await js.streams.restore(tmp_path / "backup", name=f"{stream_name}_2")
    copy = await js.streams.restore(
        tmp_path / "backup",
        name=f"{stream_name}_2",
        subjects=["copy.>"],
        max_msgs=100,
        max_age=3600,
        republish={"src": "copy.>", "dest": "again.>"},
    )

    assert await content(copy) == await content(stream)
    config = copy.cached.config
    assert (copy.name, config.max_msgs, config.max_age) == (f"{stream_name}_2", 100, 3600)
    assert config.republish is not None
    assert config.republish.destination == "again.>"
    await copy.delete()


@pytest.mark.parametrize("kind", ["kv", "objects"])
async def test_bucket_does_not_become_another_one_but_a_plain_stream_as_the_hint_says(
    js: JetStream, stream_name: str, tmp_path: Path, kind: str
) -> None:
    """Messages keep their subjects, and another bucket would read none of them."""
    stream = await _filled_view(js, kind, stream_name)
    before = await content(stream)
    await stream.backup(tmp_path / "backup")
    prefix = stream.name.removesuffix(stream_name)

    for fields in ({}, {"subjects": ["other.>"]}):
        with pytest.raises(ConfigError, match="keep their subjects") as caught:
            await js.streams.restore(
                tmp_path / "backup", name=f"{prefix}{stream_name}_2", **cast("Any", fields)
            )
    assert "restore(path, name='VERIFY', subjects=['verify'])" in caught.value.hint
    plain = await js.streams.restore(tmp_path / "backup", name="VERIFY", subjects=["verify"])
    assert await content(plain) == before

    if kind == "kv":
        keys = SubjectTransform(source=f"$KV.{stream_name}.>", destination=f"$KV.{stream_name}_2.>")
        source = StreamSource(name="VERIFY", transforms=[keys])
        copy = (await js.kv.create(f"{stream_name}_2", history=5, sources=[source])).stream
    else:
        both = {"src": f"$O.{stream_name}.>", "dest": f"$O.{stream_name}_2.>"}
        extra = {"sources": [{"name": "VERIFY", "subject_transforms": [both]}]}
        copy = (await js.objects.create(f"{stream_name}_2", extra=extra)).stream

    async def is_full() -> bool:
        return (await copy.info()).state.messages == len(before)

    await eventually_async(is_full)
    assert await _read_view(js, kind, f"{stream_name}_2") == await _read_view(js, kind, stream_name)
    await plain.delete()
    await copy.delete()


@pytest.mark.parametrize("kind", ["kv", "objects"])
async def test_bucket_is_restored_in_another_account_under_its_name(
    tmp_path: Path, kind: str
) -> None:
    users = "[{{ user: {0}, password: p }}]"
    accounts = ", ".join(
        f"{each}: {{ jetstream: enabled, users: {users.format(each)} }}" for each in "AB"
    )
    with NatsServer(config=f"accounts {{ {accounts} }}") as server:
        async with (
            connect(server.url, user="A", password="p") as js,  # noqa: S106 - of the test.
            connect(server.url, user="B", password="p") as far,  # noqa: S106 - of the test.
        ):
            await (await _filled_view(js, kind, "here")).backup(tmp_path / "backup")
            await far.streams.restore(tmp_path / "backup")
            assert await _read_view(far, kind, "here") == await _read_view(js, kind, "here")


@pytest.mark.parametrize("subjects", [["$KV.>"], ["$KV.*.>"], ["$KV.other.>", "$KV.b.>"]])
async def test_backup_of_a_stream_that_captures_several_buckets_becomes_one_of_them(
    tmp_path: Path, subjects: list[str]
) -> None:
    with NatsServer() as server:
        async with connect(server.url) as js:
            every = await js.streams.create("ALL", subjects=subjects, max_msgs_per_subject=1)
            await js.publish("$KV.b.a", b"1")
            await every.backup(tmp_path / "backup")
            await every.delete()

            await js.streams.restore(tmp_path / "backup", name="KV_b", subjects=["$KV.b.>"])
            entry = await (await js.kv.get("b")).get("a")
            assert entry is not None
            assert entry.value == b"1"


async def test_bucket_with_the_subjects_of_another_is_restored_under_its_own_name(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await js.streams.create(f"KV_{stream_name}", subjects=[f"$KV.{stream_name}_x.>"])
    await stream.backup(tmp_path / "backup")
    await stream.delete()

    restored = await js.streams.restore(tmp_path / "backup", name=stream.name)

    assert restored.cached.config.subjects == stream.cached.config.subjects
    await restored.delete()


async def _filled_view(js: JetStream, kind: str, name: str) -> Stream:
    """Make a bucket with a deleted and a purged key, or a store with a deleted object."""
    if kind == "kv":
        kv = await js.kv.create(name, history=5)
        for key, value in (("a", b"1"), ("a", b"2"), ("b", b"3"), ("c.d", b"4")):
            await kv.put(key, value)
        await kv.delete("b")
        await kv.purge("c.d")
        return kv.stream
    box = await js.objects.create(name)
    await box.put("big", b"x" * 300_000)
    await box.put("gone", b"y")
    await box.delete("gone")
    return box.stream


async def _read_view(js: JetStream, kind: str, name: str) -> object:
    """Return all that the readers of a bucket or a store see, without revisions."""
    if kind == "kv":
        kv = await js.kv.get(name)
        history = [(each.key, each.operation, each.value) async for each in kv.history()]
        return [key async for key in kv.keys()], history
    box = await js.objects.get(name)
    return {each: await box.get(each) async for each in box.names()}


async def test_subject_of_a_bucket_that_another_stream_captures_is_to_be_given_up_there(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    """A bucket reads no other subjects, so the hint for plain streams would be wrong."""
    stream = await _filled_view(js, "kv", stream_name)
    await stream.backup(tmp_path / "backup")
    await stream.delete()
    other = await js.streams.create(f"{stream_name}_o", subjects=[f"$KV.{stream_name}.a"])

    with pytest.raises(SubjectOverlapError) as caught:
        await js.streams.restore(tmp_path / "backup")

    assert caught.value.hint == f"narrow the subjects of {other.name}"
    await js.streams.update(other.name, subjects=[f"{stream_name}.a"])
    restored = await js.streams.restore(tmp_path / "backup")
    assert (await (await js.kv.get(stream_name)).get("a")) is not None
    await restored.delete()


@pytest.mark.parametrize("kind", ["kv", "stream"])
async def test_backup_of_a_mirror_becomes_its_lost_origin(
    js: JetStream, stream_name: str, tmp_path: Path, kind: str
) -> None:
    if kind == "kv":
        origin = await _filled_view(js, "kv", stream_name)
        mirror = (await js.kv.create(f"{stream_name}_m", history=5, mirror=stream_name)).stream
    else:
        origin = await fill(js, stream_name, 5)
        mirror = await js.streams.create(f"{stream_name}_m", mirror=stream_name)
    before, subjects = await content(origin), list(origin.cached.config.subjects or ())

    async def is_full() -> bool:
        return (await mirror.info()).state.messages == len(before)

    await eventually_async(is_full)
    await origin.delete()
    await mirror.backup(tmp_path / "backup")
    with pytest.raises(InvalidConfigError) as caught:
        await js.streams.restore(tmp_path / "backup", name=origin.name, subjects=subjects)
    assert "mirror={} beside them" in caught.value.hint

    restored = await js.streams.restore(
        tmp_path / "backup", name=origin.name, mirror={}, subjects=subjects
    )

    config = restored.cached.config
    assert (config.mirror, config.mirror_direct) == (None, False)
    assert await content(restored) == before
    if kind == "kv":
        kv = await js.kv.get(stream_name)
        assert [key async for key in kv.keys()] == ["a"]
        assert await kv.put("a", b"5") > before[-1][0]
    await mirror.delete()


async def test_stream_that_is_there_is_never_touched(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 5)
    await stream.backup(tmp_path / "backup")
    await stream.delete()
    other = await fill(js, stream_name, 2)

    with pytest.raises(StreamExistsError):
        await js.streams.restore(tmp_path / "backup")

    assert len(await content(other)) == 2


async def test_stream_that_somebody_makes_during_a_restore_stays_theirs(
    js: JetStream, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    for _ in range(3):  # The server has not seen the end when it has the first part.
        await js.publish(f"{stream_name}.0", os.urandom(1 << 20))
    await stream.backup(tmp_path / "backup")
    await stream.delete()
    answers: list[dict[str, object]] = []

    def make(progress: RestoreProgress) -> None:
        if not answers and not progress.is_done:  # The restore stands still until it is done.
            config = {"name": stream_name, "subjects": [f"{stream_name}.>"]}
            subject = f"$JS.API.STREAM.CREATE.{stream_name}"
            answers.append(request(server.port, subject, json.dumps(config).encode()))
            answers.append(request(server.port, f"{stream_name}.0", b"theirs"))

    with pytest.raises(StreamExistsError):
        await js.streams.restore(tmp_path / "backup", on_progress=make)

    assert not any("error" in answer for answer in answers)
    held = await content(await js.streams.get(stream_name))
    assert [data for *_, data in held] == [b"theirs"]


async def test_folder_that_holds_something_is_left_alone(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 1)
    (tmp_path / "note.txt").write_text("mine")

    with pytest.raises(ConfigError, match="exists already"):
        await stream.backup(tmp_path)
    with pytest.raises(ConfigError, match="exists already"):
        await stream.backup(tmp_path / "note.txt")

    assert entries(tmp_path) == ["note.txt"]
    (tmp_path / "empty").mkdir()
    await stream.backup(tmp_path / "empty")


async def test_folder_that_fills_during_a_backup_keeps_what_is_in_it(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 1)

    def fill_folder(_: BackupProgress) -> None:
        (tmp_path / "backup").mkdir(exist_ok=True)
        (tmp_path / "backup" / "note.txt").write_text("mine")

    with pytest.raises(BackupError, match="not empty any more"):
        await stream.backup(tmp_path / "backup", on_progress=fill_folder)

    assert (entries(tmp_path), entries(tmp_path / "backup")) == (["backup"], ["note.txt"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": 7},
        {"path": ""},
        {"path": "a\0b"},
        {"path": "\ud800"},
        {"chunk_size": 5},
        {"chunk_size": "big"},
        {"check": "yes"},
        {"consumers": None},
        {"timeout": 0},
        {"on_progress": 3},
    ],
)
async def test_backup_refuses_wrong_arguments(
    js: JetStream, stream_name: str, tmp_path: Path, arguments: dict[str, Any]
) -> None:
    stream = await fill(js, stream_name, 1)

    given: dict[str, Any] = {"path": tmp_path / "backup", **arguments}
    with pytest.raises(ConfigError):
        await stream.backup(**given)

    assert entries(tmp_path) == []


async def test_failed_backup_leaves_nothing(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 1)
    await stream.delete()

    with pytest.raises(StreamNotFoundError):
        await stream.backup(tmp_path / "backup")

    assert entries(tmp_path) == []


@pytest.mark.parametrize("timeout", [2.0, 30.0])  # The server ends it after 5 seconds.
async def test_backup_whose_parts_may_not_be_acked_says_so(tmp_path: Path, timeout: float) -> None:
    """The server sends a window of 8 MiB, and then waits for acks."""
    denied = 'permissions: { publish: { deny: "$JS.SNAPSHOT.>" } }'
    users = f"authorization {{ users: [{{ user: u, password: p, {denied} }}] }}"
    with NatsServer(config=users) as server:
        async with connect(server.url, user="u", password="p") as js:  # noqa: S106 - of the test.
            stream = await fill(js, "S", 1)
            async with js.publisher() as publisher:
                for _ in range(20):
                    await publisher.send("S.x", os.urandom(900_000))
            with pytest.raises(PermissionDeniedError) as raised:
                await stream.backup(tmp_path / "backup", timeout=timeout)

    assert raised.value.hint.endswith("publish $JS.SNAPSHOT.ACK.S.>")
    assert entries(tmp_path) == []


async def test_error_of_the_progress_callback_ends_the_backup_and_leaves_nothing(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await fill(js, stream_name, 1)

    def refuse(progress: BackupProgress) -> None:
        raise KeyError(progress.chunks)

    with pytest.raises(KeyError):
        await stream.backup(tmp_path / "backup", on_progress=refuse)

    assert entries(tmp_path) == []


async def test_cancelled_backup_leaves_nothing_here_and_on_the_server(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    for _ in range(16):
        await js.publish(f"{stream_name}.0", os.urandom(1 << 20))
    sinks = dict(js._client.parser.sinks)  # pyright: ignore[reportPrivateUsage]
    has_begun = asyncio.Event()
    task = asyncio.create_task(
        stream.backup(tmp_path / "backup", on_progress=lambda _: has_begun.set())
    )
    await has_begun.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert entries(tmp_path) == []
    assert js._client.parser.sinks == sinks  # pyright: ignore[reportPrivateUsage]
    await stream.backup(tmp_path / "backup")


async def test_lost_connection_ends_the_backup(
    fresh_server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        for _ in range(16):
            await js.publish(f"{stream_name}.0", os.urandom(1 << 20))
        is_killed = False

        def kill(_: BackupProgress) -> None:
            nonlocal is_killed
            if not is_killed:
                is_killed = True
                fresh_server.kill()

        with pytest.raises(BackupError, match="connection broke") as caught:
            await stream.backup(tmp_path / "backup", on_progress=kill)

        assert caught.value.retryable
        assert entries(tmp_path) == []
        fresh_server.start()
        async with asyncio.timeout(50):
            await stream.backup(tmp_path / "backup")


@pytest.mark.sampled_variants
@pytest.mark.proves("1a", "snapshot / restore (backup)")
@pytest.mark.parametrize(
    "damage",
    ["no meta", "no data", "meta text", "meta list", "meta empty", "cut", "flipped", "longer"],
)
async def test_damaged_backup_is_refused_before_anything_is_sent(
    js: JetStream, stream_name: str, tmp_path: Path, damage: str
) -> None:
    stream = await fill(js, stream_name, 50, size=2_000)
    await stream.backup(tmp_path / "backup")
    await stream.delete()
    meta, data = tmp_path / "backup" / "backup.json", tmp_path / "backup" / "stream.tar.s2"
    whole = data.read_bytes()
    if damage == "no meta":
        meta.unlink()
    elif damage == "no data":
        data.unlink()
    elif damage.startswith("meta"):
        meta.write_text({"meta text": "{", "meta list": "[]", "meta empty": "{}"}[damage])
    elif damage == "cut":
        data.write_bytes(whole[:-5])
    elif damage == "flipped":
        data.write_bytes(whole[:90] + bytes([whole[90] ^ 1]) + whole[91:])
    else:
        data.write_bytes(whole + b"\xfe\x00\x00\x00")

    with pytest.raises(BackupError):
        await js.streams.restore(tmp_path / "backup")

    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)


async def test_damage_that_only_the_server_sees_leaves_no_stream(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    # As from another client, whose backups have no digest.
    stream = await fill(js, stream_name, 50, size=2_000)
    await stream.backup(tmp_path / "backup")
    await stream.delete()
    meta, data = tmp_path / "backup" / "backup.json", tmp_path / "backup" / "stream.tar.s2"
    said = json.loads(meta.read_text())
    del said["natsstream"]
    meta.write_text(json.dumps(said))
    whole = data.read_bytes()
    data.write_bytes(whole[:90] + bytes([whole[90] ^ 1]) + whole[91:])

    with pytest.raises(BackupError, match="failed"):
        await js.streams.restore(tmp_path / "backup")

    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": None}, ConfigError),
        ({"name": "a b"}, ValueError),
        ({"timeout": -1}, ConfigError),
        ({"replicas": 9}, ConfigError),
        ({"replicaz": 1}, ConfigError),
        ({"on_progress": "no"}, ConfigError),
        ({"path": "/nowhere/at/all"}, BackupError),
    ],
)
async def test_restore_refuses_wrong_arguments(
    js: JetStream,
    stream_name: str,
    tmp_path: Path,
    arguments: dict[str, Any],
    error: type[Exception],
) -> None:
    stream = await fill(js, stream_name, 1)
    await stream.backup(tmp_path / "backup")
    await stream.delete()

    given: dict[str, Any] = {"path": tmp_path / "backup", **arguments}
    with pytest.raises(error):
        await js.streams.restore(**given)

    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)


@pytest.mark.proves("1a", "snapshot / restore (backup)")
async def test_replicated_stream_is_saved_and_restored(
    nats_cluster: NatsCluster, stream_name: str, tmp_path: Path
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 200, replicas=3)
        before = await content(stream)

        await backed_up(stream, tmp_path / "backup")
        await stream.delete()
        restored = await js.streams.restore(tmp_path / "backup")

        assert await content(restored) == before
        assert (await restored.info()).config.replicas == 3
        await restored.delete()


async def test_consumers_of_a_replicated_stream_can_be_used_when_the_restore_returns(
    nats_cluster: NatsCluster, stream_name: str, tmp_path: Path
) -> None:
    """A cluster answers before they exist, and says for seconds that nothing waits for them."""
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 10, replicas=3)
        for number in range(3):
            await stream.consumers.ensure(f"c{number}")
        await backed_up(stream, tmp_path / "backup")
        for _ in range(3):
            await (await js.streams.get(stream_name)).delete()
            restored = await js.streams.restore(tmp_path / "backup")

            assert await restored.consumers.lags() == {"c0": 10, "c1": 10, "c2": 10}
            handled: list[int] = []

            async def handle(message: Message, handled: list[int] = handled) -> None:
                handled.append(message.sequence)

            await (await restored.consumers.get("c2")).run(handle, until_empty=True)
            assert sorted(handled) == list(range(1, 11))


async def test_consumers_that_do_not_come_are_logged(
    js: JetStream,
    stream_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = await fill(js, stream_name, 10)
    await stream.consumers.ensure("c")
    await backed_up(stream, tmp_path / "backup")
    await stream.delete()
    monkeypatch.setattr(restored_consumers, "_WAIT_S", 0.2)

    async def more(*_: object) -> bool:
        return True

    monkeypatch.setattr(restored_consumers, "_has_more", more)
    monkeypatch.setattr(restored_consumers, "_without_pending", list)
    await js.streams.restore(tmp_path / "backup")
    assert "its consumers may not be ready: they are not there yet" in caplog.text


async def test_backup_of_a_cluster_is_restored_on_one_server_as_the_hint_says(
    nats_cluster: NatsCluster, js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    async with connect_to(nats_cluster) as far:
        stream = await fill(far, stream_name, 10, replicas=3)
        await backed_up(stream, tmp_path / "backup")
        await stream.delete()
    with pytest.raises(BackupError) as told:
        await js.streams.restore(tmp_path / "backup")
    assert told.value.hint == (
        "set replicas to 1, or connect to a cluster; fields of the stream follow the path: "
        "restore(path, replicas=1)"
    )
    restored = await js.streams.restore(tmp_path / "backup", replicas=1)
    assert (await restored.info()).state.messages == 10


async def test_backup_across_a_change_of_the_leader_is_whole_or_leaves_nothing(
    nats_cluster: NatsCluster, stream_name: str, tmp_path: Path
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 400, size=4_000, replicas=3)
        before = await content(stream)
        steps: list[asyncio.Task[str | None]] = []

        def on_progress(_: BackupProgress) -> None:
            if not steps:
                steps.append(asyncio.create_task(stream.step_down()))

        try:
            await stream.backup(
                tmp_path / "backup", chunk_size=1024, on_progress=on_progress, timeout=5
            )
        except BackupError as error:
            if not error.retryable:
                raise
            assert entries(tmp_path) == []
            await asyncio.gather(*steps)
            await backed_up(stream, tmp_path / "backup")
        assert all([await step for step in steps])

        assert entries(tmp_path) == ["backup"]
        await stream.delete()
        restored = await js.streams.restore(tmp_path / "backup")
        assert await content(restored) == before
        await restored.delete()


async def test_failed_restore_on_a_cluster_leaves_no_stream(
    nats_cluster: NatsCluster, stream_name: str, tmp_path: Path
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 50, size=2_000, replicas=3)
        await backed_up(stream, tmp_path / "backup")
        await stream.delete()
        meta, data = tmp_path / "backup" / "backup.json", tmp_path / "backup" / "stream.tar.s2"
        said = json.loads(meta.read_text())
        del said["natsstream"]
        meta.write_text(json.dumps(said))
        whole = data.read_bytes()
        data.write_bytes(whole[:90] + bytes([whole[90] ^ 1]) + whole[91:])

        with pytest.raises(BackupError, match="failed"):
            await js.streams.restore(tmp_path / "backup")

        with pytest.raises(StreamNotFoundError):
            await js.streams.get(stream_name)
