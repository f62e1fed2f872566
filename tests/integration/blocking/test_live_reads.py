"""What the loop changes is read at one moment, however other threads write."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from natsstream.errors import UsageError
from tests.support.core_streams import new_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from natsstream.testing import NatsServer

KEYS = 40
LOGGED = 3_000
READS_S = 1.5


@pytest.fixture
def often() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def check_raw(stream: blocking.CoreStream) -> None:
    raw = list(stream.raw)
    seqs = [each.seq for each in raw]
    assert seqs == sorted(set(seqs))
    keys = [each.key for each in raw if each.key is not None]
    assert len(keys) == len(set(keys)), "a key had two messages at one moment"


def check_messages(stream: blocking.CoreStream) -> None:
    values = stream.messages[:]
    numbers = [each for each in values if isinstance(each, int)]
    assert numbers == sorted(numbers)
    assert stream.messages != [*values, "another"]
    assert len([*reversed(stream.messages)]) > LOGGED // 2
    assert stream.messages.index(values[0]) >= 0


def check_keys(stream: blocking.CoreStream) -> None:
    for key, each in stream.kv.items():
        assert each.raw.key == key
        assert int(key) == each.mesg % KEYS
    assert {int(key) for key in stream.kv} <= set(range(KEYS))
    assert len([*stream.kv.values()]) <= KEYS
    assert stream.kv.get("missing") is None


def check_numbers(stream: blocking.CoreStream) -> None:
    assert stream.length >= stream.length_kv >= 0
    assert all(isinstance(each, str) for each in stream.msg_ids)
    assert len(stream) > 0
    assert len(stream[:]) > LOGGED // 2


@pytest.mark.sampled_variants
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("check", [check_raw, check_messages, check_keys, check_numbers])
def test_reads_are_of_one_moment_while_a_writer_hammers(
    fresh_server: NatsServer, check: Callable[[blocking.CoreStream], None]
) -> None:
    """Messages without a key fill the log, so that reading it takes a while."""
    has_to_stop = threading.Event()
    with (
        blocking.connect(fresh_server.url) as js,
        js.core_stream(new_name(), no_cache=True) as stream,
    ):
        stream.publish_many([blocking.PublishItem("x") for _ in range(LOGGED)])

        def write() -> None:
            number = 0
            while not has_to_stop.is_set():
                items: list[blocking.PublishItem] = []
                for _ in range(20):
                    options = blocking.PublishOptions(key=str(number % KEYS), msg_id=str(number))
                    items.append(blocking.PublishItem(number, options))
                    number += 1
                stream.publish_many(items)
                stream.delete(key=str(number % KEYS))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            end = time.monotonic() + READS_S
            while time.monotonic() < end:
                check(stream)
        finally:
            has_to_stop.set()
            writer.join()


def test_a_listener_reads_what_it_is_told_of(fresh_server: NatsServer) -> None:
    """It runs on the loop, where nothing changes meanwhile."""
    with (
        blocking.connect(fresh_server.url) as js,
        js.core_stream(new_name(), no_cache=True) as stream,
    ):
        seen: list[tuple[int, int, list[object]]] = []

        def listen(_: object) -> None:
            seen.append((stream.length, len(stream.raw), [*stream.messages]))

        stream.on("change", listen)
        stream.publish("a")
        stream.publish("b")
        assert seen == [(1, 1, ["a"]), (2, 2, ["a", "b"])]
        assert isinstance(stream.raw, Sequence)
        assert isinstance(stream.kv, Mapping)
        assert stream.messages == ["a", "b"]


def test_attributes_of_a_map_are_its_keys(fresh_server: NatsServer) -> None:
    with blocking.connect(fresh_server.url) as js, js.dkv(new_name()) as names:
        names.set("a", 1)
        assert names.a == 1
        assert (names["a"], len(names), [*names]) == (1, 1, ["a"])
        with pytest.raises(AttributeError):
            _ = names.missing
        names.b = 2
        del names.a
        assert [*names] == ["b"]
        with pytest.raises(UsageError, match="read only"):
            names.set = 3  # pyright: ignore[reportAttributeAccessIssue] - a method.
        with js.dko(new_name()) as users:
            users.ann = {"age": 41}
            assert users["ann"] == {"age": 41}
