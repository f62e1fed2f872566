"""Opens the layers above core streams: `js.dstream`, `js.dkv`, `js.dko`, `js.akv` and others.

Law: calls with equal arguments share one object; a difference in any argument makes two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from natsstream.arguments import check_bool, check_plain
from natsstream.conat.akv import AKV
from natsstream.conat.astream import AStream
from natsstream.conat.change_feed import ChangeFeed
from natsstream.conat.core_stream import CoreStream
from natsstream.conat.dko import DKO, DKO_PREFIX
from natsstream.conat.dkv import DKV
from natsstream.conat.dstream import DStream
from natsstream.conat.inventory import INVENTORY_NAME, Inventory, InventoryItem
from natsstream.conat.layer_options import (
    CoreStreamArguments,
    LeaderArguments,
    cache_key,
    check_arguments,
    with_config,
)
from natsstream.conat.leader import LeaderStream
from natsstream.conat.manager import CoreStreams, options_of
from natsstream.conat.names import SERVICE
from natsstream.conat.shared import Release, SharedObjects, is_last
from natsstream.streams.jetstream import JetStreamContext

if TYPE_CHECKING:
    from natsstream.conat.unsaved_keys import Merge

# The tombstones of a map expire.
# Arguments of their own of what is saved later.
_SAVED = ("desc", "no_autosave")
_WITH_TTL: Mapping[str, object] = {"allow_msg_ttl": True}


class DStreams:
    """Opens logs; `js.dstream` is the only one of a context.

    Args:
        core_streams: Opens core streams.
    """

    def __init__(self, core_streams: CoreStreams) -> None:
        self._core_streams = core_streams
        self._shared: SharedObjects[DStream] = SharedObjects()

    async def __call__(
        self,
        name: str,
        *,
        desc: object = None,
        no_autosave: bool = False,
        **options: Unpack[CoreStreamArguments],
    ) -> DStream:
        """Open a log; it is created if it is missing.

        Calls with equal arguments share one object, which ends when each has closed it.

        Args:
            name: Any text; with `/` for folders.
            desc: A free description, any JSON value, to set in the configuration.
            no_autosave: Save only when `save` is called.
            options: See `CoreStreamArguments`.

        Raises:
            NatsStreamError: As for `js.core_stream`.

        Cost: as for `js.core_stream`.
        """
        check_arguments(options, CoreStreamArguments, "js.dstream", _SAVED)
        arguments = _legal(name, with_config(options, {"desc": desc}), no_autosave=no_autosave)

        async def make(release: Release) -> DStream:
            core = await self._core_streams(name, **arguments)
            return DStream(core, no_autosave=no_autosave, release=release)

        if options.get("no_cache"):
            return await make(is_last)
        return await self._shared.get(cache_key(name, arguments, no_autosave), make)


class DKVs:
    """Opens maps; `js.dkv` is the only one of a context.

    Args:
        core_streams: Opens core streams.
    """

    def __init__(self, core_streams: CoreStreams) -> None:
        self._core_streams = core_streams
        self._shared: SharedObjects[DKV] = SharedObjects()

    async def __call__(
        self,
        name: str,
        *,
        desc: object = None,
        merge: Merge | None = None,
        no_autosave: bool = False,
        **options: Unpack[CoreStreamArguments],
    ) -> DKV:
        """Open a map; it is created if it is missing. Its messages may have a `ttl`.

        Calls with equal arguments share one object, which ends when each has closed it.

        Args:
            name: Any text; with `/` for folders.
            desc: A free description, any JSON value, to set in the configuration.
            merge: Resolves a conflict of an unsaved value with a remote one; it takes a `Conflict`
                and returns the value, or TOMBSTONE. None keeps the unsaved value.
            no_autosave: Save only when `save` is called.
            options: See `CoreStreamArguments`.

        Raises:
            NatsStreamError: As for `js.core_stream`.

        Cost: as for `js.core_stream`.
        """
        check_arguments(options, CoreStreamArguments, "js.dkv", (*_SAVED, "merge"))
        if merge is not None:
            check_plain(merge, "merge", takes="a Conflict", count=1)
        arguments = _legal(
            name, with_config(options, {"desc": desc, **_WITH_TTL}), no_autosave=no_autosave
        )

        async def make(release: Release) -> DKV:
            core = await self._core_streams(name, **arguments)
            return DKV(core, merge=merge, no_autosave=no_autosave, release=release)

        if options.get("no_cache"):
            return await make(is_last)
        return await self._shared.get(cache_key(name, arguments, merge, no_autosave), make)


class DKOs:
    """Opens maps of objects; `js.dko` is the only one of a context.

    Args:
        dkvs: Opens maps.
    """

    def __init__(self, dkvs: DKVs) -> None:
        self._dkvs = dkvs
        self._shared: SharedObjects[DKO] = SharedObjects()

    async def __call__(
        self,
        name: str,
        *,
        desc: object = None,
        no_autosave: bool = False,
        **options: Unpack[CoreStreamArguments],
    ) -> DKO:
        """Open a map of objects; arguments, errors and cost as for `js.dkv`."""
        check_arguments(options, CoreStreamArguments, "js.dko", _SAVED)
        arguments = _legal(name, with_config(options, {"desc": desc}), no_autosave=no_autosave)

        async def make(release: Release) -> DKO:
            below = DKO_PREFIX + name
            dkv = await self._dkvs(below, desc=desc, no_autosave=no_autosave, **options)
            return DKO(name, dkv, release)

        if options.get("no_cache"):
            return await make(is_last)
        return await self._shared.get(cache_key(name, arguments, no_autosave), make)


class AKVs:
    """Opens maps of which nothing is loaded; `js.akv` is the only one of a context.

    Args:
        js: The JetStream context.
    """

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def __call__(self, name: str, **options: Unpack[LeaderArguments]) -> AKV:
        """Open a map; it is created if it is missing. Each call returns an object of its own.

        Args:
            name: Any text; with `/` for folders.
            options: See `LeaderArguments`.

        Raises:
            NatsStreamError: As for `js.core_stream`.

        Cost: two round trips.
        """
        check_arguments(options, LeaderArguments, "js.akv")
        leader = LeaderStream(self._js, options_of(name, with_config({**options}, _WITH_TTL)))
        await leader.open()
        return AKV(name, leader)


class AStreams:
    """Opens logs of which nothing is loaded; `js.astream` is the only one of a context.

    Args:
        js: The JetStream context.
    """

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def __call__(self, name: str, **options: Unpack[LeaderArguments]) -> AStream:
        """Open a log; it is created if it is missing. Each call returns an object of its own.

        Args:
            name: Any text; with `/` for folders.
            options: See `LeaderArguments`.

        Raises:
            NatsStreamError: As for `js.core_stream`.

        Cost: two round trips.
        """
        check_arguments(options, LeaderArguments, "js.astream")
        leader = LeaderStream(self._js, options_of(name, {**options}))
        await leader.open()

        async def follow() -> CoreStream:
            present = replace(leader.options, config={}, start_seq=await leader.last_seq() + 1)
            return await CoreStream(self._js, name, present).open()

        return AStream(name, leader, lambda: ChangeFeed(self._js, leader.options.names, follow))


class Inventories:
    """Opens inventories; `js.inventory` is the only one of a context.

    Args:
        dkvs: Opens maps.
        dkos: Opens maps of objects.
        dstreams: Opens logs.
    """

    def __init__(self, dkvs: DKVs, dkos: DKOs, dstreams: DStreams) -> None:
        self._dkvs = dkvs
        self._dkos = dkos
        self._dstreams = dstreams
        self._shared: SharedObjects[Inventory] = SharedObjects()

    async def __call__(
        self,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        service: str = SERVICE,
    ) -> Inventory:
        """Open the inventory of an owner; calls with equal arguments share one object.

        Args:
            account_id: UUID of the account; counts before `project_id`.
            project_id: UUID of the project.
            service: The service.

        Raises:
            NatsStreamError: As for `js.core_stream`.

        Cost: as for `js.core_stream`.
        """
        owner: CoreStreamArguments = {
            "account_id": account_id,
            "project_id": project_id,
            "service": service,
        }
        _legal(INVENTORY_NAME, owner)

        async def open_store(item: InventoryItem) -> DKV | DStream | DKO:
            if item.type == "stream":
                return await self._dstreams(item.name, **owner)
            if item.name.startswith(DKO_PREFIX):
                return await self._dkos(item.name.removeprefix(DKO_PREFIX), **owner)
            return await self._dkvs(item.name, **owner)

        async def make(release: Release) -> Inventory:
            return Inventory(await self._dkvs(INVENTORY_NAME, **owner), open_store, release)

        return await self._shared.get(cache_key(INVENTORY_NAME, owner), make)


def _legal(
    name: str, arguments: CoreStreamArguments, *, no_autosave: bool = False
) -> CoreStreamArguments:
    """Return arguments that are all legal, before an open object is looked for with them.

    Raises:
        NatsStreamError: One is not, as for `js.core_stream`.
    """
    options_of(name, arguments)
    check_bool(no_autosave, "no_autosave")
    return arguments
