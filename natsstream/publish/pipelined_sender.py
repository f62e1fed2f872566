"""Sends a publisher's messages and pairs them with their answers, each message for itself.

Law: every message ends with an ack or an error, by its deadline at the latest. An ended message is
not sent any more: commands wait here for a connection, so that they can be dropped. Before a
message is sent for a second time the stream is looked at: another one may have the subject by now,
and would store the copy beside the first.
"""

from __future__ import annotations

import asyncio
from collections import deque

from natsstream._wire.encode import publish_command
from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream.api.requests import Api
from natsstream.errors import ConnectionLostError, NatsStreamError, NoRespondersError
from natsstream.events import PermissionDenied
from natsstream.publish.ack_window import AckFuture, AckWindow
from natsstream.publish.destination import Destination, check_teller, taken_over
from natsstream.publish.pub_ack import read_ack, read_quick_ack
from natsstream.publish.publish import RETRY_WAIT_S, lost_error, overdue_error
from natsstream.publish.publisher_options import PublisherOptions

# Commands gathered within one turn of the loop go out as one write, of about this size at most.
WRITE_BYTES = 256 << 10
# A deadline is looked at this late at most, so that many that are close make one look.
TICK_S = 0.02


class Writer:
    """Writes commands in runs, and takes back those that a break left behind."""

    def __init__(self, api: Api) -> None:
        self._client = api.client
        self._runs: list[bytes] = []

    @property
    def is_connected(self) -> bool:
        """True while a server is connected, also by what the client below knows already."""
        return self._client.is_connected and bool(self._client.raw.is_connected)

    def write(self, run: bytes) -> None:
        """Send a run of commands."""
        if not self._client.write(run):
            self._runs.append(run)

    def heard(self) -> None:
        """The server has answered: all that was written before was written to it."""
        self._runs.clear()

    def take_back(self) -> None:
        """Forget the runs that wait for another connection.

        Between a break and its news commands may be written for the next connection.
        """
        for run in self._runs:
            self._client.take_back(run)
        self._runs.clear()


