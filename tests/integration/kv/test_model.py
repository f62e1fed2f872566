"""A bucket against a dict: any calls with any keys give what the model gives, or a typed error.

The model knows nothing of streams: keys, revisions, a history of some length, markers. Keys are
hostile on purpose; whatever a call does with one, no other key may change.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from natsstream import Base64Keys, blocking
from natsstream.errors import KeyExistsError, KeyNameError, WrongRevisionError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.testing import NatsCluster, NatsNode

HISTORY = 3
_numbers = count()

# Every byte, long keys, wildcards, dots, spaces, other alphabets; and few legal ones, so that calls
# meet on them.
LEGAL = st.sampled_from(["a", "b", "a.b", "A", "a/b=_-"])
HOSTILE = st.one_of(
    st.sampled_from(
        ["*", ">", "a.*", "a.>", "*.b", "", ".", "..", ".a", "a.", "a..b", "a b", " a", "a\n", "é",
         "$KV", "a\x00", "a\r\nPUB x 0\r\n", "x" * 5_000, "\U0001f600", "a*", "a>b", "a\\b", "a:b"]
    ),
    st.integers(0, 255).map(chr),
    st.text(max_size=5),
)  # fmt: skip
# One in six is hostile. `one_of` would make it three of four: it looks into what it is given.
KEYS = st.integers(0, 5).flatmap(lambda number: LEGAL if number else HOSTILE)


@dataclass
class Model:
    """What a bucket is: of each key its last records, each a revision with a value or None."""

    records: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)

    def last(self, key: str) -> tuple[int, bytes | None]:
        return self.records.get(key, [(0, None)])[-1]

    def write(self, key: str, revision: int, value: bytes | None) -> None:
        self.records[key] = [*self.records.get(key, []), (revision, value)][-HISTORY:]

    def live(self) -> dict[str, tuple[int, bytes]]:
        return {
            key: (revision, value)
            for key, ((revision, value),) in ((k, r[-1:]) for k, r in self.records.items())
            if value is not None
        }

    def matching(self, name: str) -> list[str]:
        """Return the keys with a value that a filter of the tests means."""
        chosen: dict[str, Callable[[str], bool]] = {
            ">": lambda _: True,
            "*": lambda key: "." not in key,
            "a.*": lambda key: key.startswith("a.") and key.count(".") == 1,
            "a.>": lambda key: key.startswith("a."),
            "b": lambda key: key == "b",
        }
        return [key for key in self.live() if chosen[name](key)]


class Pair:
    """A bucket and its model, doing the same."""

    def __init__(self, kv: blocking.KeyValue, *, takes: Callable[[str], bool]) -> None:
        self.kv = kv
        self.is_replicated = kv.config.replicas != 1
        self.model = Model()
        self.takes = takes

    def do(self, call: str, key: str, value: bytes, pick: int) -> None:
        if not self.takes(key):
            with pytest.raises(KeyNameError):
                getattr(self, call)(key, value, pick)
            return
        getattr(self, call)(key, value, pick)

    def put(self, key: str, value: bytes, _: int) -> None:
        self.model.write(key, self.kv.put(key, value), value)

    def create(self, key: str, value: bytes, _: int) -> None:
        revision, held = self.model.last(key)
        if held is None:
            self.model.write(key, self.kv.create(key, value), value)
            return
        with pytest.raises(KeyExistsError) as caught:
            self.kv.create(key, value)
        assert caught.value.revision == revision

    def update(self, key: str, value: bytes, pick: int) -> None:
        revision = self.model.last(key)[0]
        if pick % 2:
            self.model.write(key, self.kv.update(key, value, revision=revision), value)
            return
        with pytest.raises(WrongRevisionError) as caught:
            self.kv.update(key, value, revision=revision + 1)
        # A replicated bucket may not tell.
        assert caught.value.revision in ({revision, None} if self.is_replicated else {revision})

    def delete(self, key: str, _: bytes, pick: int) -> None:
        revision = self.model.last(key)[0]
        expected = revision if revision and pick % 2 else None
        self.model.write(key, self.kv.delete(key, revision=expected), None)

    def purge(self, key: str, _: bytes, pick: int) -> None:
        revision = self.model.last(key)[0]
        expected = revision if revision and pick % 2 else None
        self.model.records[key] = [(self.kv.purge(key, revision=expected), None)]

    def get(self, key: str, _: bytes, pick: int) -> None:
        """Read the newest value, and any revision of any key: of another one there is nothing."""
        every = [(name, *each) for name in self.model.records for each in self.model.records[name]]
        name, revision, value = every[pick % len(every)] if every else ("", 1, None)
        found = self.kv.get(key, revision=revision)
        assert (None if found is None else found.value) == (value if name == key else None)
        entry = self.kv.get(key, consistent=True)
        assert (None if entry is None else entry.value) == self.model.last(key)[1]

    def revert(self, key: str, _: bytes, pick: int) -> None:
        records = [each for each in self.model.records.get(key, []) if each[1] is not None]
        revision, value = records[pick % len(records)] if records else (0, None)
        if revision:
            self.model.write(key, self.kv.revert(key, revision), value)
        else:
            self.kv.get(key)

    def purge_matching(self, name: str) -> None:
        keys = self.model.matching(name)
        assert self.kv.purge_matching(name) == len(keys)
        marked = {entry.key: entry.revision for entry in self.kv.history(">")}
        for key in keys:
            self.model.records[key] = [(marked[key], None)]

    def purge_deletes(self) -> None:
        dead = [key for key in self.model.records if self.model.last(key)[1] is None]
        gone = sum(len(self.model.records.pop(key)) for key in dead)
        assert self.kv.purge_deletes(older_than=0) == gone

    def check(self) -> None:
        """Compare everything that the bucket has with everything that the model has."""
        if self.is_replicated:  # A replica may learn of a removal later than the leader.
            with suppress(AssertionError):
                eventually(lambda: self.told() == self.model.records, within_s=30)
        assert self.told() == self.model.records
        assert sorted(self.kv.keys()) == sorted(self.model.live())

    def told(self) -> dict[str, list[tuple[int, bytes | None]]]:
        told: dict[str, list[tuple[int, bytes | None]]] = {}
        for entry in self.kv.history():
            value = None if entry.is_deleted else entry.value
            told.setdefault(entry.key, []).append((entry.revision, value))
        return told


CALLS = st.sampled_from(["put", "create", "update", "delete", "purge", "get", "revert"])
SINGLE = st.tuples(CALLS, KEYS, st.sampled_from([b"", b"1", b"\x00\xff"]), st.integers(0, 30))
SWEEP = st.sampled_from([(">",), ("*",), ("a.*",), ("a.>",), ("b",), (), ()])
STEPS = st.lists(
    st.integers(0, 9).flatmap(lambda number: SINGLE if number else SWEEP), min_size=8, max_size=24
)


def is_plain(key: str) -> bool:
    """Tell whether a key is legal, by the longhand of ADR-6."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=/."
    return all(key.split(".")) and all(each in letters for each in key) and len(key) < 3_500


