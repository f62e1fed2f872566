"""Mistakes of a first day: hints in the words of the door, names, pickles, reprs."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import blocking, connect
from natsstream.errors import ConfigError, NatsStreamError, UsageError, WrongRevisionError
from natsstream.testing import NatsServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream.testing import NatsNode

MISTAKES: dict[str, Callable[[Any, Any, str], object]] = {
    "publisher not open": lambda js, _, name: js.publisher().send(name),
    "flow not open": lambda _, stream, __: next(stream.consumers.ensure("c").consume()),
    "ordered not open": lambda _, stream, __: stream.ordered().next_seq,
    "watch not open": lambda js, _, name: js.kv.ensure(name).watch().revision,
    "no responders": lambda js, _, name: js.publish(f"{name}.nobody", b""),
    "batch not open": lambda _, stream, name: stream.batch().add(name),
    "core subscription not open": lambda js, _, __: next(js.core.subscribe("x")),
    "lock not held": lambda js, _, name: js.kv.ensure(name).lock("a").check(),
    "no bucket": lambda js, _, name: js.kv.get(f"{name}_none"),
    "no stream": lambda js, _, name: js.streams.get(f"{name}_none"),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_blocking_hint_has_no_async_words(
    server: NatsNode, stream_name: str, mistake: Callable[[Any, Any, str], object]
) -> None:
    with blocking.connect(server.url) as js:
        stream = js.streams.ensure(stream_name)
        with pytest.raises(NatsStreamError) as caught:
            mistake(js, stream, stream_name)

    assert caught.value.hint
    assert re.search(r"\b(async|await)\b", str(caught.value)) is None


def test_blocking_loop_that_fails_hints_without_async_words(
    server: NatsNode, stream_name: str
) -> None:
    with blocking.connect(server.url) as js:
        stream: Any = js.streams.ensure(stream_name)
        with pytest.raises(NatsStreamError) as caught:
            list(stream.read(first_seq=5))

    assert re.search(r"\b(async|await)\b", str(caught.value)) is None


@pytest.mark.asyncio
async def test_name_of_nats_py_is_told_by_its_name_here(server: NatsNode) -> None:
    async with connect(server.url) as js:
        held: Any = js
        with pytest.raises(
            AttributeError, match=r"in natsstream: stream\.consumers\.ensure\(name\)"
        ):
            held.pull_subscribe("orders.>")
        with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
            held.nonsense()


@pytest.mark.asyncio
async def test_field_of_the_server_is_told_by_its_name_here(
    server: NatsNode, stream_name: str
) -> None:
    async with connect(server.url) as js:
        stream = await js.streams.ensure(stream_name)
        wrong: list[tuple[Any, str, str]] = [
            (stream.consumers.ensure, "filter_subject", "filters"),
            (stream.consumers.create, "opt_start_seq", "start_seq"),
            (js.streams.update, "num_replicas", "replicas"),
            (js.kv.ensure, "max_age", "ttl"),
        ]
        for call, theirs, ours in wrong:
            with pytest.raises(ConfigError) as caught:
                await call("a", **{theirs: 1})
            assert caught.value.hint.startswith(f"in natsstream: {ours}; ")


@pytest.mark.asyncio
async def test_what_uses_an_open_connection_says_that_it_cannot_be_pickled(
    server: NatsNode, stream_name: str
) -> None:
    async with connect(server.url) as js:
        stream = await js.streams.ensure(stream_name)
        consumer = await stream.consumers.ensure("c")
        await js.publish(stream_name, b"1")
        delivered = await consumer.next()
        bucket = await js.kv.ensure(stream_name)
        for held in (js, stream, consumer, delivered, bucket, js.publisher(), js.core):
            with pytest.raises(UsageError, match="cannot be pickled") as caught:
                pickle.dumps(held)
            assert "URL" in caught.value.hint


@pytest.mark.asyncio
async def test_no_repr_shows_a_payload(server: NatsNode, stream_name: str) -> None:
    secret = b"a secret that no log may show"
    async with connect(server.url) as js:
        stream = await js.streams.ensure(stream_name)
        consumer = await stream.consumers.ensure("c")
        await js.publish(stream_name, secret)
        bucket = await js.kv.ensure(stream_name)
        await bucket.put("a", secret)
        typed: Any = await js.kv.ensure(f"{stream_name}_T")
        shown = [
            js,
            stream,
            consumer,
            await stream.get(1),
            await consumer.next(),
            bucket,
            await bucket.get("a"),
            js.publisher(),
            js.dead_letters,
            typed,
        ]

    for each in shown:
        text = repr(each)
        assert len(text) < 300
        assert "secret" not in text
        assert "object at 0x" not in text
    assert repr(shown[6]) == f"<Entry {stream_name}/a revision 1, {len(secret)} bytes>"


@pytest.mark.asyncio
async def test_progress_of_an_empty_object_ends(
    server: NatsNode, stream_name: str, tmp_path: Path
) -> None:
    told: list[tuple[int, int | None]] = []

    def tell(done: int, size: int | None) -> None:
        told.append((done, size))

    async with connect(server.url) as js:
        box = await js.objects.ensure(stream_name)
        await box.put("empty", b"", progress=tell)
        await box.get_file("empty", tmp_path / "f", progress=tell)

    assert told == [(0, 0), (0, 0)]


@pytest.mark.asyncio
async def test_update_of_a_key_that_does_not_exist_says_so(
    server: NatsNode, stream_name: str
) -> None:
    async with connect(server.url) as js:
        bucket = await js.kv.ensure(stream_name)
        with pytest.raises(WrongRevisionError, match="key 'a' does not exist") as caught:
            await bucket.update("a", b"1", revision=77)

    assert caught.value.hint == "create(key, value) stores the first one"


def test_server_without_options_starts_without_complaints() -> None:
    with NatsServer() as own:
        assert "config has no values" not in own.log_tail(100)
