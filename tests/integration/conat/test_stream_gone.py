"""The JetStream stream of an open core stream is deleted by another program.

Law: a write that returns is in this stream, and the hint of one that fails is a way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream import NatsStreamError, PublishItem
from natsstream.conat.names import StreamNames
from natsstream.errors import NoRespondersError, WrongStreamError
from tests.support.conat_layers import new_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

PAIR = [PublishItem("x"), PublishItem("y")]


def results_of(call: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    """Return the call of a method that answers with results, so that it raises their error."""

    async def run(core: Any) -> None:
        for result in await call(core):
            if result.error is not None:
                raise result.error

    return run


WRITES: dict[str, tuple[str, Callable[[Any], Awaitable[Any]]]] = {
    "one": ("core_stream", lambda core: core.publish("x")),
    "a big one": ("core_stream", lambda core: core.publish("x" * 2_000_000)),
    "pipelined": ("core_stream", results_of(lambda core: core.publish_many(PAIR))),
    "a batch": ("core_stream", results_of(lambda core: core.publish_in_order(PAIR))),
    "one in order": ("core_stream", results_of(lambda core: core.publish_in_order(PAIR[:1]))),
    "one, nothing loaded": ("astream", lambda log: log.publish("x")),
    "pipelined, nothing loaded": ("astream", results_of(lambda log: log.push("x", "y"))),
}


async def refused(write: Callable[[Any], Awaitable[Any]], written: object) -> NatsStreamError:
    with pytest.raises(NatsStreamError) as told:
        await write(written)
    return told.value


@pytest.mark.parametrize("name", WRITES)
async def test_a_stream_that_is_gone_comes_back_as_the_hint_says(js: JetStream, name: str) -> None:
    layer, write = WRITES[name]
    stream = new_name()
    async with await getattr(js, layer)(stream) as written:
        await js.streams.delete(StreamNames(f"hub/{stream}").stream)
        error = await refused(write, written)
        assert isinstance(error, NoRespondersError)
        assert "streams.ensure" not in error.hint
        if layer == "core_stream":
            assert "await stream.config()" in error.hint
            await written.config()
            await write(written)
            assert written.get_all()
    if layer == "astream":
        assert "open it again" in error.hint
        async with await js.astream(stream) as again:
            await write(again)
            assert [each async for each in again.get_all()]


@pytest.mark.parametrize("name", WRITES)
async def test_the_ack_of_another_stream_is_no_success(
    js: JetStream, name: str, stream_name: str
) -> None:
    layer, write = WRITES[name]
    stream = new_name()
    names = StreamNames(f"hub/{stream}")
    async with await getattr(js, layer)(stream) as written:
        await js.streams.delete(names.stream)
        other = await js.streams.create(
            stream_name, subjects=[names.data_filter], allow_atomic=True
        )
        error = await refused(write, written)
        assert isinstance(error, WrongStreamError)
        assert stream_name in error.message
        assert stream in error.message
        # Each once: no second way is tried.
        count = 2 if name.startswith(("pipelined", "a batch")) else 1
        assert (await other.info()).state.messages == count
