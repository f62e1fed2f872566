"""Chains: what is written verifies, and each attack is named where it happened.

An attack is what somebody can do who may write to the stream and delete from it: messages are
taken, changed, and stored again in a stream of their own.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import ChainHead
from natsstream.errors import (
    ChainBrokenError,
    ConfigError,
    HeaderError,
    StreamSealedError,
    SubjectError,
    UsageError,
)
from tests.support.chains import KEY, Copy, chain_of, copied
from tests.support.clusters import connect_to
from tests.support.eventually import POLL_S, eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream, Stream
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio


async def tampered(
    js: JetStream, stream: Stream, change: Callable[[list[Copy]], list[Copy]]
) -> Stream:
    """Return another stream of the same subjects, into which somebody has stored other messages."""
    copies = change([copied(message) async for message in stream.read()])
    subjects = list(stream.cached.config.subjects or ())
    await stream.delete()
    made = await js.streams.ensure(f"{stream.name}_f", subjects=subjects, duplicate_window=0.1)
    for subject, headers, data in copies:
        # The stream would take a copy for a second try.
        kept = {
            name: value for name, value in headers.items() if not name.startswith("Nats-Expected")
        }
        await publish_anew(js, (subject, kept, data))
    return made


async def publish_anew(js: JetStream, copy: Copy) -> None:
    """Store a message again; the server forgets message ids by time alone."""
    subject, headers, data = copy
    while (await js.publish(subject, data, headers=headers)).duplicate:
        await asyncio.sleep(POLL_S)


def swap_payload(copies: list[Copy]) -> list[Copy]:
    subject, headers, _ = copies[3]
    return [*copies[:3], (subject, headers, b"forged"), *copies[4:]]


def remove(copies: list[Copy]) -> list[Copy]:
    return [*copies[:3], *copies[4:]]


def reorder(copies: list[Copy]) -> list[Copy]:
    return [*copies[:3], copies[4], copies[3], *copies[5:]]


def replay(copies: list[Copy]) -> list[Copy]:
    subject, headers, data = copies[1]
    again = {**headers, "Nats-Msg-Id": ["another"]}
    return [*copies[:4], (subject, again, data), *copies[4:]]


def replay_with_own_id(copies: list[Copy]) -> list[Copy]:
    return [*copies[:4], copies[1], *copies[4:]]


def move(copies: list[Copy]) -> list[Copy]:
    subject, headers, data = copies[3]
    return [*copies[:3], (f"{subject}.moved", headers, data), *copies[4:]]


def add_header(copies: list[Copy]) -> list[Copy]:
    subject, headers, data = copies[3]
    return [*copies[:3], (subject, {**headers, "X": ["1"]}, data), *copies[4:]]


def double_header(copies: list[Copy]) -> list[Copy]:
    subject, headers, data = copies[3]
    writers = [*headers["Chain-Writer"], "w2"]
    return [*copies[:3], (subject, {**headers, "Chain-Writer": writers}, data), *copies[4:]]


def drop_first(copies: list[Copy]) -> list[Copy]:
    return copies[1:]


def rename_writer(copies: list[Copy]) -> list[Copy]:
    subject, headers, data = copies[3]
    return [*copies[:3], (subject, {**headers, "Chain-Writer": ["w2"]}, data), *copies[4:]]


@pytest.mark.sampled_variants
@pytest.mark.proves("1a", 'seal, deny_delete, deny_purge ("immutable sets")')
@pytest.mark.parametrize(
    ("attack", "sequence", "kind", "writer"),
    [
        (swap_payload, 4, "content", "w1"),
        (remove, 4, "missing", "w1"),
        (reorder, 4, "missing", "w1"),
        (replay, 5, "content", "w1"),
        (replay_with_own_id, 5, "replayed", "w1"),
        (move, 4, "content", "w1"),
        (add_header, 4, "content", "w1"),
        (double_header, 4, "malformed", "w1"),
        (drop_first, 1, "missing", "w1"),
        (rename_writer, 4, "content", "w2"),
    ],
)
async def test_attack_is_named_where_it_happened(
    js: JetStream,
    stream_name: str,
    attack: Callable[[list[Copy]], list[Copy]],
    sequence: int,
    kind: str,
    writer: str,
) -> None:
    stream = await chain_of(js, stream_name)
    assert (await stream.verify_chain(key=KEY)).links == 6

    forged = await tampered(js, stream, attack)

    with pytest.raises(ChainBrokenError) as caught:
        await forged.verify_chain(key=KEY)
    error = caught.value
    assert (error.sequence, error.kind, error.writer) == (sequence, kind, writer)


async def test_message_that_is_changed_and_stored_again_at_the_end_is_found(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name)
    message = await stream.get(3)
    assert message is not None
    subject, headers, _ = copied(message)
    await stream.delete_message(3)
    headers.pop("Nats-Msg-Id")

    await js.publish(subject, b"forged", headers=headers)

    report = await stream.verify_chain(key=KEY, on_break="report")
    assert [(each.sequence, each.kind) for each in report.breaks] == [(4, "missing")]
    assert not report.is_intact


async def test_first_link_again_is_a_break_even_where_its_hash_is_right(
    js: JetStream, stream_name: str
) -> None:
    # Without a key, anybody can make a right hash.
    # An update to a short window may leave the server's timer at the long one.
    stream = await chain_of(js, stream_name, key=None, duplicate_window=0.1)
    first = await stream.get(1)
    assert first is not None
    await publish_anew(js, copied(first))

    with pytest.raises(ChainBrokenError) as caught:
        await stream.verify_chain()

    assert (caught.value.sequence, caught.value.kind) == (7, "restarted")


async def test_lost_tail_shows_only_with_its_head(js: JetStream, stream_name: str) -> None:
    stream = await chain_of(js, stream_name)
    head = (await stream.verify_chain(key=KEY)).heads["w1"]
    await stream.delete_message(6)

    assert (await stream.verify_chain(key=KEY)).is_intact
    with pytest.raises(ChainBrokenError) as caught:
        await stream.verify_chain(key=KEY, head={"w1": head})

    assert (caught.value.sequence, caught.value.kind) == (0, "tail")


async def test_chain_made_anew_without_a_key_shows_only_with_its_head(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name, key=None)
    head = (await stream.verify_chain()).heads["w1"]
    await stream.delete()
    other = await chain_of(js, stream_name, count=5, key=None)
    async with other.chained(writer="w1") as chain:
        await chain.send(f"{stream_name}.0", b"another last link")

    assert (await other.verify_chain()).is_intact
    with pytest.raises(ChainBrokenError) as caught:
        await other.verify_chain(head={"w1": head})

    assert (caught.value.sequence, caught.value.kind) == (6, "head")


@pytest.mark.parametrize("key", [None, KEY[::-1]])
async def test_another_key_does_not_verify(
    js: JetStream, stream_name: str, key: bytes | None
) -> None:
    stream = await chain_of(js, stream_name)

    with pytest.raises(ChainBrokenError) as caught:
        await stream.verify_chain(key=key)

    assert (caught.value.sequence, caught.value.kind) == (1, "content")
    with pytest.raises(ChainBrokenError):
        async with stream.chained(writer="w1", key=key):
            pass


async def test_writers_have_chains_of_their_own(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    async with (
        stream.chained(writer="w1", key=KEY) as one,
        stream.chained(writer="w2", key=KEY) as two,
    ):
        for number in range(5):
            await asyncio.gather(
                one.send(f"{stream_name}.{number}", b"1"), two.send(f"{stream_name}.x", b"2")
            )
    broken = [each.sequence async for each in stream.read() if each.headers["Chain-Writer"] == "w2"]
    await stream.delete_message(broken[1])

    report = await stream.verify_chain(key=KEY, on_break="report")

    assert [(each.writer, each.sequence, each.kind) for each in report.breaks] == [
        ("w2", broken[2], "missing")
    ]
    assert report.heads["w1"].count == 5
    assert (await stream.verify_chain(key=KEY, writers=["w1"])).links == 5


async def test_first_links_that_limits_removed_need_a_head_to_begin_behind(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name, 3)
    head = (await stream.verify_chain(key=KEY)).heads["w1"]
    async with stream.chained(writer="w1", key=KEY) as chain:
        for _ in range(3):
            await chain.send(f"{stream_name}.0", b"x")
    await stream.purge(last_seq=2)

    with pytest.raises(ChainBrokenError):
        await stream.verify_chain(key=KEY)
    report = await stream.verify_chain(key=KEY, since={"w1": head})

    assert (report.links, report.heads["w1"].count) == (3, 6)


async def test_sealed_chain_verifies_and_takes_no_link(js: JetStream, stream_name: str) -> None:
    stream = await chain_of(js, stream_name)
    await stream.seal()

    assert (await stream.verify_chain(key=KEY)).links == 6
    async with stream.chained(writer="w1", key=KEY) as chain:
        with pytest.raises(StreamSealedError):
            await chain.send(f"{stream_name}.0", b"")


async def test_chain_verifies_on_a_mirror(js: JetStream, stream_name: str) -> None:
    await chain_of(js, stream_name)
    mirror = await js.streams.ensure(f"{stream_name}_m", mirror={"name": stream_name})

    await eventually_async(lambda: has_all(mirror))


async def has_all(stream: Stream) -> bool:
    """Return True if all six links are stored; the stored ones must verify."""
    return (await stream.verify_chain(key=KEY)).links == 6


async def test_chain_on_a_replicated_stream(nats_cluster: NatsCluster, stream_name: str) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await chain_of(js, stream_name, replicas=3)
        async with stream.chained(writer="w1", key=KEY, exclusive=True) as chain:
            for number in range(5):
                await chain.send(f"{stream_name}.{number % 2}", b"more")

        assert (await stream.verify_chain(key=KEY)).links == 11
        await stream.delete()


@pytest.mark.parametrize(
    "arguments",
    [
        {"writer": ""},
        {"writer": "a b"},
        {"writer": 3},
        {"writer": "w" * 65},
        {"writer": "w", "key": "text"},
        {"writer": "w", "key": b"short"},
        {"writer": "w", "filters": "a"},
        {"writer": "w", "exclusive": 1},
        {"writer": "w", "resume": ChainHead("other")},
        {"writer": "w", "resume": 3},
    ],
)
async def test_wrong_arguments_are_refused_and_keys_are_not_shown(
    js: JetStream, stream_name: str, arguments: dict[str, Any]
) -> None:
    stream = await fill(js, stream_name, 0)

    with pytest.raises(ConfigError) as caught:
        stream.chained(**arguments)

    assert "short" not in str(caught.value)


async def test_what_a_chain_can_not_carry_is_refused(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 0)
    chain = stream.chained(writer="w1")

    with pytest.raises(UsageError):
        await chain.send(f"{stream_name}.0", b"")
    async with chain:
        for name in ("Chain-Hash", "Nats-Msg-Id"):
            with pytest.raises(HeaderError):
                await chain.send(f"{stream_name}.0", b"", headers={name: "x"})
        with pytest.raises(SubjectError):
            await chain.send("a.*", b"")
        with pytest.raises(ConfigError):
            await chain.send(f"{stream_name}.0", "text")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="is closed"):
        await chain.send(f"{stream_name}.0", b"")
    for arguments in ({"since": 3}, {"head": {"w": replace(chain.head, writer="x")}}):
        with pytest.raises(ConfigError):
            await stream.verify_chain(**arguments)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="w1"):
        await stream.verify_chain(writers=["w"], head={"w1": ChainHead("w1")})


async def test_chain_verifies_where_a_source_has_copied_it(js: JetStream, stream_name: str) -> None:
    # Servers take the expectations off then, and say where a message is from.
    await chain_of(js, stream_name)
    copy = await js.streams.ensure(f"{stream_name}_s", sources=[{"name": stream_name}])

    await eventually_async(lambda: has_all(copy))
    first = await copy.get(1)
    assert first is not None
    assert "Nats-Stream-Source" in first.headers
