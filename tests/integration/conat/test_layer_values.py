"""Bytes and headers in maps and logs. Big values have tests of their own.

Source: Conat backend/conat/test/sync/binary.test.ts and headers.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.conat.names import StreamNames
from natsstream.errors import StreamNotFoundError
from tests.support.conat_layers import new_name, opened, until

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

BYTES = bytes(range(256))
HALF_A_MEGABYTE = bytes(500_000)


@pytest.mark.smoke
async def test_BI1_bytes_in_a_log_are_the_same_when_it_is_opened_again(js: JetStream) -> None:
    name = new_name()
    async with await js.dstream(name) as log:
        log.publish(BYTES)
        assert log[0] == BYTES
    async with await js.dstream(name) as later:
        assert later[0] == BYTES


async def test_BI2_half_a_megabyte_is_one_message(js: JetStream) -> None:
    assert js.raw.max_payload > len(HALF_A_MEGABYTE)
    name = new_name()
    async with await js.dstream(name) as log:
        log.publish(HALF_A_MEGABYTE)
        await log.save()
        assert log[0] == HALF_A_MEGABYTE
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(StreamNames(f"hub/{name}").blob_stream)


async def test_BI4_bytes_in_a_map_are_the_same_when_it_is_opened_again(js: JetStream) -> None:
    name = new_name()
    async with await js.dkv(name) as kv:
        kv.x = {"a": BYTES}
        assert kv.x == {"a": BYTES}
    async with await js.dkv(name) as later:
        assert later.x == {"a": BYTES}


async def test_HD1_a_message_without_headers_has_none(server: NatsNode) -> None:
    async with opened("dstream", server) as [log]:
        log.publish("x")
        await log.save()
        assert log.headers(0) is None


async def test_HD2_HD3_headers_of_a_log_are_there_when_saved_and_opened_again(
    server: NatsNode,
) -> None:
    async with opened("dstream", server, server) as [one, two]:
        one.publish("y", headers={"my": "header"})
        assert one.headers(0) is None
        await one.save()
        assert one.headers(0) == {"my": "header"}
        await until(lambda: two.length == 1)
        assert two.headers(0) == {"my": "header"}


async def test_HD4_HD5_headers_of_a_map_are_there_before_saving(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        kv.set("x", 10)
        assert kv.headers("x") is None
        kv.set("y", 20, headers={"my": "header"})
        assert kv.headers("y") == {"my": "header"}
        await kv.save()
        assert (kv.headers("x"), kv.headers("y")) == (None, {"my": "header"})
