"""A listing reports the views that servers cannot describe, by their own names."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream._wire.endings import Endings
from natsstream.errors import ConfigError, UnavailableError
from natsstream.kv.manager import KeyValueManager
from natsstream.objects.manager import ObjectStoreManager

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Manager = type[ObjectStoreManager] | type[KeyValueManager]


class Streams:
    """A list of streams that lacks some, as `js.streams.list` returns it."""

    def __init__(self, **lacking: Any) -> None:
        self.missing: tuple[str, ...] = lacking.get("missing", ())
        self.offline: dict[str, str] = lacking.get("offline", {})

    def list(self, **_: object) -> Streams:
        """Return itself, as for every question."""
        return self

    async def __aiter__(self) -> AsyncIterator[object]:
        for each in ():
            yield each


def listing(kind: Manager, on_missing: str, **lacking: Any) -> Any:
    """Return a listing over streams of which some are lacking."""
    js: Any = SimpleNamespace(streams=Streams(**lacking))
    given: Any = on_missing
    return kind(js, Endings()).list(on_missing=given)


async def read(statuses: Any) -> list[object]:
    """Return all that is listed."""
    return [status async for status in statuses]


BOTH = pytest.mark.parametrize(
    ("kind", "prefix", "what"),
    [(ObjectStoreManager, "OBJ_", "object stores"), (KeyValueManager, "KV_", "buckets")],
)


@BOTH
def test_what_is_lacking_ends_the_loop_with_an_error(kind: Manager, prefix: str, what: str) -> None:
    found = listing(kind, "raise", missing=("other", f"{prefix}a"))

    with pytest.raises(UnavailableError, match=f"{what} lacks 1: a") as caught:
        asyncio.run(read(found))

    assert caught.value.retryable
    assert found.missing == ("a",)


@BOTH
def test_what_no_server_can_run_is_told_with_its_reason(
    kind: Manager, prefix: str, what: str
) -> None:
    found = listing(kind, "raise", offline={f"{prefix}a": "too new", "other": "too old"})

    with pytest.raises(UnavailableError, match=what) as caught:
        asyncio.run(read(found))

    assert (caught.value.retryable, caught.value.detail) == (False, "a: too new")


@BOTH
def test_reporting_ends_no_loop(kind: Manager, prefix: str, what: str) -> None:
    del what
    found = listing(kind, "report", missing=(f"{prefix}a",), offline={f"{prefix}b": "why"})

    assert asyncio.run(read(found)) == []
    assert (found.missing, found.offline) == (("a",), {"b": "why"})


@BOTH
def test_streams_that_are_none_of_them_are_nobodys_concern(
    kind: Manager, prefix: str, what: str
) -> None:
    del prefix, what
    assert asyncio.run(read(listing(kind, "raise", missing=("other",)))) == []


@BOTH
def test_another_word_is_refused(kind: Manager, prefix: str, what: str) -> None:
    del prefix, what
    with pytest.raises(ConfigError):
        listing(kind, "rise")
