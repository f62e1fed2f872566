"""A backup's folder that somebody has written to do harm: nothing of it is sent."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import connect
from natsstream.errors import BackupError, StreamNotFoundError
from tests.support.liars import Told, lying
from tests.support.streams import fill

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

INJECTED = "x 0\r\n\r\nPUB $JS.API.STREAM.DELETE.{} 0\r\n\r\nPUB y"
DEEP = "[" * 100_000 + "]" * 100_000
MARK = "@@wrong@@"


def spoil(folder: Path, place: str, wrong: str) -> None:
    """Put JSON text in the place of a field of `backup.json`, such as `config.name`."""
    meta = folder / "backup.json"
    said = json.loads(meta.read_text())
    found = said
    *path, last = place.split(".")
    for step in path:
        found = cast("dict[str, Any]", found[step])
    found[last] = MARK
    meta.write_text(json.dumps(said).replace(f'"{MARK}"', wrong))


async def saved(js: JetStream, name: str, folder: Path) -> Path:
    """Return the backup of a stream that is gone."""
    stream = await fill(js, name, 3)
    await stream.backup(folder / "backup")
    await stream.delete()
    return folder / "backup"


async def test_name_in_a_folder_can_not_delete_another_stream(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    victim = await fill(js, f"{stream_name}_VICTIM", 1)
    folder = await saved(js, stream_name, tmp_path)
    spoil(folder, "config.name", json.dumps(INJECTED.format(victim.name)))

    with pytest.raises(BackupError, match="nothing was sent"):
        await js.streams.restore(folder)

    assert (await victim.info()).state.messages == 1


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        *(("config.name", name) for name in ('"a b"', '"a.b"', '""', '"a*"', "5", "null")),
        ("config.name", '"a\\u0000b"'),
        *(("config.subjects", wrong) for wrong in ("5", '"a"', "[5]", '{"a": 1}', "[null]")),
        *(("config.max_age", wrong) for wrong in ('"x"', "[]", "1.5", "Infinity", "1e400")),
        *(("config.metadata", wrong) for wrong in ("5", '{"a": 5}', '["a"]')),
        *(("config.sources", wrong) for wrong in ("5", "[5]", '{"name": "x"}', '[{"name": 5}]')),
        *(("config.mirror", wrong) for wrong in ("5", '{"name": 5}')),
        *(("config.placement", wrong) for wrong in ("5", '{"tags": 5}')),
        *(("config.num_replicas", wrong) for wrong in ('"3"', "true", "9" * 5_000)),
        *(("config.allow_direct", wrong) for wrong in ("1", '"true"')),
        *(("state.messages", wrong) for wrong in ("Infinity", "-1", '"5"', "null", "1e30")),
        *(("state.first_ts", wrong) for wrong in ("5", '"yesterday"')),
        *(("state.lost", wrong) for wrong in ("5", '{"msgs": "x"}')),
        *(("natsstream.sha256", wrong) for wrong in ("5", '"00"', "[]")),
        *(("natsstream.archive_bytes", wrong) for wrong in ('"x"', "-1", "null")),
        *((place, DEEP) for place in ("config", "config.of_2030", "state", "natsstream")),
    ],
)
async def test_folder_with_a_wrong_field_is_refused_before_anything_is_sent(
    server: NatsServer, stream_name: str, tmp_path: Path, place: str, wrong: str
) -> None:
    asked: list[str] = []

    def note(told: Told) -> Told:
        asked.append(told.kind)
        return told

    async with connect(server.url) as js:
        folder = await saved(js, stream_name, tmp_path)
        spoil(folder, place, wrong)
        async with lying(server.port) as liar, connect(liar.url) as through:
            liar.lie = note
            with pytest.raises(BackupError):
                await through.streams.restore(folder)

            assert asked == []
        with pytest.raises(StreamNotFoundError):
            await js.streams.get(stream_name)


async def test_name_given_in_the_place_of_a_wrong_one_is_the_stream_s(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    folder = await saved(js, stream_name, tmp_path)
    spoil(folder, "config.name", '"a b"')

    with pytest.raises(BackupError, match="another name"):
        await js.streams.restore(folder)


@pytest.mark.parametrize("name", ["backup.json", "stream.tar.s2"])
async def test_what_is_no_file_is_refused_and_not_waited_for(
    js: JetStream, stream_name: str, tmp_path: Path, name: str
) -> None:
    """Opening a pipe waits until somebody writes into it."""
    folder = await saved(js, stream_name, tmp_path)
    for make in (os.mkfifo, os.mkdir):
        path = folder / name
        if path.is_file():
            path.unlink()
        make(path)
        with pytest.raises(BackupError):
            await js.streams.restore(folder)
        path.unlink() if make is os.mkfifo else path.rmdir()
