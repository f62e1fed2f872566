"""Writes the messages of one atomic batch, in blocks, on the connection on which it began.

Law: a batch lives on one connection. No message is written to another one, so a disconnect
leaves a gap before the commit at worst, and never a commit without its messages.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from natsstream._wire.client import Client
from natsstream._wire.encode import publish_command, publish_start
from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream.errors import (
    BatchIncompleteError,
    ConnectionLostError,
    NatsStreamError,
    NoRespondersError,
    PermissionDeniedError,
)
from natsstream.events import PermissionDenied
from natsstream.publish.batches.atomic_rules import abort_block, read_staged

# While a leader changes nobody listens (ADR-22); nobody took the first message, so it goes again.
_FIRST_RETRIES = 2
# So often a message asks for an answer, which is waited for: the server drops what overruns it.
_ASK_EVERY = 250
_ASK_EVERY_BYTES = 8 << 20
# Commands gathered within one turn of the loop go out as one write, of about this size at most.
_WRITE_BYTES = 64 << 10
_SUBJECTS_MAX = 1_024


class AtomicSender:
    """The wire of one batch.

    Attributes:
        sent: Messages given to it, each of which may be on the server.
        sent_at: The loop's time of the last one.
        anchor: The subject of the first message, which the stream has answered.
    """

    def __init__(self, client: Client, stream: str, batch_id: str) -> None:
        self._client = client
        self._stream = stream
        self._id = batch_id
        self._connection = client.connections
        self._loop = asyncio.get_running_loop()
        self._starts: dict[str, bytes] = {}
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._unasked_bytes = 0
        self._is_write_due = False
        self._is_lost = False
        self._is_refused = False
        self._denied: PermissionDenied | None = None
        self._unwatch = client.watch_denied(self._on_denied)
        self.sent: int = 0
        self.sent_at: float = 0.0
        self.anchor: str = ""

    async def stage(self, subject: str, data: bytes, block: bytes) -> None:
        """Send a message that does not end the batch.

        Raises:
            NatsStreamError: The batch was refused, or is on another connection.
        """
        self.check()
        self.sent_at = self._loop.time()
        self._unasked_bytes += len(data) + len(block)
        number = self.sent + 1
        if number == 1 or not number % _ASK_EVERY or self._unasked_bytes >= _ASK_EVERY_BYTES:
            self.sent = number
            self.anchor = self.anchor or subject
            await self._ask(subject, data, block, is_first=number == 1)
            return
        self.put(subject, data, block)
        if self._client.is_congested:
            await self._client.drain()

    def put(self, subject: str, data: bytes, block: bytes, *, reply: str = "") -> None:
        """Send a message within this turn of the loop, and wait for nothing."""
        self.sent += 1
        self.anchor = self.anchor or subject
        start = b"" if reply else self._starts.get(subject, b"")
        if not start:
            start = publish_start(subject, reply)
            if not reply and len(self._starts) < _SUBJECTS_MAX:
                self._starts[subject] = start
        command = publish_command(start, b"", block, data)
        self._waiting.append(command)
        self._waiting_bytes += len(command)
        if self._waiting_bytes >= _WRITE_BYTES:
            self.write()
        elif not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self.write)

    async def _ask(self, subject: str, data: bytes, block: bytes, *, is_first: bool) -> None:
        self._unasked_bytes = 0
        timeout = self._client.options.request_timeout
        retries = _FIRST_RETRIES if is_first else 0
        try:
            frame = await self._request(subject, data, block, timeout, retries=retries)
        except (NoRespondersError, PermissionDeniedError):
            self._is_refused = is_first  # The server has no batch to drop.
            raise
        try:
            read_staged(frame, f"batch into {self._stream}, message {self.sent}")
        except BatchIncompleteError as error:
            self.raise_denied(error)
            raise
        if is_first:
            self._connection = self._client.connections

    async def commit(self, subject: str, data: bytes, block: bytes, timeout: float) -> Frame:
        """Send what ends the batch, once, and return the answer.

        Raises:
            NatsStreamError: There was none.
        """
        self.anchor = self.anchor or subject
        return await self._request(subject, data, block, timeout)

    async def _request(
        self, subject: str, data: bytes, block: bytes, timeout: float, *, retries: int = 0
    ) -> Frame:
        self.write()
        return await self._client.request(
            subject, data, headers=block, timeout=timeout, retries=retries
        )

    def write(self) -> None:
        """Write what waits to the connection of the batch, and to no later one."""
        self._is_write_due = False
        if not self._waiting:
            return
        run = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        client = self._client
        is_lost = True
        if client.connections == self._connection:
            with suppress(NatsStreamError):  # It is closed, which the next message is told.
                is_lost = not client.write_now(run)
        self._is_lost = self._is_lost or is_lost

    def check(self) -> None:
        """Raise when the batch cannot be stored any more.

        Raises:
            PermissionDeniedError: This user may not publish one of its messages.
            ConnectionLostError: Its connection is gone.
        """
        if self._denied is not None:
            raise self._denied_error(self._denied)
        client = self._client
        is_there = client.is_connected and client.connections == self._connection
        if self.sent and (self._is_lost or not is_there):
            raise self.lost()

    def raise_denied(self, cause: NatsStreamError) -> None:
        """Raise why the server lacks a message, if this user may not publish it."""
        if self._denied is not None:
            raise self._denied_error(self._denied) from cause

    def _on_denied(self, event: PermissionDenied) -> None:
        # Those that ask for an answer are told by themselves.
        if event.operation == "publish" and event.subject in self._starts:
            self._denied = self._denied or event

    def _denied_error(self, event: PermissionDenied) -> PermissionDeniedError:
        error = denied_error(event)
        error.name_call(f"batch into {self._stream}")
        error.detail = "nothing of the batch is stored"
        return error

    def lost(self, what: str = "the connection was lost") -> ConnectionLostError:
        """Return the error of a batch that ended before its commit."""
        return ConnectionLostError(
            f"batch into {self._stream}: {what} before the commit",
            hint="nothing of the batch is stored: begin it again",
            retryable=True,
        )

    def close(self) -> None:
        """Listen no more."""
        self._unwatch()

    def end(self) -> None:
        """Let the server forget the batch: it would count for 10 s among the open ones."""
        self.close()
        self._waiting.clear()
        if self.sent and not self._is_refused:
            block = abort_block(self._id)
            with suppress(NatsStreamError):
                self._client.write_now(
                    publish_command(publish_start(self.anchor, ""), b"", block, b"")
                )