class PipelinedSender:
    """Sends each message as it comes; with `retry_for` again, whatever became of the others."""

    def __init__(
        self,
        api: Api,
        options: PublisherOptions,
        window: AckWindow,
        reply_prefix: bytes,
        destination: Destination | None,
    ) -> None:
        self._client = api.client
        self._writer = Writer(api)
        self._window = window
        self._ack_timeout = options.ack_timeout
        # Without retries a message's first failure is its last.
        self._retry_for = options.retry_for or 0.0
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.Task[None] | None = None
        # For deadlines, and for the next attempt.
        self._timer: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        self._is_write_due = False
        self._end: NatsStreamError | None = None
        self._reply_prefix = reply_prefix
        self._destination = destination
        self._wanted = options.stream or ("" if destination is None else destination.name)
        self._sent = 0
        self._pending: dict[bytes, AckFuture] = {}
        # Their replies by subject as of the last look, oldest first: a look for each of thousands
        # of denials took seconds.
        self._alike: dict[str, deque[bytes]] = {}
        self._looked_at = 0
        # Commands by reply: not written yet.
        self._waiting: dict[bytes, bytes] = {}
        self._waiting_bytes = 0
        # Those of them that were written before.
        self._repeated: set[bytes] = set()
        # Replies of those to send again once the stream was read.
        self._doubtful: set[bytes] = set()
        # The answer to those of them that had no responders; and those that no stream captures.
        self._unanswered: dict[bytes, NoRespondersError] = {}
        self._uncaptured: set[bytes] = set()
        self._breaks = 0
        self._is_held_up = False
        self._refused: list[bytes] = []

    @property
    def unsent_count(self) -> int:
        """Messages that no server has been sent yet."""
        return len(self._waiting.keys() - self._repeated)

    def add(self, subject: str, start: bytes, block: bytes, data: bytes) -> AckFuture:
        """Take a message that fits into the window; its id is in its block already."""
        if self._end is not None:
            raise self._end.with_traceback(None)  # Else it would grow with each call.
        loop = self._loop
        now = loop.time()
        self._sent += 1
        token = b"%x" % self._sent
        command = publish_command(start, token, block, data)
        entry = AckFuture(loop=loop)
        entry.subject, entry.command = subject, command
        entry.size = len(start) + len(block) + len(data)  # As the window was asked for it.
        entry.deadline, entry.give_up = now + self._ack_timeout, now + self._retry_for
        entry.is_over = entry.is_seen = False
        self._window.enter(entry)
        reply = self._reply_prefix + token
        self._pending[reply] = entry
        self._queue(reply, command)
        if self._timer is None:
            self._timer = loop.call_at(entry.deadline + TICK_S, self._tick)
        return entry

    def _queue(self, reply: bytes, command: bytes) -> None:
        self._waiting[reply] = command
        self._waiting_bytes += len(command)
        if self._waiting_bytes >= WRITE_BYTES and not self._is_held_up:
            self.write()
        elif not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self.write)

    def _repeat(self, reply: bytes) -> None:
        self._doubtful.add(reply)
        self._look_soon()

    def _look_soon(self) -> None:
        """Look at the stream, if something waits for that and there is a connection."""
        self._doubtful &= self._pending.keys()
        if self._doubtful and self._looking is None and self._writer.is_connected:
            self._looking = self._loop.create_task(self._look())

    async def _look(self) -> None:
        """Send again what the stream still captures; fail what another one has taken over.

        A message without responders fails as well, unless a stream captures its subject, whose
        leader may come back. An account may map the subject to a captured one, so the message is
        sent once more behind the stream's answer.
        """
        destination, breaks, asked = self._destination, self._breaks, self._doubtful.copy()
        if destination is None:
            return
        entries = {reply: self._pending[reply] for reply in asked if reply in self._pending}
        # Not of those that have ended by their time.
        self._unanswered = {
            reply: error for reply, error in self._unanswered.items() if reply in self._pending
        }
        self._uncaptured &= self._pending.keys()
        try:
            strays = await destination.strays({entry.subject for entry in entries.values()})
        except NatsStreamError:
            self._loop.call_later(RETRY_WAIT_S, self._look_soon)
            return
        finally:
            self._looking = None
        if breaks == self._breaks:  # Else there may be other streams by now.
            self._doubtful -= asked
            for reply, entry in entries.items():
                unanswered = self._unanswered.pop(reply, None)
                if reply not in self._pending:
                    continue  # The answer to the first copy came meanwhile.
                if entry.subject in strays:
                    del self._pending[reply]
                    self._window.fail(entry, taken_over(entry.subject, self._wanted))
                    continue
                if unanswered is not None and destination.lacks(entry.subject):
                    if reply in self._uncaptured:
                        del self._pending[reply]
                        self._window.fail(entry, unanswered)
                        continue
                    self._uncaptured.add(reply)
                self._repeated.add(reply)
                self._queue(reply, entry.command)
            self._window.wake()
        self._look_soon()

    def _drop_late(self) -> None:
        """Drop second copies that need not go, or could be stored beside the first one.

        They may have waited for a connection until the stream has forgotten the first one's id.
        """
        now = self._loop.time()
        for reply in self._repeated:
            entry = self._pending.get(reply)
            if entry is not None and now < entry.give_up:
                continue
            self._waiting_bytes -= len(self._waiting.pop(reply, b""))
            if entry is not None:
                del self._pending[reply]
                self._drop(entry, now)

    def write(self) -> None:
        """Send the waiting messages, if there is a connection."""
        self._is_write_due = False
        if not self._waiting or not self._writer.is_connected:
            return
        if self._repeated:
            self._drop_late()
            if not self._waiting:
                return
        self._is_held_up = False
        try:
            self._writer.write(b"".join(self._waiting.values()))
        except ConnectionLostError:  # Below, too much waits to be written already.
            self._is_held_up = True
            self._loop.call_later(TICK_S, self.write)
        except NatsStreamError as error:  # The connection is closed.
            self._fail_all(error)
        else:
            self._waiting, self._waiting_bytes = {}, 0
            self._repeated.clear()

    def on_acks(self, frames: list[Frame]) -> None:
        """Complete messages with their acks."""
        self._writer.heard()
        take, read, settle = self._pending.pop, read_quick_ack, self._window.settle
        for frame in frames:
            entry = take(frame[0], None)
            if entry is None:
                continue
            quick = read(frame[3])
            if quick is not None and self._wanted in ("", quick[0]):
                settle(entry, quick)
            else:
                self._on_other(frame, entry)
        self._window.wake()

    def _on_other(self, frame: Frame, entry: AckFuture) -> None:
        """Complete a message with an answer of another form, or of another stream."""
        try:
            ack = read_ack(frame, entry.subject)
            if self._wanted and ack.stream != self._wanted:
                check_teller(entry.subject, ack.stream, ack.sequence, self._wanted)
        except NatsStreamError as error:
            self._refuse(frame[0], entry, error)
        else:
            self._window.settle(entry, ack)

    def on_connection(self) -> None:
        """Send again after a reconnect; fail the messages that may not be sent again."""
        if self._writer.is_connected:
            self.write()
            self._look_soon()
            return
        self._writer.take_back()
        self._on_break()
        if self._client.is_closed:
            self._fail_all(self._client.closing_error())
        self._window.wake()

    def _on_break(self) -> None:
        self._breaks += 1
        for reply in self._repeated:
            if reply in self._waiting:  # Looked at before the break, and not written.
                self._waiting_bytes -= len(self._waiting.pop(reply))
        self._repeated.clear()
        for reply, entry in list(self._pending.items()):
            if reply in self._waiting:
                continue  # Not written yet.
            error = lost_error(f"publish to {entry.subject}")
            if self._may_go_again(entry, error):
                self._repeat(reply)
            else:
                del self._pending[reply]
                self._window.fail(entry, error)

    def on_denied(self, event: PermissionDenied) -> None:
        """Fail the oldest message of a subject that the user may not publish to."""
        # The server names the reply if that is what it does not allow.
        reply: bytes | None = event.subject.encode("utf-8", "surrogateescape")
        if reply not in self._pending:
            reply = self._oldest(event.subject)
        if reply is not None:
            self._window.fail(self._pending.pop(reply), denied_error(event))
            self._window.wake()

    def _oldest(self, subject: str) -> bytes | None:
        """Return the reply of the oldest message of a subject; None for none."""
        while True:
            alike = self._alike.get(subject)
            while alike:
                reply = alike.popleft()
                if reply in self._pending:
                    return reply
            if self._looked_at == self._sent:
                return None
            self._alike, self._looked_at = {}, self._sent
            for reply, entry in self._pending.items():
                self._alike.setdefault(entry.subject, deque()).append(reply)

    def entries(self) -> list[AckFuture]:
        """Return all messages that have not ended."""
        return list(self._pending.values())

    def _may_go_again(self, entry: AckFuture, error: NatsStreamError) -> bool:
        return error.retryable and self._loop.time() + RETRY_WAIT_S < entry.give_up

    def _refuse(self, reply: bytes, entry: AckFuture, error: NatsStreamError) -> None:
        """End a message that failed, or send it again after a moment."""
        if not self._may_go_again(entry, error):
            self._window.fail(entry, error)
            return
        self._pending[reply] = entry
        if isinstance(error, NoRespondersError):
            self._unanswered[reply] = error
        entry.deadline = self._next_deadline(entry, self._loop.time())
        self._refused.append(reply)
        if self._again is None:
            self._again = self._loop.call_later(RETRY_WAIT_S, self._send_again)

    def _send_again(self) -> None:
        self._again = None
        refused, self._refused = self._refused, []
        for reply in refused:
            entry = self._pending.get(reply)
            if entry is not None and reply not in self._waiting:
                self._repeat(reply)

    def _tick(self) -> None:
        """Go through what is overdue, and come back for what is next."""
        self._timer = None
        now = self._loop.time()
        for reply, entry in list(self._pending.items()):
            if entry.deadline > now:
                continue
            is_away = not self._writer.is_connected
            is_unsent = is_away and reply in self._waiting and reply not in self._repeated
            error = self._unsent(entry, now) if is_unsent else self._overdue(entry, now)
            may_go_again = self._may_go_again(entry, error)
            if may_go_again and is_unsent:
                entry.deadline = self._next_deadline(entry, now)
                continue  # It goes with the next connection, and needs no look at the stream.
            if self._waiting.pop(reply, None) is not None:
                self._waiting_bytes -= len(entry.command)
            if may_go_again:
                entry.deadline = self._next_deadline(entry, now)
                self._repeat(reply)
            else:
                del self._pending[reply]
                self._window.fail(entry, error)
        if self._pending:
            due = min(entry.deadline for entry in self._pending.values())
            self._timer = self._loop.call_at(due + TICK_S, self._tick)
        self._window.wake()

    def close(self, error: NatsStreamError) -> None:
        """Fail all messages that are left, and send nothing more."""
        for each in (self._timer, self._again, self._looking):
            if each is not None:
                each.cancel()
        self._fail_all(error)

    def _fail_all(self, error: NatsStreamError) -> None:
        """Fail all messages that are left, and later ones too."""
        self._end = error
        self._writer.take_back()
        entries = self.entries()
        self._pending, self._waiting, self._waiting_bytes = {}, {}, 0
        self._repeated.clear()
        self._doubtful.clear()
        self._unanswered.clear()
        self._uncaptured.clear()
        for entry in entries:
            self._window.fail(entry, error)
        self._window.wake_all()

    def _drop(self, entry: AckFuture, now: float) -> None:
        """Fail a message that has waited for too long."""
        self._window.fail(entry, self._overdue(entry, now))
        self._window.wake()

    def _next_deadline(self, entry: AckFuture, now: float) -> float:
        """Return when the next attempt of a message that may go again is over."""
        return min(now + self._ack_timeout, entry.give_up)

    def _overdue(self, entry: AckFuture, now: float) -> NatsStreamError:
        waited_s = now - entry.give_up + self._retry_for
        return overdue_error(entry.subject, round(waited_s, 1), self._client.loss)

    def _unsent(self, entry: AckFuture, now: float) -> NatsStreamError:
        limit = "retry_for" if self._retry_for else "ack_timeout"
        error = self._client.unsent_error(now - entry.give_up + self._retry_for, limit)
        error.name_call(f"publish to {entry.subject}")
        return error
