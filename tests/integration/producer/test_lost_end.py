"""A stream lost its end, since its server came back with an older disk: producers are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

import natsstream
from natsstream.errors import IntegrityError, SequenceGapError, StreamRecreatedError
from natsstream.producer.producer import Recovered
from natsstream.testing import NatsServer
from tests.support.producers import MODES, numbers
from tests.support.stores import keep_store, set_back

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.producer.options import Mode
    from natsstream.producer.producer import IdempotentProducer
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


async def test_restarted_producer_knows_what_is_stored(
    nats_server_options: ServerOptions, stream_name: str, tmp_path: Path
) -> None:
    """Following the hint stores nothing twice, whatever the producer recovered at first."""
    with NatsServer(**nats_server_options, store_dir=tmp_path / "store") as server:
        async with natsstream.connect(server.url) as js:
            stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.*"])
            opened = js.producer(stream_name, "p", subject=f"{stream_name}.a", update_stream=True)
            async with await opened as producer:
                await append_from(producer, 0, 2)
                keep_store(server, tmp_path)
                await append_from(producer, 2, 4)
                set_back(server, tmp_path)
                with pytest.raises(SequenceGapError, match=r"begin behind producer\.recovered"):
                    await append_from(producer, 4, 5)
                assert producer.recovered is None

                await producer.restart()

                assert producer.recovered is not None
                assert producer.recovered == Recovered(checkpoint=2, count=2, epoch=0)
                await append_from(producer, producer.recovered.checkpoint, 5)
            assert [message.data async for message in stream.read()] == numbers(5)


async def append_from(producer: IdempotentProducer, first: int, stop: int) -> None:
    """Append numbers, each with the position behind it."""
    for number in range(first, stop):
        await producer.append_wait(b"%d" % number, checkpoint=number + 1)
