"""Arguments of wrong types: an error that says so, and nothing is stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

import natsstream as ns
from natsstream.errors import ConfigError
from tests.support.conat_layers import new_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

LAYERS = ["core_stream", "dkv", "dstream", "dko", "akv", "astream"]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("encoding", ["json", None, 2])
async def test_another_encoding_is_refused_before_anything_is_stored(
    js: JetStream, kind: str, encoding: object
) -> None:
    name = new_name()
    with pytest.raises(ConfigError, match="encoding is") as told:
        await getattr(js, kind)(name, encoding=encoding)
    assert "ns.Encoding.JSON" in told.value.hint
    assert [each async for each in js.streams.names() if name in each] == []


NO_OPTIONS: Any = {"key": "a"}
OPENING: dict[str, tuple[object, ...]] = {
    "tombstone_ttl": (43_200_000.0, 0.5, -5, "1d", True, [1], 10**15),
    "start_seq": ("1", -1, True, [1]),
    "replicas": ("3", 0, 6, [1]),
    "ephemeral": ("false", 1, None, [1]),
    "no_cache": ("no", 1, None),
    "no_autosave": ("false", 1, [1]),
    "config": ([1], [], "max_msgs=5", 5, {1: 2}, {1: 2, "desc": 3}),
    "discard_policy": ({"discard_policy": "New"}, {"discard_policy": 5}),
    "allow_msg_ttl": ({"allow_msg_ttl": "false"}, {"allow_msg_ttl": 1}),
    "service": (5, [1]),
}
# Arguments that a layer lacks: it loads nothing, or saves nothing later.
LACKS = {
    "core_stream": {"no_autosave"},
    "akv": {"no_autosave", "no_cache", "start_seq"},
    "astream": {"no_autosave", "no_cache", "start_seq"},
}


@pytest.mark.parametrize(
    ("kind", "argument"),
    [(kind, each) for kind in LAYERS for each in OPENING if each not in LACKS.get(kind, ())],
)
async def test_opening_refuses_a_wrong_value_before_anything_is_stored(
    js: JetStream, kind: str, argument: str
) -> None:
    name = new_name()
    keyword = argument if argument not in ("discard_policy", "allow_msg_ttl") else "config"
    message = "field's name|configuration is" if argument == "config" else f"{argument} is"
    before = {each async for each in js.streams.names()}
    for value in OPENING[argument]:
        with pytest.raises(ConfigError, match=message) as told:
            await getattr(js, kind)(name, **{keyword: value})
        assert told.value.hint
    assert {each async for each in js.streams.names()} <= before


async def test_a_wrong_value_is_no_open_object_that_equals_it(js: JetStream) -> None:
    name = new_name()
    async with await js.dkv(name, ephemeral=True, tombstone_ttl=5_000) as map_:
        assert await js.dkv(name, ephemeral=True, tombstone_ttl=5_000) is map_
        with pytest.raises(ConfigError, match="ephemeral is 1"):
            await js.dkv(name, ephemeral=cast("Any", 1), tombstone_ttl=5_000)
        with pytest.raises(ConfigError, match=r"tombstone_ttl is 5000\.0"):
            await js.dkv(name, ephemeral=True, tombstone_ttl=cast("Any", 5_000.0))
        await map_.close()


async def test_the_description_in_the_configuration_counts(js: JetStream) -> None:
    async with await js.dkv(new_name(), config={"desc": "lamps"}) as map_:
        assert (await map_.config()).desc == "lamps"


WRONG: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "publish(key=5)": (lambda core, _: core.publish("x", key=5), "key is 5"),
    "publish_many": (lambda core, _: core.publish_many([{"mesg": 1}]), "item 0 is"),
    "publish_in_order": (lambda core, _: core.publish_in_order(["x"]), "item 0 is 'x'"),
    "set_kv_many": (lambda core, _: core.set_kv_many([{"mesg": 1}]), "item 0 is"),
    "publish_many(item)": (lambda core, _: core.publish_many(ns.PublishItem(1)), "items is"),
    "publish_in_order(5)": (lambda core, _: core.publish_in_order(5), "items is 5"),
    "options of an item": (
        lambda core, _: core.publish_many([ns.PublishItem(0), ns.PublishItem(1, NO_OPTIONS)]),
        "the options of item 1 are",
    ),
    "publish(headers=5)": (lambda core, _: core.publish(1, headers=5), "headers is 5"),
    "publish(headers=text)": (lambda core, _: core.publish(1, headers="a: b"), "headers is 'a: b'"),
    "publish(headers=pairs)": (lambda core, _: core.publish(1, headers=[("a", 1)]), "headers is"),
    "set(headers=list)": (lambda _, map_: map_.set("a", 1, headers=["a"]), "headers is"),
    "delete(all=text)": (lambda core, _: core.delete(all="false"), "all is 'false'"),
    "delete(seqs=5)": (lambda core, _: core.delete(seqs=5), "seqs is 5"),
    "delete(seqs=text)": (lambda core, _: core.delete(seqs="12"), "seqs is '12'"),
    "delete(seqs=[None])": (lambda core, _: core.delete(seqs=[None]), "seq is None"),
    "load(no_emit=text)": (lambda core, _: core.load(start_seq=0, no_emit="x"), "no_emit is 'x'"),
    "stats(start_seq=text)": (lambda core, _: core.stats(start_seq="1"), "start_seq is '1'"),
    "config(list)": (lambda core, _: core.config([1]), "the configuration is"),
    "config(empty list)": (lambda core, _: core.config([]), "the configuration is"),
    "config(policy)": (lambda _, map_: map_.config({"discard_policy": "New"}), "discard_policy is"),
    "config(flag)": (lambda _, map_: map_.config({"allow_msg_ttl": "no"}), "allow_msg_ttl is 'no'"),
    "set_many": (lambda _, map_: map_.set_many([1]), "values is"),
    "on a core stream": (lambda core, _: core.on("change", 5), "listener is 5"),
    "on a map": (lambda _, map_: map_.on("change", lambda: None), "listener is"),
    "on async": (lambda _, map_: map_.on("reject", asyncio.sleep), "which is async"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_no_argument_is_refused_before_anything_is_stored(
    js: JetStream, name: str
) -> None:
    call, message = WRONG[name]
    async with await js.core_stream(new_name()) as core, await js.dkv(new_name()) as map_:
        with pytest.raises(ConfigError, match=message) as told:
            await cast("Awaitable[object]", call(core, map_))
        assert told.value.hint
        assert (len(core), len(map_)) == (0, 0)


UNLOADED: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "set(headers=5)": (lambda map_, _log, _saved: map_.set("a", 1, headers=5), "headers is 5"),
    "publish(headers)": (lambda _map, log, _saved: log.publish(1, headers=[1]), "headers is"),
    "publish later": (lambda _map, _log, saved: saved.publish(1, headers=5), "headers is 5"),
    "delete(all)": (lambda _map, log, _saved: log.delete(all="false"), "all is 'false'"),
    "delete(all) later": (lambda _map, _log, saved: saved.delete(all="false"), "all is 'false'"),
    "config(list)": (lambda map_, _log, _saved: map_.config([1]), "the configuration is"),
}


@pytest.mark.parametrize("name", UNLOADED)
async def test_what_is_no_argument_is_refused_by_the_layers_too(js: JetStream, name: str) -> None:
    call, message = UNLOADED[name]
    async with (
        await js.akv(new_name()) as map_,
        await js.astream(new_name()) as log,
        await js.dstream(new_name()) as saved,
    ):
        with pytest.raises(ConfigError, match=message) as told:
            await cast("Awaitable[object]", call(map_, log, saved))
        assert told.value.hint
        assert await map_.keys() == []
        assert [each async for each in log.get_all()] == saved.get_all() == []


async def test_a_wrong_header_of_one_message_is_its_own_error(js: JetStream) -> None:
    wrong = ns.PublishOptions(headers=cast("Any", 5))
    items = [ns.PublishItem("a"), ns.PublishItem("b", wrong), ns.PublishItem("c")]
    async with await js.core_stream(new_name()) as core:
        for publish in (core.publish_many, core.publish_in_order):
            results = await publish(items)
            assert [type(each.error) for each in results] == [type(None), ConfigError, type(None)]
        assert core.get_all() == ["a", "c", "a", "c"]


async def test_a_key_is_no_position(js: JetStream) -> None:
    async with await js.core_stream(new_name()) as core, await js.dstream(new_name()) as log:
        for items in (core, core.messages, core.raw, log):
            with pytest.raises(TypeError, match="as an integer"):
                cast("Any", items)["a"]


async def test_a_missing_key_is_none_of_a_value(js: JetStream) -> None:
    """As that of a user without a name: the value would be in no map."""
    none = cast("Any", None)
    async with await js.core_stream(new_name()) as cs:
        with pytest.raises(ConfigError, match="key is None"):
            await cs.set_kv(none, 1)
        assert len(cs) == 0
    with pytest.raises(ConfigError, match="key is None"):
        await (await js.akv(new_name())).set(none, 1)


async def test_a_format_is_no_codec(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(stream_name)
    with pytest.raises(ConfigError, match="the format JSON turns objects") as told:
        bucket.with_codec(values=cast("Any", ns.JSON))
    assert "kv.typed(ns.JSON)" in told.value.hint


async def test_message_ids_events_and_inventories_say_what_is_wrong(js: JetStream) -> None:
    wrong: Any = [1]
    async with (
        await js.core_stream(new_name()) as core,
        await js.dkv(new_name()) as kv,
        await js.inventory() as inventory,
    ):
        with pytest.raises(ConfigError, match="msg_id is"):
            await core.publish("x", msg_id=wrong)
        with pytest.raises(ns.errors.UsageError, match="no event"):
            core.on(wrong, print)
        for filter_ in (5, None, ["a"]):
            with pytest.raises(ConfigError, match="filter is"):
                inventory.get_all(filter=cast("Any", filter_))
        with pytest.raises(ConfigError, match="numbers is None") as told:
            inventory.set("k", "kv", cast("Any", None))
        assert "await" in told.value.hint
        with pytest.raises(ConfigError, match="kind is"):
            inventory.set("k", cast("Any", "dkv"), await kv.inventory())


async def test_subjects_that_an_operator_added_are_told_with_the_way_back(js: JetStream) -> None:
    name = new_name()
    async with await js.core_stream(name, no_cache=True) as core:
        await core.publish(1)
        infos = [each async for each in js.streams.list()]
    held = next(each for each in infos if f"hub/{name}" in (each.config.metadata or {}).values())
    stream, own = held.config.name, list(held.config.subjects or ())
    await js.streams.update(stream, subjects=[*own, f"audit.{stream}"])
    with pytest.raises(ns.errors.StreamExistsError) as told:
        await js.core_stream(name, no_cache=True)
    assert told.value.hint == (
        f"set them again: await js.streams.update({stream!r}, subjects={sorted(own)!r})"
    )
    await js.streams.update(stream, subjects=sorted(own))
    async with await js.core_stream(name, no_cache=True) as core:
        assert core.get_all() == [1]
