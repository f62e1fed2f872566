"""Streams that are only read as core streams: what their messages and methods are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import UNDEFINED, conat_code, connect
from natsstream.conat.headers import header_values
from natsstream.conat.values import Encoding, encode_value
from natsstream.conat.writer import PublishItem
from natsstream.errors import (
    ConfigError,
    ReadOnlyStreamError,
    StreamNotFoundError,
    SubjectError,
    UsageError,
)
from tests.support.core_streams import heard, until
from tests.support.overs import LOOK_EVERY_S, foreign, new_stream, send, until_same

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import CoreStream, JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

WRITES: dict[str, Callable[[CoreStream], Awaitable[object]]] = {
    "publish": lambda view: view.publish(1),
    "publish undefined": lambda view: view.publish(UNDEFINED, key="no"),
    "publish_many": lambda view: view.publish_many([PublishItem(1)]),
    "set_kv": lambda view: view.set_kv("a", 1),
    "set_kv_many": lambda view: view.set_kv_many([]),
    "delete_kv": lambda view: view.delete_kv("no"),
    "delete all": lambda view: view.delete(all=True),
    "delete key": lambda view: view.delete(key="no"),
    "config": lambda view: view.config({"max_msgs": 1}),
}


async def test_each_subject_is_a_key_and_each_message_is_there(js: JetStream) -> None:
    async with foreign(js) as stream:
        await send(js, stream.name, "a", "b", "a")
        async with await js.core_stream.over(stream.name) as view:
            changes = heard(view)
            assert view.conflates
            assert view.get_all() == [b"a", b"b", b"a"]
            await send(js, stream.name, "b", "c")
            await until(lambda: len(view) == 5)
            assert view.keys_kv() == [f"{stream.name}.{each}" for each in "abc"]
            assert [view.seq_kv(f"{stream.name}.{each}") for each in "abc"] == [3, 4, 5]
            assert [(each.seq, each.mesg, each.prev) for each in changes] == [
                (4, b"b", b"b"),
                (5, b"c", UNDEFINED),
            ]
            assert not any(each.is_conflated for each in changes)


async def test_what_any_program_has_written_is_readable(js: JetStream) -> None:
    """Values of a core stream are decoded; all others are bytes, also those that claim to be."""
    packed, text = ({"a": 1}, Encoding.MSGPACK), ("é", Encoding.JSON)
    async with foreign(js) as stream:
        subject = f"{stream.name}.a"
        await js.publish(subject, b"\xff\x00 plain")
        for value, encoding in (packed, text):
            data = encode_value(value, encoding)
            await js.publish(subject, data, headers=header_values(encoding))
        await js.publish(subject, b"new", headers={"CN-Enc": "77"})
        await js.publish(subject, b"{", headers={"CN-Enc": "1", "CN-Hdr": "no JSON"})
        await js.publish(subject, b"")
        async with await js.core_stream.over(stream) as view:
            values = [b"\xff\x00 plain", {"a": 1}, "é", b"new", b"{", b""]
            assert view.get_all() == values
            assert [each.raw for each in view.raw][0::3] == [b"\xff\x00 plain", b"new"]
            table = view.to_arrow().to_pylist()
            assert [row["value"] for row in table] == [None, '{"a":1}', '"é"', None, None, None]
            assert [row["key"] for row in table] == [subject] * 6


async def test_headers_are_those_of_the_message(js: JetStream) -> None:
    async with foreign(js) as stream:
        await js.publish(f"{stream.name}.a", b"", headers={"Trace": "1", "Tag": ["x", "y"]})
        await js.publish(f"{stream.name}.b", b"", msg_id="once")
        await js.publish(f"{stream.name}.c", b"")
        async with await js.core_stream.over(stream) as view:
            headers = {"Trace": "1", "Tag": ["x", "y"]}
            assert view.headers(0) == view.raw[0].headers == headers
            assert view.headers_kv(f"{stream.name}.b") == {"Nats-Msg-Id": "once"}
            assert view.headers(2) is None


async def test_deleted_keys_of_a_bucket_have_no_value(js: JetStream) -> None:
    bucket = await js.kv.create(new_stream())
    name = f"KV_{bucket.name}"
    try:
        await bucket.put("a", b"1")
        await bucket.put("b", b"2")
        await bucket.delete("a")
        async with await js.core_stream.over(name) as view:
            assert view.get_all_kv() == {f"$KV.{bucket.name}.b": b"2"}
            await bucket.delete("b")
            await until(lambda: not view.kv)
            assert view.get_all() == [None, None]
    finally:
        await js.streams.delete(name)


@pytest.mark.parametrize("write", WRITES)
async def test_writes_are_refused_with_403_and_the_way_out(js: JetStream, write: str) -> None:
    async with foreign(js) as stream:
        await send(js, stream.name, "a")
        async with await js.core_stream.over(stream) as view:
            with pytest.raises(ReadOnlyStreamError, match=stream.name) as caught:
                await WRITES[write](view)
            assert conat_code(caught.value) == 403
            assert "js.publish" in caught.value.hint
            for each in ("encoding", "tombstone"):
                with pytest.raises(ReadOnlyStreamError):
                    getattr(view, each)("a")
            assert (await stream.info()).state.messages == 1
            assert view.msg_ids == frozenset()


async def test_questions_have_answers(js: JetStream) -> None:
    async with foreign(js, max_msgs=7, max_age=3600, discard="new") as stream:
        await send(js, stream.name, "a", "b")
        async with await js.core_stream.over(stream) as view:
            config = await view.config()
            assert (config.max_msgs, config.max_age, config.discard_policy) == (7, 3_600_000, "new")
            inventory = await view.inventory()
            assert (inventory.count, inventory.seq, inventory.is_exact) == (2, 2, True)
            assert view.stats().bytes == 2


async def test_a_large_first_sequence_and_holes_are_no_messages_to_wait_for(js: JetStream) -> None:
    first = 10**15
    async with foreign(js, first_seq=first) as stream:
        async with await js.core_stream.over(stream) as view:
            assert (len(view), view.seqs()) == (0, [])
            await send(js, stream.name, *"abcde")
            await until(lambda: len(view) == 5)
        for seq in (first, first + 2, first + 4):
            await stream.delete_message(seq)
        async with await js.core_stream.over(stream) as view:
            assert view.seqs() == [first + 1, first + 3]
            await send(js, stream.name, "f")
            await until(lambda: len(view) == 3)
            assert view.seqs() == [first + 1, first + 3, first + 5]


async def test_a_later_start_loads_later_messages_and_load_the_others(js: JetStream) -> None:
    async with foreign(js) as stream:
        await send(js, stream.name, *"abcd")
        async with await js.core_stream.over(stream, start_seq=3) as view:
            changes = heard(view)
            assert (view.get_all(), view.start_seq) == ([b"c", b"d"], 3)
            await view.load(start_seq=0)
            assert view.get_all() == [b"a", b"b", b"c", b"d"]
            await send(js, stream.name, "e")
            await until(lambda: len(view) == 5)
            assert [each.seq for each in changes] == [1, 2, 5]


@pytest.mark.parametrize("count", [1, 2])
async def test_filters_leave_other_subjects_out(js: JetStream, count: int) -> None:
    async with foreign(js) as stream:
        name = stream.name
        wanted = [f"{name}.a.*", f"{name}.b"][:count]
        await send(js, name, "a.1", "no.1", "a.2", "no.2", *["b"] * (count - 1))
        async with await js.core_stream.over(name, filters=wanted, look_every=LOOK_EVERY_S) as view:
            changes = heard(view)
            assert [each.key for each in view.raw] == [
                f"{name}.{each}" for each in ("a.1", "a.2", "b")[: count + 1]
            ]
            await send(js, name, "no.3", "a.3", "no.4")
            await until(lambda: view.get(-1) == b"a.3")
            await stream.delete_message(3)
            await stream.delete_message(4)
            await until(lambda: f"{name}.a.2" not in view.kv)
            assert [each.seq for each in changes] == [6 + count - 1, 3]
            assert view.get_all() == [b"a.1", *[b"b"] * (count - 1), b"a.3"]
            assert not (await view.inventory()).is_exact


async def test_a_mirror_is_followed_as_it_is(js: JetStream) -> None:
    """It keeps the headers of its origin, and does not act on them."""
    async with (
        foreign(js, allow_rollup_hdrs=True, allow_msg_ttl=True) as origin,
        foreign(js, mirror={"name": origin.name}) as mirror,
        await js.core_stream.over(mirror, look_every=LOOK_EVERY_S) as view,
    ):
        changes = heard(view)
        subject = f"{origin.name}.a"
        await js.publish(subject, b"1")
        await js.publish(subject, b"2", ttl=60)
        await until(lambda: len(view) == 2)
        await js.publish(subject, b"3", rollup="subject")
        await until(lambda: len(view) == 3)
        for _ in range(3):
            await view.config()  # Each compares the arrays with the stream.
        assert await until_same(view, mirror) == [1, 2, 3]
        assert [each.is_removal for each in changes] == [False] * 3
        assert [each.sequence async for each in origin.read()] == [3]


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
async def test_a_stream_that_consumers_empty_is_refused_and_its_mirror_is_not(
    js: JetStream, retention: str
) -> None:
    async with foreign(js, retention=retention) as origin:
        await origin.consumers.create("worker", ack_policy="explicit")
        await send(js, origin.name, "a", "b")
        with pytest.raises(UsageError, match=retention) as caught:
            await js.core_stream.over(origin)
        assert "mirror" in caught.value.hint
        async with (
            foreign(js, mirror={"name": origin.name}) as mirror,
            await js.core_stream.over(mirror) as view,
        ):
            await send(js, origin.name, "c")
            await until(lambda: view.get_all() == [b"a", b"b", b"c"])
            assert (await origin.info()).state.messages == 3


async def test_records_of_producers_are_no_data(js: JetStream) -> None:
    """Also those of the first producer, which comes when the stream is open."""
    async with (
        foreign(js) as stream,
        await js.core_stream.over(stream, look_every=LOOK_EVERY_S) as view,
    ):
        changes = heard(view)
        await send(js, stream.name, "a")
        for number in range(2):
            async with await js.producer(
                stream.name, f"p{number}", subject=f"{stream.name}.b", update_stream=True
            ) as producer:
                await producer.append_wait(b"%d" % number)
        await until(lambda: len(view) == 3)
        held = [each.subject async for each in stream.read(control=True, on_loss="report")]
        assert len(held) > 3
        for _ in range(2):
            await view.config()
        assert view.get_all() == [b"a", b"0", b"1"]
        assert [each.is_removal for each in changes] == [False] * 3
        async with await js.core_stream.over(stream) as late:
            assert late.get_all() == view.get_all()


async def test_a_stream_of_another_context_is_read_there(server: NatsNode, js: JetStream) -> None:
    async with foreign(js) as stream, connect(server.url) as other:
        async with await other.core_stream.over(stream) as view:
            await send(js, stream.name, "a")
            await until(lambda: view.get_all() == [b"a"])
        cached = stream.cached.state.messages
        assert cached == 0, "the caller's object stays as it was"


async def test_wrong_arguments_are_refused(js: JetStream) -> None:
    over = js.core_stream.over
    with pytest.raises(StreamNotFoundError):
        await over(new_stream())
    async with foreign(js) as stream:
        for wrong in (
            {"look_every": 0},
            {"look_every": -1},
            {"look_every": "1"},
            {"start_seq": -1},
        ):
            with pytest.raises(ConfigError):
                await over(stream, **wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(SubjectError):
            await over(stream, filters=["a b"])
        with pytest.raises(ConfigError, match="stream"):
            await over(7)  # pyright: ignore[reportArgumentType]
        for wrong in (0, -1, float("nan"), "1"):
            with pytest.raises(ConfigError, match="look_every"):
                await js.core_stream("x", look_every=wrong)  # pyright: ignore[reportArgumentType]
            with pytest.raises(ConfigError, match="look_every"):
                await js.dkv("x", look_every=wrong)  # pyright: ignore[reportArgumentType]
