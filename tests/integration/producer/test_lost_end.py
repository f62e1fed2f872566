"""A stream lost its end, since its server came back with an older disk: producers are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

import natsstream
from natsstream.errors import IntegrityError, SequenceGapError, StreamRecreatedError
from natsstream.testing import NatsServer
from tests.support.producers import MODES
from tests.support.stores import keep_store, set_back

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.producer.options import Mode
    from natsstream.testing import ServerOptions

pytestmark = pytest.mark.asyncio


TOLD: dict[str, type[IntegrityError]] = {
    "shared": SequenceGapError,
    "exclusive": StreamRecreatedError,
}


@pytest.mark.parametrize("mode", MODES)
async def test_producer_of_a_stream_that_lost_its_end_is_told(
    nats_server_options: ServerOptions, stream_name: str, tmp_path: Path, mode: str
) -> None:
    given = cast("Mode", mode)
    with NatsServer(**nats_server_options, store_dir=tmp_path / "store") as server:
        async with natsstream.connect(server.url) as js:
            stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.*"])
            opened = js.producer(
                stream_name, "p", subject=f"{stream_name}.a", mode=given, update_stream=True
            )
            async with await opened as producer:
                await producer.append_wait(b"0", checkpoint=0)
                keep_store(server, tmp_path)
                await producer.append_wait(b"1", checkpoint=1)
                set_back(server, tmp_path)

                with pytest.raises(TOLD[mode]):
                    await producer.append_wait(b"2", checkpoint=2)
                with pytest.raises(TOLD[mode]):
                    await producer.detach()

            again = await js.producer(stream_name, "p", subject=f"{stream_name}.a", mode=given)
            async with again:
                assert again.recovered is not None
                assert again.recovered.checkpoint == 0
            assert [message.data async for message in stream.read()] == [b"0"]
