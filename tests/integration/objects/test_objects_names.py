"""Names of every kind: refused with a typed error, or stored, and never another object touched."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from natsstream import connect
from natsstream.errors import ObjectExistsError, ObjectNameError, ObjectNotFoundError
from natsstream.objects.store_subjects import StoreSubjects

if TYPE_CHECKING:
    from natsstream import ObjectStore, ObjectWatch
    from natsstream.testing import NatsNode

HOSTILE = [
    "*", ">", "a.*", "..", ".", "$O.x.C.>", "a b", "a/b", "/", "\r\n", "\x00", "", "\ud800",
    "\udcff", "💾", "é", "e\u0301", "name" * 256, "n" * 4_000, "<&>", "\u2028", "=", "_w==",
    "\x7f", "\x85",
]  # fmt: skip
# Few enough that steps meet each other.
NAMES = st.sampled_from(HOSTILE) | st.text(max_size=1)
SETTINGS = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Step:
    """One call."""

    verb: str
    name: str
    other: str
    data: bytes


STEPS = st.builds(
    Step,
    verb=st.sampled_from(["put", "put", "delete", "rename", "update"]),
    name=NAMES,
    other=NAMES,
    data=st.binary(max_size=5),
)


def is_legal(name: str, subjects: StoreSubjects) -> bool:
    """Return True if a text is a legal name."""
    try:
        return 0 < len(name.encode()) <= subjects.name_bytes_max
    except UnicodeEncodeError:
        return False


class Model:
    """A model of a store, as a dict.

    Attributes:
        objects: The bytes of what is there.
        marked: Deleted objects with a marker.
    """

    def __init__(self, subjects: StoreSubjects) -> None:
        self._subjects = subjects
        self.objects: dict[str, bytes] = {}
        self.marked: set[str] = set()

    def do(self, step: Step) -> type[Exception] | None:
        """Do a step; returns what the store must raise."""
        used = [step.name, step.other] if step.verb == "rename" else [step.name]
        if not all(is_legal(name, self._subjects) for name in used):
            return ObjectNameError
        if step.verb == "put":
            self.objects[step.name] = step.data
            self.marked.discard(step.name)
            return None
        if step.verb == "rename":
            return self._rename(step.name, step.other)
        if step.verb == "delete" and step.name in self.marked:
            return None
        if step.name not in self.objects:
            return ObjectNotFoundError
        if step.verb == "delete":
            del self.objects[step.name]
            self.marked.add(step.name)
        return None

    def _rename(self, old: str, new: str) -> type[Exception] | None:
        if old == new:
            return ObjectNameError
        if old not in self.objects:
            return ObjectNotFoundError
        if new in self.objects:
            return ObjectExistsError
        self.objects[new] = self.objects.pop(old)
        self.marked.discard(new)
        return None


async def do(box: ObjectStore, step: Step) -> None:
    """Do a step to a store."""
    if step.verb == "put":
        await box.put(step.name, step.data)
    elif step.verb == "delete":
        await box.delete(step.name)
    elif step.verb == "update":
        await box.update(step.name, description="updated")
    else:
        await box.rename(step.name, step.other)


async def fold(watch: ObjectWatch, until: str) -> set[str]:
    """Return the names that a watch has told of, up to one."""
    names: set[str] = set()
    async for info in watch:
        names.discard(info.renamed_from)
        (names.discard if info.deleted else names.add)(info.name)
        if info.name == until:
            break
    return names


async def compare(url: str, steps: list[Step]) -> None:
    """Do steps to a store and to the model: they must agree, and a watch must have seen it."""
    bucket = f"names-{uuid.uuid4().hex}"
    async with connect(url) as js:
        box = await js.objects.create(bucket, storage="memory")
        model = Model(StoreSubjects(bucket))
        async with box.watch() as watch:
            for step in steps:
                error = model.do(step)
                if error is None:
                    await do(box, step)
                else:
                    with pytest.raises(error):
                        await do(box, step)
            await box.put("the end", b"")
            assert await fold(watch, "the end") == {*model.objects, "the end"}
        await box.delete("the end")

        infos = [info async for info in box.list(include_deleted=True)]
        assert {info.name for info in infos if not info.deleted} == model.objects.keys()
        assert {info.name for info in infos if info.deleted} == {*model.marked, "the end"}
        for name, data in model.objects.items():
            assert await box.get(name) == data
        await js.objects.delete(bucket)


@SETTINGS
@given(steps=st.lists(STEPS, min_size=1, max_size=15))
def test_a_store_does_what_a_dict_does(server: NatsNode, steps: list[Step]) -> None:
    asyncio.run(compare(server.url, steps))


def test_every_byte_and_every_hostile_name_is_its_own_object(server: NatsNode) -> None:
    fours = ("".join(map(chr, range(first, first + 4))) for first in range(0, 256, 4))
    names = sorted({*fours, *HOSTILE})

    asyncio.run(
        compare(
            server.url, [Step("put", name, "", name.encode(errors="replace")[:9]) for name in names]
        )
    )
