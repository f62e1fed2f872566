"""The operations without async: each is wrapped by the blocking door as its proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsstream import blocking

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.testing import NatsServer


def test_operations_work_without_async(
    server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    with blocking.connect(server.url) as js:
        with js.advisories(stream=stream_name) as events:
            stream = js.streams.ensure(
                stream_name, subjects=[f"{stream_name}.>"], allow_direct=True
            )
            with stream.chained(writer="w1") as chain:
                for _ in range(4):
                    chain.send(f"{stream_name}.0", b"x")
                assert chain.head.count == 4
            event = next(iter(events))

        assert event.kind == "stream_created"
        assert stream.verify_chain().links == 4
        message = stream.direct.get(2)
        assert message is not None
        assert message.sequence == 2
        assert len(stream.direct.batch(10)) == 4
        assert stream.backup(tmp_path / "backup").messages == 4
        stream.delete_message(1)
        assert stream.purge() == 3
        stream.delete()
        assert js.streams.restore(tmp_path / "backup").verify_chain().is_intact
