"""Limits of maps and logs, as far as servers have them; the others have tests of their own.

Source: Conat backend/conat/test/sync/limits.test.ts; core-stream.md sections 4 and 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conat_layers import heard, opened, until

if TYPE_CHECKING:
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_LI1_a_third_key_removes_the_first_of_two(server: NatsNode) -> None:
    async with opened("dkv", server, config={"max_msgs": 2}) as [kv]:
        for key in "abc":
            kv[key] = key * 2
            await kv.save()
        await until(lambda: kv.get_all() == {"b": "bb", "c": "cc"})


async def test_LI2_keys_age_out(server: NatsNode) -> None:
    async with opened("dkv", server, config={"max_age": 100}) as [kv]:
        changes = heard(kv)
        kv.a = 10
        kv.b = 20
        await kv.save()
        await until(lambda: kv.get_all() == {})
        assert {each.key for each in changes if each.is_deleted} == {"a", "b"}


async def test_LI5_the_configuration_is_the_same_for_another_client(server: NatsNode) -> None:
    async with opened("dstream", server, server) as [one, two]:
        config = await one.config({"max_msgs": 5, "discard_policy": "new", "desc": {"a": 1}})
        assert (config.max_msgs, config.discard_policy, config.desc) == (5, "new", {"a": 1})
        assert await two.config() == config


async def test_LI7_LI12_messages_of_a_log_age_out(server: NatsNode) -> None:
    async with opened("dstream", server, config={"max_age": 200}) as [log]:
        log.push("old")
        await log.save()
        await until(lambda: log.get_all() == [])
        log.push("new")
        await log.save()
        assert log.get_all() == ["new"]


async def test_LI16_the_configuration_is_kept(server: NatsNode) -> None:
    async with opened("dstream", server, desc={"hello": "there"}) as [log]:
        config = await log.config({"max_msgs": 100, "max_age": 5_000})
        await log.close()
        async with opened("dstream", server, name=log.name) as [later]:
            assert await later.config() == config
            assert config.desc == {"hello": "there"}


async def test_LI18_a_log_on_a_disk_has_no_limit_of_bytes(server: NatsNode) -> None:
    async with opened("dstream", server) as [log]:
        assert (await log.config()).max_bytes == -1


async def test_LI19_LI20_LI21_a_log_in_memory_has_64_megabytes_at_most(server: NatsNode) -> None:
    async with opened("dstream", server, ephemeral=True) as [log]:
        assert (await log.config()).max_bytes == 64_000_000
        assert (await log.config({"max_bytes": 100_000_000})).max_bytes == 64_000_000
        assert (await log.config({"max_bytes": 32_000_000})).max_bytes == 32_000_000


async def test_refused_writes_are_logged_where_nobody_listens(
    server: NatsNode, caplog: pytest.LogCaptureFixture
) -> None:
    limits = {"max_msg_size": 50}
    async with opened("dstream", server, config=limits, no_autosave=True) as [log]:
        log.push("x" * 200, "y", "z" * 200)
        await log.save()
        assert log.get_all() == ["y"]
    assert len(caplog.records) == 1
    assert f"DStream {log.name}: 2 writes refused and gone here too" in caplog.text
    caplog.clear()
    for layer, value in (("dkv", "x" * 200), ("dko", {"field": "x" * 200})):
        async with opened(layer, server, config=limits, no_autosave=True) as [kv]:
            kv["a"] = value
            await kv.save()
            assert f"{kv.name}: 1 write refused and gone here too" in caplog.text
            rejected = heard(kv, "reject")
            caplog.clear()
            kv["a"] = value
            await kv.save()
            assert len(rejected) == 1
            assert not caplog.records
