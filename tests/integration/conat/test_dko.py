"""Conat's own tests of DKO, one a row of its table, on a real server. KO8 is with big values.

Source: Conat backend/conat/test/sync/dko.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.conat.dko import ObjectChange
from natsstream.conat.undefined import UNDEFINED
from natsstream.errors import ConfigError, UsageError
from tests.support.conat_layers import heard, new_name, until

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_KO1_to_KO6_objects_are_saved_field_by_field(js: JetStream) -> None:
    name = new_name()
    objects = await js.dko(name)
    assert objects.get_all() == {}
    with pytest.raises(ConfigError, match="must be objects"):
        objects.a = 10
    objects.a = {"a": 5, "b": 7}
    assert objects.a == objects["a"] == objects.get("a") == {"a": 5, "b": 7}
    await objects.save()
    await objects.close()

    objects = await js.dko(name)
    assert objects.a == {"a": 5, "b": 7}
    assert (len(objects), len(objects.dkv)) == (1, 3)
    objects.clear()
    assert objects.get_all() == {}
    await objects.close()
    with pytest.raises(UsageError, match="closed"):
        objects.get_all()


@pytest.mark.parametrize("key", ["a!@#$%^&*¦()", '["f1","f2"]', "[1]", "[", '{"a":1}', ""])
async def test_KO7_KO9_KO10_any_text_is_a_key_and_a_field(js: JetStream, key: str) -> None:
    name = new_name()
    async with (
        await js.dko(name, no_cache=True) as one,
        await js.dko(name, no_cache=True) as two,
    ):
        one.set(key, {key: "bar", "": ["x"]})
        assert one.get(key) == {key: "bar", "": ["x"]}
        await one.save()
        await until(lambda: two.get_all() == {key: {key: "bar", "": ["x"]}})


async def test_only_the_fields_that_differ_are_saved(js: JetStream) -> None:
    async with await js.dko(new_name(), no_autosave=True) as objects:
        objects.a = {"x": 1, "y": 2}
        await objects.save()
        objects.a = {"x": 1, "y": 3}
        assert objects.unsaved_changes() == [("a", "y")]
        await objects.save()
        assert objects.dkv.core.length == 3
        objects.a = {"x": 1}
        await objects.save()
        assert objects.get_all() == {"a": {"x": 1}}
        assert objects.dkv.get_all() == {"a": ["x"], '["a","x"]': 1}
        objects.a = None
        assert (objects.get("a"), objects.has("a")) == (UNDEFINED, False)


async def test_two_clients_write_two_fields_of_one_object(js: JetStream) -> None:
    name = new_name()
    async with (
        await js.dko(name, no_cache=True) as one,
        await js.dko(name, no_cache=True) as two,
    ):
        one.a = {"x": 1, "y": 1}
        await one.save()
        await until(lambda: two.get("a") == {"x": 1, "y": 1})
        changes = heard(two)
        one.a = {"x": 2, "y": 1}
        two.a = {"x": 1, "y": 2}
        await until(lambda: one.a == two.a == {"x": 2, "y": 2})
        assert ObjectChange("a", "x", 2) in changes
        del one.a
        await until(lambda: "a" not in two)
        assert ObjectChange("a") in changes


async def test_equal_arguments_share_one_map_of_objects(js: JetStream) -> None:
    name = new_name()
    async with await js.dko(name) as one, await js.dko(name, no_autosave=True) as manual:
        assert await js.dko(name) is one
        assert manual is not one
        await one.close()
        assert one.get_all() == {}
