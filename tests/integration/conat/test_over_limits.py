"""What removes messages of a stream that is only read: limits, other programs, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream import UNDEFINED, connect
from natsstream.conat.configuration import Configuration
from natsstream.errors import InvalidConfigError
from natsstream.streams.manager import StreamManager
from tests.support.core_streams import (
    clients_by,
    create_without_feed,
    delete_foreign,
    heard,
    names_of,
    new_name,
    server_stream,
    until,
    until_equal,
    until_kv,
)
from tests.support.overs import LOOK_EVERY_S, foreign, send, until_same
from tests.support.streams import change

if TYPE_CHECKING:
    from natsstream import CoreStream, JetStream, Stream, StreamConfig
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

# A comparison that never comes: what follows is known without one.
NEVER_S = 3_600.0
WRITTEN = [*"abcab", *"aaaa", *"cbacb"]


async def fill(js: JetStream, stream: Stream, view: CoreStream) -> None:
    """Publish messages, each when the view has the one before."""
    for token in WRITTEN:
        ack = await js.publish(f"{stream.name}.{token}", token.encode())
        await until(lambda ack=ack: view.get(-1) is not UNDEFINED and view.seq(-1) == ack.sequence)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("discard", ["old", "new"])
@pytest.mark.parametrize(
    "limits",
    [
        {"max_msgs_per_subject": 1},
        {"max_msgs_per_subject": 2},
        {"max_msgs": 4},
        {"max_msgs": 2, "max_msgs_per_subject": 1},
        {"max_msgs": 4, "max_msgs_per_subject": 3},
    ],
    ids=str,
)
async def test_messages_beyond_a_limit_leave(
    js: JetStream, limits: dict[str, Any], discard: str
) -> None:
    if discard == "new":  # It refuses messages beyond `max_msgs`.
        limits = {name: each for name, each in limits.items() if name != "max_msgs"} or {
            "max_msgs": 99
        }
    is_compact = limits.get("max_msgs_per_subject") == 1 and "max_msgs" not in limits
    look_every = NEVER_S if is_compact else LOOK_EVERY_S
    async with (
        foreign(js, discard=discard, **limits) as stream,
        await js.core_stream.over(stream, look_every=look_every) as view,
    ):
        changes = heard(view)
        await fill(js, stream, view)
        held = [each.sequence async for each in stream.read()]
        if is_compact:
            assert view.seqs() == held
        await until(lambda: view.seqs() == held)
        assert not any(each.is_conflated for each in changes)
        assert [each.seq for each in changes if not each.is_removal] == [*range(1, 15)]


async def test_what_was_overwritten_unseen_is_one_change(js: JetStream) -> None:
    """The consumer comes to the newest value when it has the others behind it."""
    async with (
        foreign(js, max_msgs_per_subject=1) as stream,
        await js.core_stream.over(stream) as view,
    ):
        changes = heard(view)
        subject = f"{stream.name}.a"
        async with js.publisher() as publisher:
            for number in range(2_000):
                await publisher.send(subject, b"%d" % number)
        await until(lambda: view.get_kv(subject) == b"1999")
        seqs = [each.seq for each in changes]
        assert seqs == sorted(set(seqs))
        assert view.seqs() == [2_000]
        jumps = zip([0, *seqs], changes, strict=False)
        assert all(each.is_conflated == (each.seq > before + 1) for before, each in jumps)


async def test_messages_expire_at_their_moment(js: JetStream) -> None:
    async with (
        foreign(js, max_age=1, allow_msg_ttl=True) as stream,
        await js.core_stream.over(stream, look_every=NEVER_S) as view,
    ):
        changes = heard(view)
        await send(js, stream.name, "a", "b")
        await until(lambda: len(changes) == 4)
        assert [(each.seq, each.is_removal) for each in changes] == [
            (1, False),
            (2, False),
            (1, True),
            (2, True),
        ]
        assert (len(view), len(view.kv)) == (0, 0)


async def test_what_max_bytes_removes_is_found(js: JetStream) -> None:
    async with (
        foreign(js, max_bytes=600) as stream,
        await js.core_stream.over(stream, look_every=LOOK_EVERY_S) as view,
    ):
        await send(js, stream.name, *"abcabc", data=b"x" * 100)
        assert len(await until_same(view, stream)) < 6


async def test_other_programs_purge_and_delete(js: JetStream) -> None:
    async with (
        foreign(js) as stream,
        await js.core_stream.over(stream, look_every=LOOK_EVERY_S) as view,
    ):
        changes = heard(view)
        await send(js, stream.name, *"abcdef")
        await until(lambda: len(view) == 6)
        await stream.delete_message(3)
        await until(lambda: view.seqs() == [1, 2, 4, 5, 6])
        await stream.purge(last_seq=4)
        await until(lambda: view.seqs() == [5, 6])
        await stream.purge()
        await until(lambda: not view.seqs())
        await send(js, stream.name, "g")
        await until(lambda: view.seqs() == [7])
        assert [each.seq for each in changes if each.is_removal] == [3, 1, 2, 4, 5, 6]
        assert all(each.key for each in changes)


async def test_a_stream_that_is_deleted_and_created_again(js: JetStream) -> None:
    """Also one whose sequences are those of the stream before."""
    async with (
        foreign(js) as stream,
        await js.core_stream.over(stream.name, look_every=LOOK_EVERY_S) as view,
    ):
        changes = heard(view)
        await send(js, stream.name, "a", "b")
        await until(lambda: len(view) == 2)
        await js.streams.delete(stream.name)
        await until(lambda: len(view) == 0)
        async with foreign(js, stream.name):
            await send(js, stream.name, "c", "d")
            await until(lambda: view.get_all() == [b"c", b"d"])
            await send(js, stream.name, "e")
            await until(lambda: view.get_all() == [b"c", b"d", b"e"])
            assert view.seqs() == [1, 2, 3]
            await js.streams.delete(stream.name)
            async with foreign(js, stream.name):
                await send(js, stream.name, "f", "g", "h")
                await until(lambda: view.get_all() == [b"f", b"g", b"h"])
        assert view.error is None
        kept = [each.mesg for each in changes if not each.is_removal]
        assert kept == [bytes([each]) for each in b"abcdefgh"]
        assert sum(each.is_removal for each in changes) == 5


async def test_a_core_stream_without_a_feed_works_and_conflates(server: NatsNode) -> None:
    name = new_name()
    async with connect(server.url) as js:
        await create_without_feed(js, name)
    connections = [connect(server.url) for _ in range(2)]
    async with clients_by(connections, name=name, look_every=NEVER_S) as [one, two]:
        assert (one.conflates, two.conflates) == (True, True)
        stored = await one.publish("a")
        assert stored is not None
        assert stored.time == one.time(0)
        await two.set_kv("k", 1)
        await one.set_kv("k", 2)
        await until_equal(one, two, values=["a", 2])
        await two.delete(seq=1)
        await until_equal(one, two, values=[2])
        await one.delete_kv("k")
        await until_kv(one, two, values={})
        await one.config({"max_msgs": 5})
        assert (await server_stream(one)).cached.config.republish is None, "an operator's choice"
        big = b"x" * 1_500_000
        await two.publish(big)
        await until_equal(one, two, values=[None, big])


async def test_a_feed_that_comes_and_goes_is_used_and_missed(server: NatsNode) -> None:
    name = new_name()
    async with connect(server.url) as js:
        bare = await create_without_feed(js, name)
        connections = [connect(server.url) for _ in range(2)]
        async with clients_by(connections, name=name, look_every=LOOK_EVERY_S) as [one, two]:
            changes = heard(two)
            await one.publish(0)
            full = Configuration().to_stream(names_of(one))
            await js.streams.update(bare.name, republish=full.republish)
            await until(lambda: not one.conflates and not two.conflates)
            await one.publish(1)
            await until_equal(one, two, values=[0, 1])
            assert (await bare.info()).state.consumer_count == 0
            body = (await bare.info()).config.to_json()
            del body["republish"]
            await change(js, f"STREAM.UPDATE.{bare.name}", body)
            await until(lambda: one.conflates and two.conflates)
            await one.publish(2)
            await until_equal(one, two, values=[0, 1, 2])
            await delete_foreign(one, 1)
            await until_equal(one, two, values=[1, 2])
            assert [each.seq for each in changes] == [1, 2, 3, 1]


async def test_a_server_that_refuses_to_republish_gets_a_stream_without(
    js: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server of today does; one before 2.8.3 does not know the field."""
    create, name = StreamManager.create, new_name()

    async def refuse(self: StreamManager, config: StreamConfig) -> Stream:
        if config.republish is not None:
            raise InvalidConfigError("republish is refused", code=400, err_code=10052)
        return await create(self, config)

    monkeypatch.setattr(StreamManager, "create", refuse)
    async with await js.core_stream(name, no_cache=True) as stream:
        await stream.publish(1)
        assert (stream.conflates, stream.get_all()) == (True, [1])
    await js.core_stream.delete(name)


async def test_a_deletion_in_a_full_stream_evicts_nothing_here(js: JetStream) -> None:
    """The stream has room then: a message that is expected to go does not."""
    async with (
        foreign(js, max_msgs=3) as stream,
        await js.core_stream.over(stream, look_every=NEVER_S) as view,
    ):
        changes = heard(view)
        await send(js, stream.name, *"abc")
        await until(lambda: len(view) == 3)
        await stream.delete_message(2)
        await send(js, stream.name, "d")
        await until(lambda: view.get(-1) == b"d")
        assert view.seqs() == [1, 2, 3, 4]
        await view.config()
        assert view.seqs() == [1, 3, 4]
        assert [(each.seq, each.is_removal) for each in changes][3:] == [(4, False), (2, True)]


async def test_a_full_stream_is_compared_before_too_much_is_held(js: JetStream) -> None:
    async with (
        foreign(js, max_msgs=10) as stream,
        await js.core_stream.over(stream, look_every=NEVER_S) as view,
    ):
        async with js.publisher() as publisher:
            for number in range(3_000):
                await publisher.send(f"{stream.name}.a", b"%d" % number)
        await until(lambda: view.get(-1) == b"2999" and len(view) < 1_200)
