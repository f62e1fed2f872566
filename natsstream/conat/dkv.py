"""A key-value map that is written here first, and saved to a core stream; Conat's DKV."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self, overload

from natsstream.arguments import check_bool, check_utf8, counted, described
from natsstream.conat.configuration import Configuration
from natsstream.conat.core_stream import CoreStream, CoreStreamInventory, StreamStats
from natsstream.conat.headers import header_values
from natsstream.conat.in_order import is_refusal
from natsstream.conat.layer_events import LayerEvents
from natsstream.conat.saver import Saver, quiet_after
from natsstream.conat.shared import Release, is_last
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.unsaved_keys import Merge, Outcome, Unsaved, UnsavedKeys
from natsstream.conat.values import encode_value
from natsstream.conat.views import Change
from natsstream.conat.writer import PublishItem, PublishOptions, PublishResult
from natsstream.errors import ConfigError, NatsStreamError, UnsavedChangesError, UsageError
from natsstream.foreign_names import DKV_MEMBERS

# In the error for lost changes.
_KEYS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key of a DKV changed on the server.

    Attributes:
        key: The key.
        value: Its value here; None if it is deleted.
        prev: Its value on the server before; UNDEFINED for none.
        is_deleted: True if it has no value, where None alone may be a value.
    """

    key: str
    value: Any
    prev: Any
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class RejectedKey:
    """A value that the stream refused; it is gone here too.

    Attributes:
        key: The key.
        value: The value.
        error: The reason.
    """

    key: str
    value: Any
    error: NatsStreamError


