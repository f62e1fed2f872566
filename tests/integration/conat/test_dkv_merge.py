"""Conflicts of unsaved values with remote ones: Conat's own tests, and defects that it has.

Source: Conat backend/conat/test/sync/dkv-merge.test.ts; core-stream.md sections 2.2 and 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.conat.unsaved_keys import TOMBSTONE
from natsstream.errors import ConfigError
from tests.support.conat_layers import heard, opened, until

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.conat.unsaved_keys import Conflict
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("first", [0, 1], ids=["KM1", "KM2"])
async def test_KM1_KM2_without_merge_the_last_one_to_save_wins(
    server: NatsNode, first: int
) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        for kv, value in ((one, 5), (two, 10))[:: 1 if first == 0 else -1]:
            kv.x = value
        await two.save()
        await until(lambda: one.core.get_kv("x") == 10)
        assert one.x == 5
        await one.save()
        await until(lambda: two.x == 5)
        assert one.x == 5


async def test_KM3_the_result_of_merge_reaches_both(server: NatsNode) -> None:
    def merge(_: Conflict) -> str:
        return "conflict"

    async with opened("dkv", server, server, no_autosave=True, merge=merge) as [one, two]:
        one.x = 5
        two.x = 10
        await two.save()
        await until(lambda: one.x == "conflict")
        await one.save()
        await until(lambda: two.x == "conflict")


async def test_KM4_merge_is_given_the_remote_value_before(server: NatsNode) -> None:
    seen: list[Conflict] = []

    def merge(conflict: Conflict) -> str:
        seen.append(conflict)
        return conflict.remote.replace(conflict.prev, conflict.local)

    async with opened("dkv", server, server, no_autosave=True, merge=merge) as [one, two]:
        one.x = "cocalc"
        await one.save()
        await until(lambda: two.get("x") == "cocalc")
        two.x = "cocalc!"
        one.x = "LOVE cocalc"
        await two.save()
        await until(lambda: one.x == "LOVE cocalc!")
        assert seen[-1].prev == "cocalc"
        await one.save()
        await until(lambda: two.x == "LOVE cocalc!")


async def test_KM5_objects_are_merged_field_by_field(server: NatsNode) -> None:
    def merge(conflict: Conflict) -> dict[str, int]:
        return {**conflict.remote, **conflict.local}

    async with opened("dkv", server, server, no_autosave=True, merge=merge) as [one, two]:
        one.x = {"a": 5}
        await one.save()
        await until(lambda: two.get("x") == {"a": 5})
        one.x = {"a": 5, "b": 15, "c": 12}
        two.x = {"a": 5, "b": 7, "d": 3}
        await two.save()
        wanted = {"a": 5, "b": 15, "c": 12, "d": 3}
        await until(lambda: one.x == wanted)
        await one.save()
        await until(lambda: two.x == wanted)


async def test_clients_that_merge_and_save_at_the_same_time_lose_no_field(
    server: NatsNode,
) -> None:
    def merge(conflict: Conflict) -> dict[str, int]:
        return {**(conflict.remote or {}), **conflict.local}

    async with opened("dkv", *[server] * 3, merge=merge) as maps:
        for number in range(20):
            for index, kv in enumerate(maps):
                kv.x = {**kv.get("x", {}), f"{index}.{number}": number}
        for kv in maps:
            await kv.save()
        wanted = {f"{index}.{number}" for index in range(3) for number in range(20)}
        await until(lambda: all(set(kv.x) == wanted for kv in maps))


async def test_merge_deletes_a_key_by_tombstone(server: NatsNode) -> None:
    def merge(_: Conflict) -> object:
        return TOMBSTONE

    async with opened("dkv", server, server, no_autosave=True, merge=merge) as [one, two]:
        one.x = 5
        two.x = 10
        await two.save()
        await until(lambda: not one.has("x"))
        await one.save()
        await until(lambda: not two.has("x"))


async def test_an_unsaved_deletion_wins_when_it_is_saved(server: NatsNode) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        one.x = 5
        await one.save()
        await until(lambda: two.get("x") == 5)
        one.delete("x")
        two.x = 10
        await two.save()
        await until(lambda: one.core.get_kv("x") == 10)
        assert not one.has("x")
        await one.save()
        await until(lambda: not two.has("x"))


async def test_B8_a_lost_compare_and_set_leaves_the_other_keys_saved(server: NatsNode) -> None:
    def merge(conflict: Conflict) -> int:
        return max(conflict.local, conflict.remote)

    async with opened("dkv", server, server, no_autosave=True, merge=merge) as [one, two]:
        for kv, number in ((one, 1), (two, 2)):
            for key in "abcdef":
                kv[key] = number
        await two.save()
        # Without a copy of the values of `two`, three of the compare-and-sets are lost.
        for key in "ace":
            await two.core.set_kv(key, 3)
        await one.save()
        await until(lambda: one.core.get_kv("e") == 3)
        await one.save()
        assert not one.has_unsaved_changes()
        wanted = {"a": 3, "b": 2, "c": 3, "d": 2, "e": 3, "f": 2}
        await until(lambda: one.get_all() == two.get_all() == wanted)


async def test_a_map_that_merges_saves_a_key_after_its_deletion(server: NatsNode) -> None:
    def merge(conflict: Conflict) -> object:
        return conflict.local

    async with opened("dkv", server, merge=merge) as [kv]:
        stable = heard(kv, "stable")
        for value in (1, 2):
            kv.x = value
            await kv.save()
            kv.delete("x")
            await kv.save()
        kv.x = 3
        await kv.save()
        assert kv.get_all() == {"x": 3}
        assert len(stable) == 5


@pytest.mark.parametrize("result", [{1, 2}, object()])
async def test_merge_whose_result_cannot_be_saved_keeps_the_local_value(
    server: NatsNode, caplog: pytest.LogCaptureFixture, result: object
) -> None:
    def merge(_: Conflict) -> object:
        return result

    async with opened("dkv", server, server, merge=merge, no_autosave=True) as [one, two]:
        one.x, two.x = 5, 10
        await two.save()
        await until(lambda: one.core.get_kv("x") == 10)
        await one.save()
        await until(lambda: two.x == 5)
    assert "the merge of key 'x' failed; its local value counts" in caplog.text


async def test_merge_that_is_async_is_refused(js: JetStream) -> None:
    async def merge(_: Conflict) -> object:
        raise NotImplementedError

    with pytest.raises(ConfigError, match=r"merge is .* which is async"):
        await js.dkv("never", merge=merge)
