"""Watches and listings without async: the same calls in plain loops."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from natsstream.errors import BucketNotFoundError, ConfigError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.testing import NatsNode


@pytest.fixture
def js(server: NatsNode) -> Iterator[blocking.JetStream]:
    with blocking.connect(server.url) as context:
        yield context


def no_consumers_stay(kv: blocking.KeyValue) -> None:
    """Wait until they are gone; one that nobody deletes stays for a minute."""
    eventually(lambda: kv.stream.info().state.consumer_count == 0, within_s=30)


def test_watch_is_followed_in_plain_loops(js: blocking.JetStream, stream_name: str) -> None:
    kv = js.kv.create(stream_name, history=2, storage="memory")
    kv.put("a", b"1")
    kv.put("b", b"2")

    with kv.watch() as watch:
        first = [(entry.key, entry.value) for entry in watch.initial()]
        was_caught_up = watch.is_caught_up
        kv.delete("a")
        kv.put("end", b"")
        later: list[tuple[str, str]] = []
        for entry in watch:
            later.append((entry.key, entry.operation))
            if entry.key == "end":
                break
        revision = watch.revision

    assert first == [("a", b"1"), ("b", b"2")]
    assert was_caught_up
    assert later == [("a", "DEL"), ("end", "PUT")]
    assert revision == 4
    no_consumers_stay(kv)


def test_listings_are_plain_loops(js: blocking.JetStream, stream_name: str) -> None:
    kv = js.kv.create(stream_name, history=3, storage="memory")
    for key, value in (("a.1", b"1"), ("b.1", b"2"), ("a.1", b"3")):
        kv.put(key, value)

    assert list(kv.keys()) == ["b.1", "a.1"]
    assert list(kv.keys("a.*")) == ["a.1"]
    assert [entry.value for entry in kv.entries()] == [b"2", b"3"]
    assert [entry.revision for entry in kv.history("a.1")] == [1, 3]
    for _ in kv.keys(">"):
        break
    no_consumers_stay(kv)


def test_closing_ends_a_loop_in_another_thread(js: blocking.JetStream, stream_name: str) -> None:
    kv = js.kv.create(stream_name, storage="memory")
    watch = kv.watch()
    found: list[str] = []

    def follow() -> None:
        found.extend(entry.key for entry in watch)

    with watch:
        kv.put("a", b"1")
        reader = threading.Thread(target=follow)
        reader.start()
        eventually(lambda: watch.revision == 1, within_s=30)
    reader.join(timeout=30)

    assert not reader.is_alive()
    assert found == ["a"]


def test_mistakes_are_told_as_in_async_code(js: blocking.JetStream, stream_name: str) -> None:
    kv = js.kv.create(stream_name, storage="memory")

    with pytest.raises(ConfigError, match="two starts"):
        kv.watch(updates_only=True, include_history=True)
    js.kv.delete(stream_name)
    with pytest.raises(BucketNotFoundError):
        list(kv.keys())
