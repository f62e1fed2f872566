"""A log that is written here first, and saved to a core stream; Conat's DStream."""

from __future__ import annotations

import operator
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self, overload

from natsstream.arguments import check_bool, check_int, counted
from natsstream.conat.configuration import Configuration
from natsstream.conat.core_stream import CoreStream, CoreStreamInventory, StreamStats
from natsstream.conat.headers import header_values
from natsstream.conat.in_order import is_refusal
from natsstream.conat.layer_events import LayerEvents
from natsstream.conat.saver import Saver, quiet_after
from natsstream.conat.shared import Release, is_last
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.unsaved_keys import Unsaved, new_msg_id
from natsstream.conat.values import encode_value
from natsstream.conat.views import Change
from natsstream.conat.writer import PublishItem, PublishOptions, PublishResult, check_value
from natsstream.errors import NatsStreamError, UnsavedChangesError, UsageError
from natsstream.foreign_names import answers_names


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message that the stream refused; it is gone here too.

    Attributes:
        mesg: The value.
        error: The reason.
    """

    mesg: Any
    error: NatsStreamError


@answers_names("dstream", calls=False)
class DStream:
    """A log whose new messages are here at once, and on the server when they are saved.

    Made by `js.dstream(name)`; use it with `async with`, or call `close`. It reads like a list:
    the saved messages in their order, then those that are not saved. Every method raises
    `UsageError` after the end, and the error that ended the sync.

    Events for `on`: "change" (`Change`: a message came from the server, own ones too), "reject"
    (`RejectedMessage`), "stable" (this object: nothing is unsaved) and "closed" (None, or the
    error that ended it).

    Args:
        core: The core stream, open; it is closed with this object.
        no_autosave: Save only when `save` is called.
        release: Counts one user less, and returns True for the last one.
    """

    _is_live: ClassVar[bool] = True

    def __init__(
        self, core: CoreStream, *, no_autosave: bool = False, release: Release = is_last
    ) -> None:
        self._core = core
        # By message id, in the order of `publish`.
        self._unsaved: dict[str, Unsaved] = {}
        self._events = LayerEvents()
        self._saver = Saver(
            f"DStream {core.name}",
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

        It waits at most 10 s for the server. Messages that are not saved by then are lost. Without
        autosave, unsaved messages are lost at once, and nothing reports them.

        Raises:
            UnsavedChangesError: Messages are lost, which is also logged. The end of a block raises
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

    def publish(
        self, mesg: Any, *, headers: Mapping[str, object] | None = None, ttl: int | None = None
    ) -> None:
        """Append a message here, and save it later.

        Args:
            mesg: None, bool, int, float, str, bytes, datetime, lists and dicts of them.
            headers: A JSON object, nested or not.
            ttl: Milliseconds to live once it is saved; it needs `allow_msg_ttl`.

        Raises:
            ConfigError: The value or the headers cannot be encoded, or the value is UNDEFINED.
            HeaderError: The headers are too large.
            EventLoopError: The connection belongs to another event loop; nothing was appended.
            MessageRuleError: A `ttl` is given, and the configuration has no `allow_msg_ttl`.
        """
        self._check()
        self._saver.check_loop()
        check_value(mesg)
        self._core.check_ttl(ttl)
        encoding = self._core.encoding
        encode_value(mesg, encoding)
        header_values(encoding, headers=headers, ttl_ms=ttl)
        msg_id = new_msg_id()
        self._unsaved[msg_id] = Unsaved(mesg, headers, ttl, msg_id)
        self._saver.wrote()

    def push(self, *values: Any) -> None:
        """Append messages here, and save them later; errors as in `publish`."""
        for mesg in values:
            self.publish(mesg)

    async def delete(
        self,
        *,
        all: bool = False,  # noqa: A002 - Conat's word.
        last_index: int | None = None,
        seq: int | None = None,
        seqs: Sequence[int] | None = None,
        last_seq: int | None = None,
    ) -> list[int]:
        """Save, then delete messages; arguments, answer and errors as in `CoreStream.delete`."""
        await self.save()
        return await self._core.delete(
            all=all, last_index=last_index, seq=seq, seqs=seqs, last_seq=last_seq
        )

    # Reading.

    @overload
    def get(self) -> list[Any]: ...
    @overload
    def get(self, n: int, default: Any = UNDEFINED) -> Any: ...
    def get(self, n: int | None = None, default: Any = UNDEFINED) -> Any:
        """Return the value at a position, or the default; all values without an argument."""
        if n is None:
            return self.get_all()
        return self[n] if -len(self) <= check_int(n, "n") < len(self) else default

    def get_all(self) -> list[Any]:
        """Return all values, as a new list."""
        self._check()
        return [*self._core.messages, *self._values()]

    def seq(self, n: int) -> int | None:
        """Return the sequence at a position; None for none, and if it is not saved."""
        at = self._saved_position(n)
        return None if at is None else self._core.seq(at)

    def seqs(self) -> list[int]:
        """Return the sequences of all saved messages."""
        self._check()
        return self._core.seqs()

    def time(self, n: int) -> datetime | None:
        """Return when the message at a position was stored; None if it is not saved."""
        at = self._saved_position(n)
        return None if at is None else self._core.time(at)

    def times(self) -> list[datetime | None]:
        """Return when each message was stored; None for those that are not saved."""
        self._check()
        return [*self._core.times(), *(None for _ in self._unsaved)]

    def headers(self, n: int) -> Mapping[str, object] | None:
        """Return the headers at a position; None for none, and if it is not saved."""
        at = self._saved_position(n)
        return None if at is None else self._core.headers(at)

    @property
    def length(self) -> int:
        """Number of messages, unsaved ones too."""
        return len(self)

    @property
    def start_seq(self) -> int | None:
        """The first sequence that was asked for; None for all."""
        return self._core.start_seq

    async def load(self, *, start_seq: int, no_emit: bool = False) -> None:
        """Load older messages, down to a sequence; see `CoreStream.load`."""
        self._check()
        await self._core.load(start_seq=start_seq, no_emit=no_emit)

    def stats(self) -> StreamStats:
        """Return number and bytes of the saved messages that are loaded."""
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
        """Save all messages; with `no_autosave`, by one attempt, which may leave some unsaved.

        With autosave it waits through any outage until they are stored. `asyncio.timeout` limits
        the wait; the attempts continue in the background.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).

        Cost: one round trip for many messages.
        """
        self._check()
        await self._saver.save()

    def has_unsaved_changes(self) -> bool:
        """Return True if something is not saved; False after the end."""
        return not self._is_closed and len(self._unsaved) > 0

    def unsaved_changes(self) -> list[Any]:
        """Return the values that are not saved."""
        self._check()
        return self._values()

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

    def changes(self) -> AsyncGenerator[Change]:
        """Yield the changes from this call on; ends when the log is closed.

        Raises:
            NatsStreamError: The error that ended the sync.
            SlowReaderError: More than 65,536 changes waited; the next read resumes behind them.
        """
        self._check()
        return self._events.read("change")

    # Python's ways to say the same.

    def __len__(self) -> int:
        self._check()
        return len(self._core) + len(self._unsaved)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return values by position, as a list does."""
        self._check()
        saved, unsaved = len(self._core), self._values()
        if isinstance(index, slice):
            places = range(*index.indices(len(self)))
            return [self._core[at] if at < saved else unsaved[at - saved] for at in places]
        at = self._position(operator.index(index))
        if at is None:
            raise IndexError(f"message {index} of {len(self)}")
        return self._core[at] if at < saved else unsaved[at - saved]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get_all())

    def __repr__(self) -> str:
        if self._is_closed:
            return f"<DStream {self.name}: closed>"
        return (
            f"<DStream {self.name}: {counted(len(self), 'message')}, {len(self._unsaved)} unsaved>"
        )

    # Internals.

    def _values(self) -> list[Any]:
        return [each.value for each in self._unsaved.values()]

    def _position(self, n: int) -> int | None:
        at = n + len(self) if n < 0 else n
        return at if 0 <= at < len(self) else None

    def _saved_position(self, n: int) -> int | None:
        self._check()
        at = self._position(check_int(n, "n"))
        return at if at is not None and at < len(self._core) else None

    def _lost(self) -> UnsavedChangesError:
        number = counted(len(self._unsaved), "unsaved message")
        return UnsavedChangesError(
            f"DStream {self.name} was closed with {number}", count=len(self._unsaved)
        )

    async def _attempt(self) -> bool:
        if self._is_uncertain:
            # A message whose ack was lost may be stored: then it has come back after this.
            await self._core.config()
            self._is_uncertain = False
        tried = list(self._unsaved.values())
        results = await self._core.publish_in_order([_item(each) for each in tried])
        failure: NatsStreamError | None = None
        rejected: list[RejectedMessage] = []
        for unsaved, result in zip(tried, results, strict=True):
            failure = self._take_result(unsaved, result, rejected) or failure
        if rejected:
            self._events.reject(f"DStream {self._core.name}", rejected, rejected[0].error)
        if failure is not None:
            self._is_uncertain = True
            raise failure
        return True

    def _take_result(
        self, unsaved: Unsaved, result: PublishResult, rejected: list[RejectedMessage]
    ) -> NatsStreamError | None:
        """Take the result of one message; returns an error after which it is tried again."""
        error = result.error
        if error is None:
            # Its copy came before, if the id was not known to the server already.
            self._forget(unsaved.msg_id)
        elif is_refusal(error):
            if self._forget(unsaved.msg_id):
                rejected.append(RejectedMessage(unsaved.value, error))
        else:
            return error
        return None

    def _forget(self, msg_id: str) -> bool:
        if self._unsaved.pop(msg_id, None) is None:
            return False
        self._tell_if_stable()
        return True

    def _on_change(self, change: Change) -> None:
        if change.is_removal:
            return
        msg_id = change.msg_id
        is_own = msg_id is not None and self._unsaved.pop(msg_id, None) is not None
        self._events.emit("change", change)
        if is_own:
            self._tell_if_stable()

    def _tell_if_stable(self) -> None:
        if not self._unsaved:
            self._events.emit("stable", self)

    def _check(self) -> None:
        if self._is_closed:
            raise UsageError(
                f"DStream {self._core.name} is closed", hint="js.dstream() opens it again"
            )
        if self._core.error is not None:
            raise self._core.error.with_traceback(None)


def _item(unsaved: Unsaved) -> PublishItem:
    options = PublishOptions(headers=unsaved.headers, ttl=unsaved.ttl, msg_id=unsaved.msg_id)
    return PublishItem(unsaved.value, options)
