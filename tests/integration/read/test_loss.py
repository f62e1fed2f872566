"""Messages that the server lost: damaged files under a stopped server, and what a read tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, cast

import pytest

from natsstream import Gap, StreamRange, connect
from natsstream.errors import MessagesLostError
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.streams import (
    by_batches,
    by_messages,
    change,
    delete_message,
    fill,
    purge,
    read_and_disturb,
)

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

# 24 MB are three blocks of 8 MiB.
COUNT = 6_000
SIZE = 4_000
STREAM = "S"

Way = Callable[[StreamRange], AsyncIterator[list[int]]]
Damage = Callable[["Path"], None]
ways = pytest.mark.parametrize("way", [by_messages, by_batches])


@pytest.fixture
def stopped(tmp_path: Path) -> NatsServer:
    """A server that keeps its folder; tests start and stop it."""
    return NatsServer(store_dir=tmp_path)


def block_files(folder: Path) -> list[Path]:
    """Return the files that hold the stream's messages, in order."""
    found = (folder / "jetstream" / "$G" / "streams" / STREAM / "msgs").glob("*.blk")
    return sorted(found, key=lambda file: int(file.stem))


def scramble(file: Path, *, size: int = 20_000) -> None:
    """Turn bytes in the middle of a file over: some whole messages."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + size] = bytes(each ^ 0xFF for each in data[middle : middle + size])
    file.write_bytes(data)


def scramble_payload(file: Path) -> None:
    """Damage the payload of one message, in the middle of a file."""
    data = bytearray(file.read_bytes())
    filler = data.index(b"." * (SIZE // 2), len(data) // 2)
    data[filler : filler + 10] = b"?" * 10
    file.write_bytes(data)


def scramble_last_payload(file: Path) -> None:
    """Damage the payload of the last message of a file."""
    data = bytearray(file.read_bytes())
    filler = data.rindex(b"." * (SIZE // 2))
    data[filler : filler + 10] = b"?" * 10
    file.write_bytes(data)


def cut(file: Path) -> None:
    """Cut a file in half."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def remove(file: Path) -> None:
    """Remove a file."""
    file.unlink()


async def fill_and_damage(
    server: NatsServer, folder: Path, damage: Damage, *, files: tuple[int, ...] = (1,)
) -> None:
    """Fill a stream, delete its second message, and damage some of its files."""
    with server:
        async with connect(server.url) as js:
            await fill(js, STREAM, COUNT, size=SIZE)
            await delete_message(js, STREAM, 2)
    for index in files:
        damage(block_files(folder)[index])


def told_lost(messages: StreamRange) -> list[int]:
    """Return every sequence that a read told as lost."""
    gaps = [gap for gap in messages.report.gaps if gap.reason == "lost"]
    return [at for gap in gaps for at in range(gap.first_seq, gap.last_seq + 1)]


async def nothing() -> None:
    """Disturb nothing."""


damages = pytest.mark.parametrize("damage", [scramble, scramble_payload, cut, remove])


@damages
@ways
async def test_damage_is_told_as_lost_and_a_deleted_message_as_deleted(
    stopped: NatsServer, tmp_path: Path, damage: Damage, way: Way
) -> None:
    await fill_and_damage(stopped, tmp_path, damage)

    with stopped:
        async with connect(stopped.url) as js:
            messages = (await js.streams.get(STREAM)).read(on_loss="report")
            found = [each async for some in way(messages) for each in some]

    lost = told_lost(messages)
    assert lost
    assert sorted([2, *found, *lost]) == list(range(1, COUNT + 1))
    assert messages.report.gaps[0] == Gap(2, 2, "deleted")
    assert (messages.report.deleted, messages.report.lost) == (1, len(lost))
    assert messages.report.resumes == 0


@damages
@ways
async def test_damage_ends_the_read_after_the_last_message_before_it(
    stopped: NatsServer, tmp_path: Path, damage: Damage, way: Way
) -> None:
    await fill_and_damage(stopped, tmp_path, damage)
    found: list[int] = []

    with stopped:
        async with connect(stopped.url) as js:
            messages = (await js.streams.get(STREAM)).read(first_seq=1, last_seq=COUNT)
            with pytest.raises(MessagesLostError) as caught:
                await read_and_disturb(way(messages), nothing, into=found)

    assert found == [at for at in range(1, caught.value.first_seq) if at != 2]
    assert caught.value.last_seq < COUNT
    assert messages.report.messages == len(found)


