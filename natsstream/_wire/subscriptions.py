"""The subscriptions of one connection: which sink gets the frames of which subject.

What lives here: making, ending and denying subscriptions. What must not: the connection itself,
which is given.

Law: the sink stands before the server can send the first frame, and is gone when `close` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from natsstream._wire.parser import BlockSink, FrameParser, FrameSink
from natsstream._wire.refusals import denied_error
from natsstream.errors import PermissionDeniedError, ProtocolError
from natsstream.events import PermissionDenied

DeniedSink = Callable[[PermissionDeniedError], None]


class Subscription:
    """A subject whose frames go to sinks; made by `Client.subscribe`.

    Attributes:
        subject: What is listened to.
        queue: The queue group, empty for none.
        sid: The number that the server puts into each frame, as it stands there.
        on_denied: Called when the server does not allow it.
    """

    def __init__(
        self,
        owner: Subscriptions,
        sid: bytes,
        *,
        subject: str,
        queue: str,
        on_denied: DeniedSink | None,
    ) -> None:
        self._owner = owner
        self.sid: bytes = sid
        self.subject: str = subject
        self.queue: str = queue
        self.on_denied: DeniedSink | None = on_denied

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
        write: Sends protocol bytes, now or after a reconnect; it must not raise.
    """

    def __init__(self, parser: FrameParser, write: Callable[[bytes], None]) -> None:
        self._parser = parser
        self._write = write
        self._made: dict[bytes, Subscription] = {}
        self._nats: Any = None

    async def make(
        self,
        nats: Any,
        subject: str,
        sink: FrameSink,
        *,
        queue: str,
        on_denied: DeniedSink | None,
    ) -> Subscription:
        """Subscribe with nats-py's client, which does so again after each reconnect."""
        self._nats = nats
        # The sink must be there before the server can answer: nats-py numbers in order.
        sid = str(nats._sid + 1).encode()
        subscription = Subscription(self, sid, subject=subject, queue=queue, on_denied=on_denied)
        self._parser.sinks[sid] = sink
        self._made[sid] = subscription
        try:
            made = await nats.subscribe(subject, queue)
        except Exception as error:
            self._parser.sinks.pop(sid, None)
            self._made.pop(sid, None)
            raise ProtocolError(f"can not subscribe to {subject}", detail=repr(error)) from error
        if str(made._id).encode() != sid:
            raise ProtocolError("nats-py numbers subscriptions in a new way; use nats-py 2.16")
        return subscription

    def read_blocks(self, sid: bytes, sink: BlockSink | None) -> None:
        """Hand a subscription's runs of messages to a block sink; None ends that."""
        if sink is None:
            self._parser.blocks.pop(sid, None)
        else:
            self._parser.blocks[sid] = sink

    def ask_to_end(self, sid: bytes) -> None:
        """Tell the server that no more is wanted."""
        self._write(b"UNSUB %b\r\n" % sid)

    def end(self, sid: bytes) -> None:
        """End a subscription here and on the server; ending twice is fine."""
        if self._made.pop(sid, None) is None:
            return
        self._parser.sinks.pop(sid, None)
        self._parser.blocks.pop(sid, None)
        self._nats._remove_sub(int(sid))
        self.ask_to_end(sid)

    def end_all(self) -> None:
        """End every subscription."""
        for sid in tuple(self._made):
            self.end(sid)

    def deny(self, event: PermissionDenied) -> None:
        """Tell those whom a denial is about."""
        for each in tuple(self._made.values()):
            is_meant = (each.subject, each.queue) == (event.subject, event.queue)
            if is_meant and each.on_denied is not None:
                each.on_denied(denied_error(event))
