"""Core streams as tables, on a real server."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from natsstream.conat.values import decode_value
from natsstream.errors import UsageError
from tests.support.core_streams import clients, context_of, held, names_of, until

if TYPE_CHECKING:
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


async def test_a_table_has_a_row_for_each_message_with_its_key_headers_and_value(
    server: NatsNode,
) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish({"a": [1, None, "é"]}, headers={"x": {"y": 1}})
        await stream.set_kv("k.é", "v")
        table = stream.to_arrow()

        assert table.column_names == ["seq", "time", "key", "headers", "value", "data"]
        assert table.column("seq").to_pylist() == stream.seqs() == [1, 2]
        assert table.column("time").cast(pa.int64()).to_pylist() == [
            each.time_ns for each in await held(stream)
        ]
        assert table.column("key").to_pylist() == [None, "k.é"]
        assert table.column("headers").to_pylist() == ['{"x":{"y":1}}', None]
        assert table.column("value").to_pylist() == ['{"a":[1,null,"é"]}', '"v"']
        assert table.column("data").to_pylist() == [each.raw for each in stream.raw]


async def test_an_empty_stream_makes_a_table_with_all_columns(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        full = stream.to_arrow().schema
        await stream.publish(1)
        assert stream.to_arrow().schema == full
        await stream.delete(all=True)
        assert (stream.to_arrow().num_rows, stream.to_arrow().schema) == (0, full)


async def test_a_value_that_json_does_not_have_is_null_and_its_bytes_are_exact(
    server: NatsNode,
) -> None:
    values = [b"\x00\xff", {"deep": [b"x"]}, math.inf, "plain"]
    async with clients(server, 1) as [stream]:
        for each in values:
            await stream.publish(each)
        table = stream.to_arrow()

        assert table.column("value").to_pylist() == [None, None, None, '"plain"']
        stored = [decode_value(each, stream.encoding) for each in table.column("data").to_pylist()]
        assert stored == values


async def test_messages_of_other_programs_have_their_rows_too(server: NatsNode) -> None:
    """Headers that cannot be read, half a surrogate pair, and a plain message."""
    async with clients(server, 1) as [stream]:
        js, names = context_of(stream), names_of(stream)
        json_headers = {"CN-Enc": "1", "CN-Hdr": '{"h":"\\ud800"}'}
        await js.publish(names.unkeyed, b'"\\ud800"', headers=json_headers)
        await js.publish(names.unkeyed, b"x", headers={"CN-Enc": "9", "CN-Hdr": "no JSON"})
        await js.publish(names.unkeyed, b"\xff")
        await until(lambda: len(stream) == 3)
        table = stream.to_arrow()

        headers, value = table.column("headers").to_pylist(), table.column("value").to_pylist()
        assert headers[1:] == value[1:] == [None, None]
        assert (json.loads(headers[0]), json.loads(value[0])) == ({"h": "\ud800"}, "\ud800")
        assert table.column("data").to_pylist() == [b'"\\ud800"', b"x", b"\xff"]


async def test_a_data_frame_has_the_columns_of_the_table(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.set_kv("a", 1)
        frame = stream.to_pandas()
        assert list(frame.columns) == stream.to_arrow().column_names
        assert frame["value"].tolist() == ["1"]


async def test_a_closed_stream_makes_no_table(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.close()
        with pytest.raises(UsageError, match="closed"):
            stream.to_arrow()