@pytest.mark.parametrize(
    ("damage", "files"), [(scramble_last_payload, (0, -1)), (cut, (0, 1)), (scramble, (0, 1))]
)
async def test_damage_in_two_places_is_told(
    stopped: NatsServer, tmp_path: Path, damage: Damage, files: tuple[int, ...]
) -> None:
    await fill_and_damage(stopped, tmp_path, damage, files=files)

    with stopped:
        async with connect(stopped.url) as js:
            messages = (await js.streams.get(STREAM)).read(
                first_seq=1, last_seq=COUNT, on_loss="report"
            )
            found = [message.sequence async for message in messages]

    lost = told_lost(messages)
    assert sorted([2, *found, *lost]) == list(range(1, COUNT + 1))
    assert messages.report.deleted == 1


def zero(file: Path) -> None:
    """Turn bytes in the middle of a file to zeros, as disks and file systems do."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 20_000] = bytes(20_000)
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "is_told"), [(scramble, True), (zero, True), (cut, True), (remove, False)]
)
async def test_what_a_killed_server_finds_damaged_is_taken_for_deleted(
    stopped: NatsServer, tmp_path: Path, damage: Damage, *, is_told: bool
) -> None:
    """It reads its files anew, and says at most that it lost some: concepts.md, Gap."""
    stopped.start()
    async with connect(stopped.url) as js:
        await fill(js, STREAM, COUNT, size=SIZE)
    stopped.kill()
    damage(block_files(tmp_path)[1])

    with stopped:
        async with connect(stopped.url) as js:
            messages = (await js.streams.get(STREAM)).read()
            found = [message.sequence async for message in messages]

    assert len(found) < COUNT
    assert (messages.report.deleted, messages.report.lost) == (COUNT - len(found), 0)
    assert messages.report.has_unnamed_loss == is_told


@pytest.mark.parametrize("damage", [scramble, zero, cut])
async def test_damage_under_a_running_server_is_told_as_lost(
    stopped: NatsServer, tmp_path: Path, damage: Damage
) -> None:
    """What is damaged on the disk and not in its memory."""
    with stopped:
        async with connect(stopped.url) as js:
            stream = await fill(js, STREAM, COUNT, size=SIZE)
            damage(block_files(tmp_path)[1])
            messages = stream.read(on_loss="report")
            found = [message.sequence async for message in messages]

    lost = told_lost(messages)
    assert lost
    assert sorted([*found, *lost]) == list(range(1, COUNT + 1))


@pytest.mark.parametrize("damage", [scramble, zero, cut, remove])
async def test_with_filters_damage_is_not_seen(
    stopped: NatsServer, tmp_path: Path, damage: Damage
) -> None:
    """A filter hides what is missing; the same range without one tells: concepts.md, Gap."""
    await fill_and_damage(stopped, tmp_path, damage)

    with stopped:
        async with connect(stopped.url) as js:
            stream = await js.streams.get(STREAM)
            some = stream.read(filters=[f"{STREAM}.1"])
            assert [message async for message in some]
            every = stream.read(on_loss="report")
            assert [message async for message in every]

    assert (some.report.lost, some.report.deleted, some.report.gaps) == (0, 0, [])
    assert every.report.lost > 0


async def test_an_end_that_was_cut_off_is_no_gap(stopped: NatsServer, tmp_path: Path) -> None:
    """The stream goes back to what its last file holds: concepts.md, Gap."""
    await fill_and_damage(stopped, tmp_path, scramble, files=(-1,))

    with stopped:
        async with connect(stopped.url) as js:
            messages = (await js.streams.get(STREAM)).read()
            found = [message.sequence async for message in messages]
            last_seq = (await (await js.streams.get(STREAM)).info()).state.last_seq

    assert found[-1] == last_seq < COUNT
    assert (messages.report.deleted, messages.report.lost) == (1, 0)


async def test_loss_that_the_server_can_not_name_is_logged(
    stopped: NatsServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file that was written last: nats-server 2.15.1 says how many bytes it lost, no more."""
    await fill_and_damage(stopped, tmp_path, cut, files=(-1,))

    with stopped:
        async with connect(stopped.url) as js:
            messages = (await js.streams.get(STREAM)).read()
            found = [message.sequence async for message in messages]

    assert len(found) + messages.report.deleted == COUNT
    assert messages.report.has_unnamed_loss
    assert "cannot say which" in caplog.text


