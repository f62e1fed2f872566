"""A list of an owner's maps and logs with their sizes; Conat's inventory."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias, get_args

from natsstream.arguments import check_choice, check_text, described
from natsstream.conat.core_stream import CoreStreamInventory
from natsstream.conat.dko import DKO
from natsstream.conat.dkv import DKV
from natsstream.conat.dstream import DStream
from natsstream.conat.saver import quiet_after
from natsstream.conat.shared import Release, is_last
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import json_text
from natsstream.errors import ConfigError, UsageError
from natsstream.units import NS_PER_MS, time_from_ns
from natsstream.values import from_json

INVENTORY_NAME = "CoCalc-Inventory"
"""The name of the map that holds it."""

StoreType: TypeAlias = Literal["kv", "stream"]


@dataclass(frozen=True, slots=True)
class InventoryItem:
    """A map or a log in the inventory.

    Attributes:
        name: Its name.
        type: "kv" or "stream".
        desc: Its description, any JSON value.
        created: When it was listed first, in UTC.
        last: When it was listed last, in UTC.
        bytes: Its logical bytes.
        count: Its messages.
        limits: The fields of its configuration that differ from their defaults.
        seq: Its last sequence.
    """

    name: str
    type: StoreType
    desc: Any
    created: datetime
    last: datetime
    bytes: int
    count: int
    limits: Mapping[str, object]
    seq: int


OpenStore = Callable[[InventoryItem], Awaitable[DKV | DStream | DKO]]


class Inventory:
    """The maps and logs that programs have listed; made by `js.inventory()`.

    Nothing is listed by itself: call `set` with the numbers that `inventory()` of a map or a log
    returns.

    Args:
        dkv: The map that holds it, open; it is closed with this object.
        open_store: Opens a map or a log that is listed.
        release: Counts one user less, and returns True for the last one.
    """

    def __init__(self, dkv: DKV, open_store: OpenStore, release: Release = is_last) -> None:
        self._dkv = dkv
        self._open_store = open_store
        self._is_closed = False
        self._release = release

    async def close(self) -> None:
        """Save and leave, as `DKV.close`."""
        if not self._is_closed and self._release():
            self._is_closed = True
            await self._dkv.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with quiet_after(kind):
            await self.close()

    def set(
        self, name: str, kind: StoreType, numbers: CoreStreamInventory, *, desc: Any = None
    ) -> None:
        """List a map ("kv") or a log ("stream"); None keeps its description."""
        if not isinstance(numbers, CoreStreamInventory):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
            raise ConfigError(
                f"numbers is {described(numbers)}", hint="give await store.inventory()"
            )
        key = _key(name, kind)
        before = self._dkv.get(key, {})
        now_ms = time.time_ns() // NS_PER_MS
        fields = {
            "desc": before.get("desc") if desc is None else desc,
            "last": now_ms,
            "created": before.get("created", now_ms),
            "bytes": numbers.bytes,
            "count": numbers.count,
            "limits": dict(numbers.limits),
            "seq": numbers.seq,
        }
        self._dkv.set(key, fields)

    def get(self, name: str, kind: StoreType | None = None) -> InventoryItem | None:
        """Return what is listed of a name; without a kind the map, or else the log."""
        kinds: tuple[StoreType, ...] = ("kv", "stream") if kind is None else (kind,)
        for each in kinds:
            fields = self._dkv.get(_key(name, each))
            if fields is not UNDEFINED:
                return _item(name, each, fields)
        return None

    def get_all(self, *, filter: str = "") -> list[InventoryItem]:  # noqa: A002 - Conat's word.
        """Return all items, the last listed first.

        Args:
            filter: Only those with this text in the name or the description, in any case.
        """
        places = [(_place(key), fields) for key, fields in self._dkv.get().items()]
        items = [_item(*place, fields) for place, fields in places if place is not None]
        wanted = check_text(filter, "filter").lower()
        found = [each for each in items if wanted in f"{json_text(each.desc)} {each.name}".lower()]
        return sorted(found, key=lambda each: each.last, reverse=True)

    async def get_stores(self, *, filter: str = "") -> list[DKV | DStream | DKO]:  # noqa: A002 - As above.
        """Open all items; each is to be closed.

        Cost: as for opening them one by one.
        """
        async with AsyncExitStack() as opened:
            stores = [
                await opened.enter_async_context(await self._open_store(item))
                for item in self.get_all(filter=filter)
            ]
            opened.pop_all()
        return stores

    def delete(self, name: str, kind: StoreType) -> None:
        """Take a map or a log from the list; `js.core_stream.delete` deletes the stream itself."""
        self._dkv.delete(_key(name, kind))

    async def save(self) -> None:
        """Save all changes; errors and cost as for `DKV.save`."""
        if self._is_closed:
            raise UsageError("the inventory is closed", hint="js.inventory() opens it again")
        await self._dkv.save()

    def ls(self, *, filter: str = "") -> str:  # noqa: A002 - As above.
        """Return a table of all items, a line each."""
        lines = [
            f"{each.type:6} {each.last:%Y-%m-%d %H:%M:%S} {each.count:>9,} messages"
            f" {each.bytes:>13,} bytes  {each.name}"
            for each in self.get_all(filter=filter)
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Inventory {self._dkv!r}>"


def _key(name: str, kind: StoreType) -> str:
    check_choice(kind, "kind", get_args(StoreType))
    return json_text({"name": name, "type": kind})


def _place(key: str) -> tuple[str, StoreType] | None:
    """Return name and kind of a key; None if another program wrote it."""
    try:
        fields = from_json(key)
    except (ValueError, RecursionError):
        return None
    match fields:
        case {"name": str(name), "type": "kv"}:
            return name, "kv"
        case {"name": str(name), "type": "stream"}:
            return name, "stream"
        case _:
            return None


def _item(name: str, kind: StoreType, fields: Mapping[str, Any]) -> InventoryItem:
    return InventoryItem(
        name,
        kind,
        fields.get("desc"),
        time_from_ns(fields.get("created", 0) * NS_PER_MS),
        time_from_ns(fields.get("last", 0) * NS_PER_MS),
        fields.get("bytes", 0),
        fields.get("count", 0),
        fields.get("limits") or {},
        fields.get("seq", 0),
    )
