"""Which keys of the map below are fields of an object, and the cost to know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from natsstream.conat.dko import DKO, ObjectChange
from natsstream.conat.dkv import DKV, KeyChange
from natsstream.conat.layer_events import LayerEvents
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import json_text

pytestmark = pytest.mark.asyncio


class CountedList(list[str]):
    """A list of fields that counts how often it is looked through."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return super().__iter__()


class MapBelow:
    """The values of a DKV without a stream."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.events = LayerEvents()

    @property
    def core(self) -> MapBelow:
        return self

    @property
    def error(self) -> None:
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def get(self, key: str) -> object:
        return self.values.get(key, UNDEFINED)

    def unsaved_changes(self) -> list[str]:
        return list(self.values)

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        self.events.on(event, listener)

    def store(self, key: str, value: object) -> None:
        """Store a value, or UNDEFINED for a deletion, and tell it."""
        self.values[key] = value
        if value is UNDEFINED:
            del self.values[key]
        self.events.emit("change", KeyChange(key, value, UNDEFINED, value is UNDEFINED))


def opened(below: MapBelow) -> tuple[DKO, list[ObjectChange]]:
    """Return an object over a map, and the changes that it tells."""
    changes: list[ObjectChange] = []
    dko = DKO("x", cast("DKV", below))
    dko.on("change", changes.append)
    return dko, changes


def path(key: str, field: str) -> str:
    return json_text([key, field])


async def test_the_fields_of_an_object_are_read_once_for_all_its_keys() -> None:
    below, names = MapBelow(), [f"f{number}" for number in range(100)]
    lists = {key: CountedList(names) for key in ("a", "b")}
    below.values.update(lists)
    for name in names:  # The fields of two objects stand mixed.
        below.values.update({path(key, name): 1 for key in lists})
    dko, _ = opened(below)

    assert dko.keys() == ["a", "b"]
    # Once for all fields, and once to see that the object is one.
    assert [each.looks for each in lists.values()] == [2, 2]
    assert len(dko.unsaved_changes()) == 200
    assert [each.looks for each in lists.values()] == [3, 3]


async def test_the_fields_of_an_object_are_read_once_for_all_its_changes() -> None:
    below, names = MapBelow(), [f"f{number}" for number in range(100)]
    _, changes = opened(below)
    listed = CountedList(names)
    below.store("a", listed)
    for name in names:
        below.store(path("a", name), 1)

    assert changes == [ObjectChange("a"), *(ObjectChange("a", name, 1) for name in names)]
    assert listed.looks == 1


async def test_a_change_is_that_of_a_field_only_while_the_object_has_it() -> None:
    below = MapBelow()
    _, changes = opened(below)
    like_a_path = path("a", "f")
    below.store(like_a_path, 1)
    below.store("a", ["f"])
    below.store(like_a_path, 2)
    below.store("a", ["g"])
    below.store(like_a_path, 3)
    below.store("a", UNDEFINED)
    below.store(path("a", "g"), 4)
    below.store(like_a_path, UNDEFINED)

    assert [each for each in changes if each.key != "a" or each.field is not None] == [
        ObjectChange(like_a_path),
        ObjectChange("a", "f", 2),
        ObjectChange(like_a_path),
        ObjectChange(path("a", "g")),
        ObjectChange("a", "f", UNDEFINED),
    ]