class DKV:
    """A map whose writes are here at once, and on the server when they are saved.

    Made by `js.dkv(name)`; use it with `async with`, or call `close`. `kv["a"]`, `kv.a` and
    `kv.get("a")` read the same value. A value that is changed in place is not saved: assign it
    again, as in `kv["a"] = [*kv["a"], 1]`. Every method raises `UsageError` after the end, and
    the error that ended the sync.

    Events for `on`: "change" (`KeyChange`: a value came from the server, own ones too), "reject"
    (`RejectedKey`), "stable" (this object: nothing is unsaved) and "closed" (None, or the
    error that ended it).

    Args:
        core: The core stream, open; it is closed with this object.
        merge: Resolves conflicts of unsaved values with remote ones; None keeps the unsaved one.
        no_autosave: Save only when `save` is called.
        release: Counts one user less, and returns True for the last one.
    """

    _is_live: ClassVar[bool] = True

    def __init__(
        self,
        core: CoreStream,
        *,
        merge: Merge | None = None,
        no_autosave: bool = False,
        release: Release = is_last,
    ) -> None:
        self._core = core
        self._has_merge = merge is not None
        self._unsaved = UnsavedKeys(merge, lambda value: encode_value(value, core.encoding))
        self._events = LayerEvents()
        self._saver = Saver(
            f"DKV {core.name}",
            self._attempt,
            lambda: len(self._unsaved) > 0,
            self._lost,
            is_automatic=not check_bool(no_autosave, "no_autosave"),
        )
        self._is_uncertain = False
        self._is_closed = False
        self._release = release
        core.on("change", self._on_change)
        core.on("closed", self._events.close)

    @property
    def name(self) -> str:
        """Its name."""
        return self._core.name

    @property
    def core(self) -> CoreStream:
        """The core stream: what the server holds."""
        return self._core

    async def close(self) -> None:
        """Save what autosave has not saved yet, and leave; a shared one ends with the last user.

        It waits at most 10 s for the server. Changes that are not saved by then are lost. Without
        autosave, unsaved changes are lost at once, and nothing reports them.

        Raises:
            UnsavedChangesError: Changes are lost, which is also logged. The end of a block raises
                it unless the block has raised another error.
        """
        self._saver.check_loop()
        if not self._is_closed and self._release():
            self._is_closed = True
            try:
                await self._saver.close()
            finally:
                self._core.off("change", self._on_change)
                self._core.off("closed", self._events.close)
                self._events.close()
                await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with quiet_after(kind):
            await self.close()

    # Writing.

    def set(
        self,
        key: str,
        value: Any,
        *,
        headers: Mapping[str, object] | None = None,
        ttl: int | None = None,
    ) -> None:
        """Set a value here, and save it later; UNDEFINED deletes the key.

        Args:
            key: Any text.
            value: None, bool, int, float, str, bytes, datetime, lists and dicts of them.
            headers: A JSON object, nested or not.
            ttl: Milliseconds to live once it is saved.

        Raises:
            ConfigError: The key, the value or the headers cannot be encoded.
            HeaderError: The headers are too large.
            EventLoopError: The connection belongs to another event loop; nothing was set.
            MessageRuleError: A `ttl` is given, and somebody has set `allow_msg_ttl` to False.
        """
        self._check()
        self._saver.check_loop()
        if value is UNDEFINED:
            self.delete(key)
            return
        encoding = self._core.encoding
        check_utf8(key, "the key")
        self._core.check_ttl(ttl)
        encode_value(value, encoding)
        header_values(encoding, headers=headers, key=key, ttl_ms=ttl)
        self._unsaved.set(key, value, headers, ttl)
        self._saver.wrote()

    def set_many(self, values: Mapping[str, Any]) -> None:
        """Set many values; errors as in `set`, before which earlier ones are set."""
        if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
            raise ConfigError(
                f"values is {described(values)}", hint="give the values by their keys in a dict"
            )
        for key, value in values.items():
            self.set(key, value)

    def delete(self, key: str) -> None:
        """Delete a key here, and save that later; one without a value is ignored."""
        self._check()
        self._saver.check_loop()
        held = self._unsaved.get(key)
        if key in self._core.kv or held is not None:
            self._unsaved.set(key, UNDEFINED)
            self._saver.wrote()

    def clear(self) -> None:
        """Delete all keys that are known here."""
        for key in self.keys():
            self.delete(key)

    # Reading.

    @overload
    def get(self) -> dict[str, Any]: ...
    @overload
    def get(self, key: str, default: Any = UNDEFINED) -> Any: ...
    def get(self, key: str | None = None, default: Any = UNDEFINED) -> Any:
        """Return the value of a key, or the default; all keys without an argument.

        Raises:
            CodecError: Another program wrote the value.
        """
        self._check()
        if key is None:
            return self.get_all()
        value = self._value(key)
        return default if value is UNDEFINED else value

    def get_all(self) -> dict[str, Any]:
        """Return all keys with their values, as a new dict."""
        return {key: self._value(key) for key in self.keys()}

    def has(self, key: str) -> bool:
        """Return True if a key has a value."""
        self._check()
        return self._has(key)

    def keys(self) -> list[str]:
        """Return all keys that have a value."""
        self._check()
        remote, unsaved = self._core.kv, self._unsaved
        known = [*remote, *(key for key in unsaved if key not in remote)] if unsaved else remote
        return [key for key in known if self._has(key)]

    @property
    def length(self) -> int:
        """Number of keys that have a value."""
        return len(self.keys())

    @overload
    def time(self) -> dict[str, datetime]: ...
    @overload
    def time(self, key: str) -> datetime | None: ...
    def time(self, key: str | None = None) -> dict[str, datetime] | datetime | None:
        """Return when a key's value was stored, in UTC; of all saved keys without an argument."""
        self._check()
        if key is not None:
            return self._core.time_kv(key)
        return {key: time for key, time in self._core.time_kv().items() if self._has(key)}

    def seq(self, key: str) -> int | None:
        """Return the sequence of a key's saved value; None for none."""
        self._check()
        return self._core.seq_kv(key)

    def headers(self, key: str) -> Mapping[str, object] | None:
        """Return the headers of a key's value, unsaved ones first; None for none."""
        self._check()
        held = self._unsaved.get(key)
        return self._core.headers_kv(key) if held is None else held.headers

    def stats(self) -> StreamStats:
        """Return number and bytes of the saved messages."""
        self._check()
        return self._core.stats()

    async def inventory(self) -> CoreStreamInventory:
        """Return the numbers of the core stream; see `CoreStream.inventory`."""
        self._check()
        return await self._core.inventory()

    async def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""
        self._check()
        return await self._core.config(changes)

    # Saving.

    async def save(self) -> None:
        """Save all changes; with `no_autosave`, by one attempt, which may leave some unsaved.

        With autosave it waits through any outage until they are stored. `asyncio.timeout` limits
        the wait; the attempts continue in the background.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).

        Cost: one round trip for many keys.
        """
        self._check()
        await self._saver.save()

    def has_unsaved_changes(self) -> bool:
        """Return True if something is not saved; False after the end."""
        return not self._is_closed and len(self._unsaved) > 0

    def unsaved_changes(self) -> list[str]:
        """Return the keys whose values are not saved."""
        self._check()
        return list(self._unsaved)

    def is_stable(self) -> bool:
        """Return True if nothing is unsaved."""
        self._check()
        return not self._unsaved

    # Events.

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name; it must not wait.

        Raises:
            UsageError: The event does not exist.
        """
        self._events.on(event, listener)

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""
        self._events.off(event, listener)

    def changes(self) -> AsyncGenerator[KeyChange]:
        """Yield the changes from this call on; ends when the map is closed.

        Raises:
            NatsStreamError: The error that ended the sync.
            SlowReaderError: More than 65,536 changes waited; the next read resumes behind them.
        """
        self._check()
        return self._events.read("change")

    # Python's ways to say the same.

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.has(key)

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)
        if value is UNDEFINED:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self.delete(key)

    def __getattr__(self, name: str) -> Any:
        value = UNDEFINED if name.startswith("_") else self.get(name)
        if value is UNDEFINED:
            here = DKV_MEMBERS.get(name)
            told = f"; in natsstream: {here}" if here else ""
            raise AttributeError(f"DKV {name!r} has no value{told}")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif hasattr(type(self), name):
            raise UsageError(f"method name {name!r} is read only", hint="kv[name] = value sets it")
        else:
            self.set(name, value)

    def __delattr__(self, name: str) -> None:
        if name not in self:
            raise AttributeError(f"DKV {name!r} has no value")
        self.delete(name)

    def __repr__(self) -> str:
        if self._is_closed:
            return f"<DKV {self.name}: closed>"
        return f"<DKV {self.name}: {counted(self.length, 'key')}, {len(self._unsaved)} unsaved>"

    # Internals.

    def _value(self, key: str) -> Any:
        held = self._unsaved.get(key)
        return self._core.get_kv(key) if held is None else held.value

    def _has(self, key: str) -> bool:
        held = self._unsaved.get(key)
        return key in self._core.kv if held is None else held.value is not UNDEFINED

    def _lost(self) -> UnsavedChangesError:
        keys = tuple(self._unsaved)
        more = f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
        shown = ", ".join(map(repr, keys[:_KEYS_SHOWN]))
        number = counted(len(keys), "unsaved key")
        return UnsavedChangesError(
            f"DKV {self.name} was closed with {number}: {shown}{more}", count=len(keys), keys=keys
        )

    async def _attempt(self) -> bool:
        if self._is_uncertain:
            # A message whose ack was lost may be stored: then it has come back after this.
            await self._core.config()
            self._is_uncertain = False
        await self._publish(self._unsaved.overtaken())
        tried = [(key, held) for key, held in self._unsaved.items() if self._is_needed(key, held)]
        await self._publish(tried)
        return all(self._unsaved.get(key) is not held for key, held in tried)

    async def _publish(self, values: list[tuple[str, Unsaved]]) -> None:
        if not values:
            return
        results = await self._core.publish_many([self._item(key, held) for key, held in values])
        failure: NatsStreamError | None = None
        rejected: list[RejectedKey] = []
        for (key, held), result in zip(values, results, strict=True):
            failure = self._take_result(key, held, result, rejected) or failure
        if rejected:
            self._events.reject(f"DKV {self._core.name}", rejected, rejected[0].error)
        if failure is not None:
            raise failure

    def _is_needed(self, key: str, held: Unsaved) -> bool:
        """Return True if a value is to be sent; the deletion of a key without a value is not."""
        if held.value is UNDEFINED and key not in self._core.kv:
            self._forget(key, held)
            return False
        return True

    def _item(self, key: str, held: Unsaved) -> PublishItem:
        if held.value is UNDEFINED:
            return self._core.tombstone(key, msg_id=held.msg_id)
        previous_seq = self._core.newest_seq_kv(key) if self._has_merge else None
        options = PublishOptions(
            key=key,
            headers=held.headers,
            ttl=held.ttl,
            msg_id=held.msg_id,
            previous_seq=previous_seq,
        )
        return PublishItem(held.value, options)

    def _take_result(
        self, key: str, held: Unsaved, result: PublishResult, rejected: list[RejectedKey]
    ) -> NatsStreamError | None:
        """Take the result of one message; returns an error that concerns all of them."""
        error = result.error
        if error is None:
            # Its copy came before, if the id was not known to the server already.
            self._forget(key, held)
        elif is_refusal(error):
            if self._forget(key, held):
                rejected.append(RejectedKey(key, held.value, error))
        elif result.code != "wrong-last-sequence":
            # After a lost compare-and-set the newer value comes, and the merge function decides.
            self._is_uncertain = True
            if not self._has_merge or held.value is UNDEFINED:
                self._unsaved.doubt(key, held)
            return error
        return None

    def _forget(self, key: str, held: Unsaved) -> bool:
        is_held = self._unsaved.forget(key, held.msg_id)
        if is_held:
            self._tell_if_stable()
        return is_held

    def _on_change(self, change: Change) -> None:
        key = change.key
        if key is None or (change.is_removal and not change.is_key_removed):
            return
        prev, was_unsaved = change.prev, len(self._unsaved) > 0
        if not change.is_removal:
            remote = UNDEFINED if change.is_tombstone else change.mesg
            outcome = self._unsaved.remote(key, remote, prev, change.msg_id)
            if outcome is Outcome.MERGED:
                self._saver.wrote()
            self._saver.hurry()
        value = self._value(key)
        is_deleted = value is UNDEFINED
        self._events.emit("change", KeyChange(key, None if is_deleted else value, prev, is_deleted))
        if was_unsaved:
            self._tell_if_stable()

    def _tell_if_stable(self) -> None:
        if not self._unsaved:
            self._events.emit("stable", self)

    def _check(self) -> None:
        if self._is_closed:
            raise UsageError(f"DKV {self._core.name} is closed", hint="js.dkv() opens it again")
        if self._core.error is not None:
            raise self._core.error.with_traceback(None)
