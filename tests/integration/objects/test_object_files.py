"""Files go in and come out whole; a download that broke resumes where it ended."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio

from natsstream.errors import ChunksDamagedError, ConfigError, ObjectNotFoundError
from natsstream.objects.part_file import PartFile, part_path
from tests.support.chunked import some_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream
    from natsstream.objects.store import ObjectStore

pytestmark = pytest.mark.asyncio

DATA = some_bytes(3_000_001)


class StopError(Exception):
    """Stands for whatever breaks a download."""


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """A store of this test alone."""
    return await js.objects.create(stream_name, storage="memory")


def stop_at(done: int, _total: int | None) -> None:
    if done > 1_000_000:
        raise StopError


async def break_off(box: ObjectStore, target: Path) -> None:
    with pytest.raises(StopError):
        await box.get_file("a", target, progress=stop_at)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.proves("1e", "put stream / bytes / string / file")
async def test_a_file_goes_in_and_comes_out(box: ObjectStore, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(DATA)
    target.write_bytes(b"what was there")
    told: list[tuple[int, int | None]] = []

    stored = await box.put_file(source, "a", description="d")
    info = await box.get_file(
        "a", str(target), progress=lambda done, total: told.append((done, total))
    )

    assert target.read_bytes() == DATA
    assert (info.nuid, info.description) == (stored.nuid, "d")
    assert told[-1] == (len(DATA), len(DATA))
    assert names(tmp_path) == ["in", "out"]


async def test_the_name_of_a_file_is_its_path(box: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"abc")
    assert (await box.put_file(source)).name == str(source)
    assert await box.get(str(source)) == b"abc"


@pytest.mark.proves("1e", "get stream / bytes / file")
async def test_a_download_that_broke_goes_on(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", DATA)
    target = tmp_path / "out"
    await break_off(box, target)
    assert not target.exists()
    (name,) = names(tmp_path)
    had = (tmp_path / name).stat().st_size
    assert 0 < had < len(DATA)

    told: list[int] = []
    await box.get_file("a", target, progress=lambda done, _: told.append(done))

    assert target.read_bytes() == DATA
    assert min(told) > had
    assert names(tmp_path) == ["out"]


async def test_a_damaged_part_is_read_again_from_the_beginning(
    box: ObjectStore, tmp_path: Path
) -> None:
    info = await box.put("a", DATA)
    target = tmp_path / "out"
    part = part_path(target, info.nuid)
    for damaged in (b"x" * 1_000, b"x" * len(DATA), b"x" * (len(DATA) + 1)):
        part.write_bytes(damaged)
        await box.get_file("a", target)
        assert target.read_bytes() == DATA
        assert names(tmp_path) == ["out"]


async def test_a_part_of_another_version_is_not_used(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", DATA)
    target = tmp_path / "out"
    await break_off(box, target)
    other = some_bytes(2_000_000, seed=2)
    await box.put("a", other)
    await box.get_file("a", target)
    assert target.read_bytes() == other


async def test_without_resume_nothing_is_left(box: ObjectStore, tmp_path: Path) -> None:
    info = await box.put("a", DATA)
    target = tmp_path / "out"
    part_path(target, info.nuid).write_bytes(DATA[:5])
    with pytest.raises(StopError):
        await box.get_file("a", target, resume=False, progress=stop_at)
    assert names(tmp_path) == []


async def test_a_cancelled_download_can_go_on(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", DATA)
    target = tmp_path / "out"
    task: asyncio.Task[object]

    def cancel(done: int, _total: int | None) -> None:
        if done > 1_000_000:
            task.cancel()

    task = asyncio.create_task(box.get_file("a", target, progress=cancel))
    with pytest.raises(asyncio.CancelledError):
        await task
    await box.get_file("a", target)
    assert target.read_bytes() == DATA


async def test_path_in_the_place_of_a_name_is_told(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", DATA)
    with pytest.raises(ObjectNotFoundError) as raised:
        await box.get_file(str(tmp_path / "out"), "a")
    assert "box.get_file(name, path)" in raised.value.hint


async def test_damage_leaves_the_target_as_it_was(
    js: JetStream, box: ObjectStore, tmp_path: Path
) -> None:
    await box.put("a", DATA)
    stream = await js.streams.get(f"OBJ_{box.name}")
    await stream.delete_message((await stream.info()).state.first_seq + 9)
    target = tmp_path / "out"
    target.write_bytes(b"what was there")
    with pytest.raises(ChunksDamagedError):
        await box.get_file("a", target)
    assert target.read_bytes() == b"what was there"
    assert names(tmp_path) == ["out"]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("kind", ["symbolic link", "dangling link", "hard link", "pipe"])
async def test_a_part_that_is_no_file_of_ours_is_not_written_through(
    box: ObjectStore, tmp_path: Path, kind: str
) -> None:
    """Others may write beside the target, and know the name that the part will have."""
    info = await box.put("a", DATA)
    folder, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.write_bytes(b"keep me")
    target = folder / "out"
    planted = part_path(target, info.nuid)
    if kind == "symbolic link":
        planted.symlink_to(elsewhere)
    elif kind == "dangling link":
        planted.symlink_to(tmp_path / "made")
    elif kind == "hard link":
        planted.hardlink_to(elsewhere)
    else:
        os.mkfifo(planted)

    for resume in (True, False):
        await box.get_file("a", target, resume=resume)
        assert target.read_bytes() == DATA
        assert not target.is_symlink()
    assert elsewhere.read_bytes() == b"keep me"
    assert not (tmp_path / "made").exists()
    assert names(folder) == sorted(["out", planted.name])


async def test_a_download_goes_on_with_no_other_bytes(
    js: JetStream, box: ObjectStore, tmp_path: Path
) -> None:
    """A deleted chunk before the offset of a resumed download moves no other chunk."""
    await box.put("a", DATA)
    target = tmp_path / "out"
    await break_off(box, target)
    stream = await js.streams.get(f"OBJ_{box.name}")
    await stream.delete_message((await stream.info()).state.first_seq + 2)
    told: list[int] = []
    with pytest.raises(ChunksDamagedError):
        await box.get_file("a", target, progress=lambda done, _: told.append(done))
    assert not told
    assert names(tmp_path) == []


async def test_a_missing_folder_is_told_with_the_target(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", b"x")
    target = tmp_path / "no folder" / "out"
    with pytest.raises(FileNotFoundError) as caught:
        await box.get_file("a", target)
    assert caught.value.filename == str(target)


async def test_an_empty_object_makes_an_empty_file(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", b"")
    await box.get_file("a", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b""


async def test_downloads_into_one_file_at_the_same_time_do_not_meet(
    box: ObjectStore, tmp_path: Path
) -> None:
    await box.put("a", DATA)
    target = tmp_path / "out"
    await asyncio.gather(*(box.get_file("a", target) for _ in range(4)))
    assert target.read_bytes() == DATA
    assert names(tmp_path) == ["out"]


async def test_a_second_download_that_breaks_leaves_the_first_one_its_part(
    box: ObjectStore, tmp_path: Path
) -> None:
    info = await box.put("a", DATA)
    target = tmp_path / "out"
    part = PartFile(target, info.nuid)
    part.open()
    try:
        part.append([DATA[:1_500_000]])
        with pytest.raises(StopError):
            await box.get_file("a", target, progress=stop_at)
        assert names(tmp_path) == [part_path(target, info.nuid).name]
        assert part_path(target, info.nuid).read_bytes() == DATA[:1_500_000]
    finally:
        part.close()
    told: list[int] = []
    await box.get_file("a", target, progress=lambda done, _: told.append(done))
    assert min(told) > 1_500_000
    assert target.read_bytes() == DATA


async def test_a_folder_is_no_target(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", DATA)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        await box.get_file("a", tmp_path / "folder")
    with pytest.raises(IsADirectoryError, match=r"Is a directory: '\.'"):
        await box.get_file("a", ".")
    assert names(tmp_path) == ["folder"]


async def test_the_longest_name_of_a_file_can_be_a_target(box: ObjectStore, tmp_path: Path) -> None:
    await box.put("a", DATA)
    for name in ("x" * 255, "\N{GRINNING FACE}" * 63):
        await box.get_file("a", tmp_path / name)
        assert (tmp_path / name).read_bytes() == DATA
    assert len(names(tmp_path)) == 2


async def test_what_can_not_be_is_told(box: ObjectStore, tmp_path: Path) -> None:
    with pytest.raises(ObjectNotFoundError):
        await box.get_file("nothing", tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        await box.put_file(tmp_path / "nothing", "a")
    with pytest.raises(FileNotFoundError) as caught:
        await box.put_file("a", "b")  # The order of `get_file`.
    assert caught.value.__notes__[0].endswith("box.put_file(path, name)")
    with pytest.raises(ConfigError) as refused:
        await box.put_file("a", cast("Any", tmp_path / "b"))
    assert refused.value.hint.endswith("box.put_file(path, name)")
    await box.put("a", b"x")
    with pytest.raises(FileNotFoundError):
        await box.get_file("a", tmp_path / "no folder" / "out")
    for path in (None, 5, b"x", "", "a\0b"):
        with pytest.raises(ConfigError, match="path"):
            await box.get_file("a", path)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigError, match="path"):
            await box.put_file(path, "a")  # pyright: ignore[reportArgumentType]
    assert names(tmp_path) == []