@ways
async def test_block_that_breaks_during_the_read_is_lost_when_it_goes_on(
    stopped: NatsServer, tmp_path: Path, way: Way
) -> None:
    async def damage_the_end() -> None:
        # In a thread: a server that stops waits for clients that read.
        await asyncio.to_thread(stopped.stop, keep_store=True)
        scramble(block_files(tmp_path)[-2])
        await asyncio.to_thread(stopped.start)

    with stopped:
        async with connect(stopped.url) as js:
            # Far more than one session has under way.
            stream = await fill(js, STREAM, 3 * COUNT, size=SIZE)
            messages = stream.read(on_loss="report")
            found = await read_and_disturb(way(messages), damage_the_end)

    lost = told_lost(messages)
    assert lost
    assert found == [at for at in range(1, 3 * COUNT + 1) if at not in set(lost)]
    assert messages.report.resumes > 0


async def test_server_forgets_what_it_lost_when_it_starts_again(
    stopped: NatsServer, tmp_path: Path
) -> None:
    """What natsstream can not help: the second start of nats-server 2.15.1 calls it deleted."""
    await fill_and_damage(stopped, tmp_path, cut)

    with stopped:
        async with connect(stopped.url) as js:
            first = (await js.streams.get(STREAM)).read(on_loss="report")
            kept = len([message async for message in first])
            await asyncio.to_thread(stopped.restart)
            await eventually_async(lambda: connected(js))
            second = (await js.streams.get(STREAM)).read()
            assert len([message async for message in second]) == kept

    assert first.report.lost == second.report.deleted - 1 > 0
    assert second.report.lost == 0


async def connected(js: JetStream) -> bool:
    """Tell whether there is a connection."""
    return js.is_connected


@pytest.mark.parametrize("storage", ["file", "memory"])
@ways
async def test_what_was_deleted_in_any_way_is_never_called_lost(
    fresh_js: JetStream, storage: str, way: Way
) -> None:
    stream = await fill(fresh_js, STREAM, COUNT, size=SIZE, storage=storage)
    for sequence in (1, 5, 6, COUNT, COUNT - 1, 3_000):
        await delete_message(fresh_js, STREAM, sequence)
    await purge(fresh_js, STREAM, seq=100)
    await purge(fresh_js, STREAM, filter=f"{STREAM}.2")
    await fill(fresh_js, STREAM, 10, start=COUNT, storage=storage, max_msgs_per_subject=1_500)
    messages = stream.read(first_seq=1)

    found = [each async for some in way(messages) for each in some]

    assert messages.report.lost == 0
    assert len(found) + messages.report.deleted == COUNT + 10
    assert messages.report.messages == len(found) == (await stream.info()).state.messages


async def test_deletions_are_not_called_lost_after_restarts(
    stopped: NatsServer, tmp_path: Path
) -> None:
    with stopped:
        async with connect(stopped.url) as js:
            await fill(js, STREAM, COUNT, size=SIZE)
            last_block = range(COUNT - 1_000, COUNT + 1)
            for sequence in (*last_block[::2], COUNT - 1, 77):
                await delete_message(js, STREAM, sequence)
    for index_is_kept in (True, False):
        if not index_is_kept:
            # The server then reads every block to find out what it has.
            (block_files(tmp_path)[0].parent / "index.db").unlink()
        with stopped:
            async with connect(stopped.url) as js:
                messages = (await js.streams.get(STREAM)).read()
                found = [message.sequence async for message in messages]

                assert messages.report.lost == 0
                assert len(found) + messages.report.deleted == COUNT


async def test_deletions_during_the_read_are_not_called_lost(fresh_js: JetStream) -> None:
    stream = await fill(fresh_js, STREAM, 5 * COUNT, size=SIZE)

    async def delete_some() -> None:
        for sequence in range(4 * COUNT, 5 * COUNT, 97):
            await delete_message(fresh_js, STREAM, sequence)

    messages = stream.read()
    found = await read_and_disturb(by_messages(messages), delete_some)

    assert messages.report.lost == 0
    assert messages.report.deleted > 0
    assert len(found) + messages.report.deleted == 5 * COUNT


async def test_eviction_by_limits_during_the_read_is_deleted_unless_asked(
    fresh_js: JetStream,
) -> None:
    async def evict() -> None:
        await change(
            fresh_js,
            f"STREAM.UPDATE.{STREAM}",
            {**cast("dict[str, object]", stream.cached.raw["config"]), "max_msgs": 1_000},
        )

    stream = await fill(fresh_js, STREAM, 3 * COUNT, size=SIZE)
    messages = stream.read()

    found = await read_and_disturb(by_messages(messages), evict)

    assert found[-1] == 3 * COUNT
    assert messages.report.lost == 0
    assert len(found) + messages.report.deleted == 3 * COUNT
