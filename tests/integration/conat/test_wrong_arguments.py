"""Arguments of wrong types: an error that says so, and nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

import natsstream as ns
from natsstream.errors import ConfigError
from tests.support.conat_layers import new_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("kind", ["core_stream", "dkv", "dstream", "dko", "akv", "astream"])
@pytest.mark.parametrize("encoding", ["json", None, 2])
async def test_another_encoding_is_refused_before_anything_is_stored(
    js: JetStream, kind: str, encoding: object
) -> None:
    name = new_name()
    with pytest.raises(ConfigError, match="encoding is") as told:
        await getattr(js, kind)(name, encoding=encoding)
    assert "ns.Encoding.JSON" in told.value.hint
    assert [each async for each in js.streams.names() if name in each] == []


WRONG: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "publish(key=5)": (lambda core, _: core.publish("x", key=5), "key is 5"),
    "publish_many": (lambda core, _: core.publish_many([{"mesg": 1}]), "item 0 is"),
    "publish_in_order": (lambda core, _: core.publish_in_order(["x"]), "item 0 is 'x'"),
    "set_kv_many": (lambda core, _: core.set_kv_many([{"mesg": 1}]), "item 0 is"),
    "set_many": (lambda _, map_: map_.set_many([1]), "values is"),
    "on a core stream": (lambda core, _: core.on("change", 5), "listener is 5"),
    "on a map": (lambda _, map_: map_.on("change", lambda: None), "listener is"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_no_argument_is_refused_before_anything_is_stored(
    js: JetStream, name: str
) -> None:
    call, message = WRONG[name]
    async with await js.core_stream(new_name()) as core, await js.dkv(new_name()) as map_:
        with pytest.raises(ConfigError, match=message):
            await cast("Awaitable[object]", call(core, map_))
        assert (len(core), len(map_)) == (0, 0)


async def test_a_key_is_no_position(js: JetStream) -> None:
    async with await js.core_stream(new_name()) as core, await js.dstream(new_name()) as log:
        for items in (core, core.messages, core.raw, log):
            with pytest.raises(TypeError, match="as an integer"):
                cast("Any", items)["a"]


async def test_a_format_is_no_codec(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(stream_name)
    with pytest.raises(ConfigError, match="the format JSON turns objects") as told:
        bucket.with_codec(values=cast("Any", ns.JSON))
    assert "kv.typed(ns.JSON)" in told.value.hint
