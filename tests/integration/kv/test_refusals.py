"""What writes to a bucket refuse: no keys, no values, no room, no life times, no bucket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    KeyNameError,
    MessageRuleError,
    MessageTooLargeError,
    NoRespondersError,
    StreamFullError,
)
from natsstream.streams.stream import Stream
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream, StreamInfo

pytestmark = pytest.mark.asyncio


async def test_bucket_whose_subjects_others_have_changed_says_so(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    await js.streams.update(f"KV_{stream_name}", subjects=[f"{stream_name}.x"])
    with pytest.raises(NoRespondersError) as told:
        await kv.put("a", b"1")
    assert told.value.hint == (
        f"other clients changed the subjects of stream KV_{stream_name}: add '$KV.{stream_name}.>'"
    )

    await js.streams.update(f"KV_{stream_name}", subjects=[f"$KV.{stream_name}.>"])
    await kv.put("a", b"1")


@pytest.mark.proves("1d", "per-key TTL create / purge TTL")
async def test_life_time_that_the_server_would_raise_is_refused(
    js: JetStream, stream_name: str
) -> None:
    """With a history it would be the bucket's `limit_marker_ttl`, without a word."""
    kv = await js.kv.create(stream_name, limit_marker_ttl=60, history=2, storage="memory")

    for call in (kv.create("a", b"1", ttl=59), kv.purge("a", ttl=1), kv.purge_matching(">", ttl=9)):
        with pytest.raises(ConfigError, match="to its limit_marker_ttl, 60 s"):
            await call
    revision = await kv.create("a", b"1", ttl=60)
    stored = await kv.stream.get(revision)
    assert stored is not None
    assert stored.headers["Nats-TTL"] == "60"

    await js.publish(f"$KV.{stream_name}.b", b"", ttl=59)
    raised = await kv.stream.get(last_by_subject=f"$KV.{stream_name}.b")
    assert raised is not None
    assert raised.headers["Nats-TTL"] == "60"  # The server's doing, for which we refuse.


async def test_hints_at_a_life_time_hold_for_the_handle_that_is_open(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, history=5, storage="memory")
    with pytest.raises(MessageRuleError, match="TTL is disabled"):
        await kv.create("a", b"1", ttl=2)
    await js.kv.update(stream_name, limit_marker_ttl=60)
    with pytest.raises(ConfigError, match="to its limit_marker_ttl, 60 s"):
        await kv.create("a", b"1", ttl=2)
    with pytest.raises(ConfigError, match="keeps 5 revisions"):
        await kv.put("a", b"1", ttl=60)
    await js.kv.update(stream_name, history=1)

    await kv.put("a", b"1", ttl=2)


async def test_life_time_is_checked_by_what_others_have_made_of_the_bucket(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, limit_marker_ttl=60, storage="memory")
    await kv.put("a", b"1", ttl=60)
    await js.kv.update(stream_name, history=5)

    async def is_refused() -> bool:
        try:
            await kv.put("a", b"2", ttl=60)
        except ConfigError as error:
            return "the one before it would be there" in error.message
        return False

    await eventually_async(is_refused)


async def test_bucket_is_not_looked_up_for_each_life_time(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kv = await js.kv.create(stream_name, limit_marker_ttl=60, storage="memory")
    asked: list[float] = []
    info, now = Stream.info, asyncio.get_running_loop().time

    async def counted(self: Stream) -> StreamInfo:
        asked.append(now())
        return await info(self)

    monkeypatch.setattr(Stream, "info", counted)
    while len(asked) < 2:
        await asyncio.gather(*(kv.put(f"k{n}", b"1", ttl=60) for n in range(100)))
    assert asked[1] - asked[0] >= 1


async def test_locks_look_at_no_bucket_while_they_are_held(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that hangs would cost them their lease."""
    monkeypatch.setattr("natsstream.kv.ttl_check._KNOWN_S", 0)
    kv = await js.kv.create(stream_name, limit_marker_ttl=60, storage="memory")
    monkeypatch.setattr(Stream, "info", None)

    async with kv.lock("l", ttl=1) as lock:
        first = lock.token

        async def is_renewed() -> bool:
            entry = await kv.get("l")
            return entry is not None and entry.revision > first

        await eventually_async(is_renewed)


async def test_life_time_in_a_bucket_without_markers_says_what_is_missing(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")

    with pytest.raises(MessageRuleError) as caught:
        await kv.create("a", b"1", ttl=5)

    assert "limit_marker_ttl" in caught.value.hint
    assert await kv.get("a") is None


async def test_value_that_a_bucket_has_no_room_for_says_what_to_change(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, storage="memory", max_value_size=300, history=2)
    with pytest.raises(MessageTooLargeError) as too_large:
        await kv.put("a", b"x" * 400)
    await kv.put("a", b"1")
    await js.kv.update(stream_name, max_bytes=(await kv.status()).bytes)

    for call in (kv.put("b", b"1"), kv.delete("a"), kv.purge("a")):
        with pytest.raises(StreamFullError) as full:
            await call
        assert f"js.kv.update({stream_name!r}, max_bytes=" in full.value.hint

    assert f"js.kv.update({stream_name!r}, max_value_size=" in too_large.value.hint
    assert [entry.revision async for entry in kv.history()] == [1]


@pytest.mark.proves("1d", "key validation on every op")
@pytest.mark.parametrize("key", ["*", ">", "a.*", "a.>", "", ".a", "a.", "a..b", "a b", "é", "a\n"])
async def test_every_call_for_one_key_refuses_what_is_no_key(
    js: JetStream, stream_name: str, key: str
) -> None:
    """`purge(">")` once emptied a bucket of nats-py."""
    kv = await js.kv.create(stream_name, storage="memory", history=3)
    for number in range(3):
        await kv.put("a", b"%d" % number)
    state = (await kv.stream.info()).state

    for call in (
        kv.get(key), kv.get(key, revision=1), kv.put(key, b""), kv.create(key, b""),
        kv.update(key, b"", revision=1), kv.delete(key), kv.purge(key), kv.revert(key, 1),
    ):  # fmt: skip
        with pytest.raises(KeyNameError):
            await call

    assert (await kv.stream.info()).state == state


async def test_values_and_numbers_of_other_types_are_refused(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, storage="memory")

    for call in (
        kv.put("a", "text"),  # pyright: ignore[reportArgumentType] - The point of the test.
        kv.create("a", None),  # pyright: ignore[reportArgumentType] - As above.
        kv.get("a", revision=0),
        kv.get("a", consistent=1),  # pyright: ignore[reportArgumentType] - As above.
        kv.update("a", b"", revision=-1),
        kv.update("a", b"", revision=True),
        kv.delete("a", revision=0),
        kv.create("a", b"", ttl=0.5),
        kv.purge("a", ttl="soon"),  # pyright: ignore[reportArgumentType] - As above.
    ):
        with pytest.raises(ConfigError):
            await call
    assert (await kv.stream.info()).state.last_seq == 0


async def test_bucket_that_was_deleted_is_told_as_such(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, storage="memory")
    await js.kv.delete(stream_name)

    for call in (kv.get("a", consistent=True), kv.get("a", revision=1), kv.put("a", b"")):
        with pytest.raises(BucketNotFoundError):
            await call
