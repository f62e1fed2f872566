"""Opens the layers above core streams: `js.dstream`, `js.dkv`.

Law: calls with equal arguments share one object; a difference in any argument makes two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from natsstream.conat.dkv import DKV
from natsstream.conat.dstream import DStream
from natsstream.conat.layer_options import CoreStreamArguments, cache_key, with_config
from natsstream.conat.shared import SharedObjects

if TYPE_CHECKING:
    from natsstream.conat.manager import CoreStreams
    from natsstream.conat.unsaved_keys import Merge


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
        arguments = with_config(options, {"desc": desc})

        async def make() -> DStream:
            core = await self._core_streams(name, **arguments)
            return DStream(core, no_autosave=no_autosave)

        if options.get("no_cache"):
            return await make()
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
        arguments = with_config(options, {"desc": desc, "allow_msg_ttl": True})

        async def make() -> DKV:
            core = await self._core_streams(name, **arguments)
            return DKV(core, merge=merge, no_autosave=no_autosave)

        if options.get("no_cache"):
            return await make()
        return await self._shared.get(cache_key(name, arguments, merge, no_autosave), make)