def is_coded(key: str) -> bool:
    return all(key.split(".")) and len(key) < 2_000


def run(pair: Pair, steps: list[tuple[object, ...]]) -> None:
    for step in steps:
        if len(step) > 1:
            pair.do(*step)  # pyright: ignore[reportArgumentType] - Hypothesis made it so.
        elif step:
            pair.purge_matching(str(step[0]))
        else:
            pair.purge_deletes()
    pair.check()


@pytest.fixture(scope="module")
def js(server: NatsNode) -> Iterator[blocking.JetStream]:
    with blocking.connect(server.url) as js:
        yield js


@pytest.fixture(scope="module")
def cluster_js(nats_cluster: NatsCluster) -> Iterator[blocking.JetStream]:
    with blocking.connect(nats_cluster.urls, request_timeout=30) as js:
        yield js


@settings(max_examples=20)
@given(steps=STEPS)
def test_bucket_is_a_dict_with_history(
    js: blocking.JetStream, steps: list[tuple[object, ...]]
) -> None:
    name = f"model_{next(_numbers)}"
    kv = js.kv.create(name, storage="memory", history=HISTORY)
    run(Pair(kv, takes=is_plain), steps)
    js.kv.delete(name)


@settings(max_examples=8)
@given(steps=STEPS)
def test_bucket_with_a_codec_is_a_dict_of_any_text(
    js: blocking.JetStream, steps: list[tuple[object, ...]]
) -> None:
    name = f"coded_{next(_numbers)}"
    plain = js.kv.create(name, storage="memory", history=HISTORY)
    run(Pair(plain.with_codec(keys=Base64Keys()), takes=is_coded), steps)
    js.kv.delete(name)


@settings(max_examples=5)
@given(steps=STEPS)
def test_bucket_of_three_replicas_is_a_dict_with_history(
    cluster_js: blocking.JetStream, steps: list[tuple[object, ...]]
) -> None:
    name = f"model_{next(_numbers)}"
    kv = cluster_js.kv.ensure(name, storage="memory", history=HISTORY, replicas=3)
    run(Pair(kv, takes=is_plain), steps)
    cluster_js.kv.delete(name)
