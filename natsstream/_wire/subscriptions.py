"""The subscriptions of one connection: which sink gets the frames of which subject.

Law: the sink stands before the server can send the first frame, and is gone when `close` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from natsstream._wire.encode import subscribe_command, subscribe_start, unsubscribe_command
from natsstream._wire.parser import BlockSink, FrameParser, FrameSink
from natsstream._wire.permission_violations import denied_error
from natsstream.errors import NatsStreamError, PermissionDeniedError
from natsstream.events import PermissionDenied

if TYPE_CHECKING:
    from natsstream._wire.nats_py import NatsPyLink

DeniedSink = Callable[[PermissionDeniedError], None]


class Subscription:
    """A subject whose frames go to sinks; made by `Client.subscribe`.

    Attributes:
        subject: The subject.
        queue: The queue group, empty for none.
        sid: The number that the server puts into each frame, as it stands there.
        on_denied: Called when the server does not allow it.
        what: The reader, for that error; empty for none.
    """

    def __init__(
        self,
        owner: Subscriptions,
        sid: bytes,
        *,
        subject: str,
        queue: str,
        on_denied: DeniedSink | None,
        what: str,
    ) -> None:
        self._owner = owner
        self.sid: bytes = sid
        self.subject: str = subject
        self.queue: str = queue
        self.on_denied: DeniedSink | None = on_denied
        self.what: str = what

    def read_blocks(self, sink: BlockSink | None) -> None:
        """Hand runs of messages to a block sink; None ends that."""
        self._owner.read_blocks(self.sid, sink)

    def stop(self) -> None:
        """Ask the server for no more; what it sent before is still handed over."""
        self._owner.ask_to_end(self.sid)

    def close(self) -> None:
        """Stop the subscription here and on the server; closing twice is fine."""
        self._owner.end(self.sid)


class Subscriptions:
    """All subscriptions of one connection.

    Args:
        parser: Holds the sinks.
        write: Sends protocol bytes, now or after a reconnect.
    """

    def __init__(self, parser: FrameParser, write: Callable[[bytes], object]) -> None:
        self._parser = parser
        self._write = write
        self._made: dict[bytes, Subscription] = {}
        self._link: NatsPyLink | None = None

    def make(
        self,
        link: NatsPyLink,
        subject: str,
        sink: FrameSink,
        *,
        queue: str,
        on_denied: DeniedSink | None,
        what: str,
    ) -> Subscription:
        """Subscribe now, and again after each reconnect.

        Raises:
            SubjectError: The subject would break the line.
            ConfigError: The name of the queue group would.
            ConnectionLostError: There is no connection and 8 MiB wait for one already.
        """
        # Before nats-py notes them: it writes them again after each reconnect, and does not look.
        start = subscribe_start(subject, queue)
        self._link = link
        sid = link.add_subscription(subject, queue)
        subscription = Subscription(
            self, sid, subject=subject, queue=queue, on_denied=on_denied, what=what
        )
        self._parser.sinks[sid] = sink
        self._made[sid] = subscription
        try:
            self._write(subscribe_command(start, sid))
        except NatsStreamError:
            self._forget(sid)
            raise
        return subscription

    def read_blocks(self, sid: bytes, sink: BlockSink | None) -> None:
        """Hand a subscription's runs of messages to a block sink; None ends that."""
        if sink is None:
            self._parser.blocks.pop(sid, None)
        else:
            self._parser.blocks[sid] = sink

    def ask_to_end(self, sid: bytes) -> None:
        """Tell the server that no more is wanted."""
        # The SUB may wait for the next connection, or be in flight through a reconnect: behind it
        # in order, this ends both. A server does not mind an UNSUB of what it does not know.
        with suppress(NatsStreamError):
            self._write(unsubscribe_command(sid))

    def end(self, sid: bytes) -> None:
        """End a subscription here and on the server; ending twice is fine."""
        if sid in self._made:
            self._forget(sid)
            self.ask_to_end(sid)

    def _forget(self, sid: bytes) -> None:
        del self._made[sid]
        self._parser.sinks.pop(sid, None)
        self._parser.blocks.pop(sid, None)
        if self._link is not None:
            self._link.remove_subscription(sid)

    def end_all(self) -> None:
        """End every subscription."""
        for sid in tuple(self._made):
            self.end(sid)

    def deny(self, event: PermissionDenied) -> None:
        """Tell those whom a denial is about."""
        for each in tuple(self._made.values()):
            is_meant = (each.subject, each.queue) == (event.subject, event.queue)
            if is_meant and each.on_denied is not None:
                error = denied_error(event)
                if each.what and event.subject not in each.what:
                    error.name_call(each.what)
                each.on_denied(error)
