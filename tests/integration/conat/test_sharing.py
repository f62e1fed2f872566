"""Core streams that several users open: one object for equal arguments, closed by the last one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import natsstream as ns
from natsstream import blocking
from natsstream.errors import ConfigError, StoragePathError, UsageError
from tests.support.conat_layers import new_name

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_a_message_is_in_the_arrays_when_its_publish_returns(
    js: JetStream, stream_name: str
) -> None:
    async with await js.core_stream(stream_name) as stream:
        stored = await stream.publish({"text": "hi"}, headers={"from": "ann"})
        keyed = await stream.set_kv("topic", "cats")

        assert stored is not None
        assert keyed is not None
        assert stream.get_all() == [{"text": "hi"}, "cats"]
        assert (stream.seq(0), stream.time(0)) == (stored.seq, stored.time)
        assert stream.headers(0) == {"from": "ann"}
        assert (stream.get_kv("topic"), stream.seq_kv("topic")) == ("cats", keyed.seq)


async def test_equal_arguments_share_one_object_that_the_last_user_closes(
    js: JetStream, stream_name: str
) -> None:
    one, two = await asyncio.gather(js.core_stream(stream_name), js.core_stream(stream_name))
    assert one is two
    await one.close()
    await two.publish(1)
    assert two.get_all() == [1]
    await two.close()

    with pytest.raises(UsageError, match="closed"):
        two.get_all()
    async with await js.core_stream(stream_name) as later:
        assert later is not one
        assert later.get_all() == [1]


async def test_other_arguments_have_an_object_of_their_own(js: JetStream, stream_name: str) -> None:
    async with (
        await js.core_stream(stream_name) as all_of_it,
        await js.core_stream(stream_name, start_seq=2) as later,
        await js.core_stream(stream_name, no_cache=True) as alone,
    ):
        assert len({id(all_of_it), id(later), id(alone)}) == 3


async def test_an_error_of_the_first_user_is_the_error_of_all_and_is_not_kept(
    js: JetStream, stream_name: str
) -> None:
    config = {"max_msgs": 0}
    opened = (js.core_stream(stream_name, config=config) for _ in range(2))
    errors = await asyncio.gather(*opened, return_exceptions=True)
    assert [type(each) for each in errors] == [ConfigError, ConfigError]

    with pytest.raises(ConfigError):
        await js.core_stream(stream_name, config=config)


async def test_a_user_that_leaves_while_it_opens_does_not_take_the_others_along(
    js: JetStream, stream_name: str
) -> None:
    first = asyncio.ensure_future(js.core_stream(stream_name))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(js.core_stream(stream_name))
    await asyncio.sleep(0)
    first.cancel()

    async with await second as stream:
        await stream.publish(1)
        assert stream.get_all() == [1]


async def test_a_name_that_leaves_its_folder_is_refused_before_anything_is_sent(
    js: JetStream,
) -> None:
    with pytest.raises(StoragePathError) as caught:
        await js.core_stream("../accounts/other")
    assert ns.conat_code(caught.value) == 403


async def test_the_blocking_twin_reads_as_the_async_one(js: JetStream, stream_name: str) -> None:
    def use() -> tuple[list[object], int, object]:
        with (
            blocking.connect(js.url) as door,
            door.core_stream(stream_name) as stream,
        ):
            stream.publish("one")
            stream.set_kv("k", 2)
            return stream.get_all(), len(stream), stream[-1]

    assert await asyncio.to_thread(use) == (["one", 2], 2, 2)


@pytest.mark.parametrize(
    ("layer", "options"),
    [(layer, {"no_autosaves": True}) for layer in ("dkv", "dstream", "dko", "akv", "astream")]
    + [(layer, {name: 1}) for layer in ("akv", "astream") for name in ("start_seq", "no_cache")],
)
async def test_an_argument_that_a_layer_does_not_have_is_refused(
    js: JetStream, layer: str, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigError, match=f"argument of js.{layer} '{next(iter(options))}'"):
        await getattr(js, layer)(new_name(), **options)
