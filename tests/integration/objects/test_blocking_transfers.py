"""Objects go in and out without async, from what blocks and with callbacks that are plain."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from natsstream.blocking import connect
from tests.support.chunked import some_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.testing import NatsNode

DATA = some_bytes(300_001)


@pytest.mark.smoke
def test_objects_go_in_and_out(server: NatsNode, stream_name: str, tmp_path: Path) -> None:
    with connect(server.url) as js:
        box = js.objects.create(stream_name, storage="memory")
        told: list[int] = []
        box.put("file", io.BytesIO(DATA), progress=lambda done, _: told.append(done))
        box.put("lines", (DATA[at : at + 999] for at in range(0, len(DATA), 999)))

        assert told[-1] == len(DATA)
        assert box.get("file") == box.get("lines") == DATA
        with box.open("file", offset=10) as reader:
            assert reader.info.size == len(DATA)
            assert reader.read(5) + b"".join(reader) == DATA[10:]
        box.get_file("file", tmp_path / "out")
        assert (tmp_path / "out").read_bytes() == DATA
        assert box.sweep().values == 0
        assert box.get("nothing") is None


def test_chunks_are_swept_by_what_a_plain_function_tells(
    server: NatsNode, stream_name: str
) -> None:
    with connect(server.url) as js:
        stream = js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
        kept = stream.chunks.put(f"{stream_name}.kept", DATA)
        stream.chunks.put(f"{stream_name}.lost", DATA)
        report = stream.chunks.sweep(
            f"{stream_name}.>", lambda: {kept.subject}, older_than=0.000001
        )
        assert report.values == 1
        with stream.chunks.open(kept) as reader:
            assert reader.read() == DATA
