"""A small model of a server with one pull consumer, and of the way to it, on any event loop.

The way may lose, hold back and double what the server says; the consumer may forget its pulls with
a word or without one; the connection may break. Commands that the client writes arrive in order.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from natsstream.consume.delivery.source import ConsumerSource
from natsstream.errors import ConnectionLostError, RequestTimeoutError
from natsstream.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream._wire.parser import Frame
    from natsstream.api.requests import Api

TRIP_S = 0.002
# A message that was lost comes again after so long.
ACK_WAIT_S = 3.0


@dataclass
class Faults:
    """How often what goes wrong, as shares of all frames of the server.

    Attributes:
        lost: It never arrives.
        late: It arrives up to `late_s` seconds later, behind what was said after it.
        doubled: A status arrives twice.
    """

    lost: float = 0.0
    late: float = 0.0
    late_s: float = 0.0
    doubled: float = 0.0


@dataclass(eq=False)
class Pull:
    """A pull that waits at the server."""

    reply: str
    left: int
    expires_at: float
    heartbeat_s: float
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


class PullServer:
    """The consumer, and the client that the library holds for a connection to it.

    Attributes:
        pending: Messages that are not out, by number.
        out: Messages that are out and not acked.
        acked: Messages that were acked.
        pulls: The pulls that wait.
        pulls_max: The most that ever waited for an inbox that is listened to.
        faults: What goes wrong on the way now.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - it draws faults.
        self.faults = Faults()
        self.pending: deque[int] = deque()
        self.out: set[int] = set()
        self.acked: set[int] = set()
        self.pulls: deque[Pull] = deque()
        self.pulls_max = 0
        self.client = FakeClient(self)
        self.source = ConsumerSource(
            api=cast("Api", FakeApi(self)), stream="S", consumer="c", created_ns=1
        )
        self.is_frozen = False
        self._loop = asyncio.get_running_loop()
        self._delivered = 0
        self._last_arrival = 0.0

    def store(self, count: int) -> None:
        """Store messages."""
        first = len(self.pending) + len(self.out) + len(self.acked)
        self.pending.extend(range(first, first + count))
        self._deliver()

    @property
    def waiting(self) -> int:
        """Pulls of inboxes that are listened to."""
        return sum(self.client.listens(pull.reply) for pull in self.pulls)

    # Faults.

    def move(self, *, tells: bool) -> None:
        """Move the consumer to another server: it knows of no pull."""
        pulls, self.pulls = self.pulls, deque()
        for pull in pulls:
            self._end_timers(pull)
            if tells:
                self._say(pull.reply, b"409 Leadership Change")

    # What arrives.

    def take(self, subject: str, reply: str, body: bytes) -> None:
        """Take a command of the client."""
        if subject.startswith("$JS.ACK."):
            self._settle(int(subject.split(".")[5]) - 1, body)
            return
        asked = json.loads(body)
        if asked.get("no_wait") and not self.pending:
            self._say(reply, b"404 No Messages")
            return
        now = self._loop.time()
        expires_s = asked.get("expires", 0) / 1e9
        heartbeat_s = asked.get("idle_heartbeat", 0) / 1e9
        pull = Pull(reply, asked["batch"], now + expires_s, heartbeat_s)
        self.pulls.append(pull)
        self.pulls_max = max(self.pulls_max, self.waiting)
        pull.timers.append(self._loop.call_later(expires_s, self._expire, pull))
        if heartbeat_s:
            pull.timers.append(self._loop.call_later(heartbeat_s, self._beat, pull))
        self._deliver()

    def miss(self, subject: str | bytes = "") -> None:
        """Take note of a command that was lost with its connection: an ack is missed in time."""
        if isinstance(subject, str) and subject.startswith("$JS.ACK."):
            number = int(subject.split(".")[5]) - 1
            self._loop.call_later(ACK_WAIT_S, self._come_again, number)

    def _settle(self, number: int, body: bytes) -> None:
        if number in self.out:
            if body == b"+ACK":
                self.out.discard(number)
                self.acked.add(number)
            elif body == b"-NAK":
                self.out.discard(number)
                self.pending.appendleft(number)
                self._deliver()

    # What is said.

    def _deliver(self) -> None:
        while self.pending and self.pulls:
            pull = self.pulls.popleft()
            if not self.client.listens(pull.reply):
                self._end_timers(pull)
                continue
            number = self.pending.popleft()
            self.out.add(number)
            self._delivered += 1
            pull.left -= 1
            if pull.left:
                self.pulls.append(pull)  # They take turns.
            else:
                self._end_timers(pull)
            ack = f"$JS.ACK.S.c.1.{number + 1}.{self._delivered}.1.0"
            if not self._send(pull.reply, (b"S.x", ack.encode(), b"", b"")):
                self._loop.call_later(ACK_WAIT_S, self._come_again, number)

    def _come_again(self, number: int) -> None:
        if number in self.out:
            self.out.discard(number)
            self.pending.append(number)
            self._deliver()

    def _expire(self, pull: Pull) -> None:
        if pull in self.pulls:
            self.pulls.remove(pull)
            self._end_timers(pull)
            self._say(
                pull.reply,
                b"408 Request Timeout\r\nNats-Pending-Messages: %d\r\nNats-Pending-Bytes: 0"
                % pull.left,
            )

    def _beat(self, pull: Pull) -> None:
        self._say(pull.reply, b"100 Idle Heartbeat\r\nNats-Last-Consumer: 1\r\nNats-Last-Stream: 1")
        pull.timers.append(self._loop.call_later(pull.heartbeat_s, self._beat, pull))

    def _say(self, reply: str, line: bytes) -> None:
        frame = (reply.encode(), b"", b"NATS/1.0 %b\r\n\r\n" % line, b"")
        self._send(reply, frame)
        if self.random.random() < self.faults.doubled:
            self._send(reply, frame)

    def _send(self, reply: str, frame: Frame) -> bool:
        """Send a frame to the client; False when it is lost."""
        if self.is_frozen or self.random.random() < self.faults.lost:
            return False
        connection, now = self.client.connections, self._loop.time()
        late_s = 0.0
        if self.random.random() < self.faults.late:
            late_s = self.random.uniform(0, self.faults.late_s)
        if not self.client.is_connected:
            return False
        self._last_arrival = max(self._last_arrival, now + TRIP_S + late_s)
        self._loop.call_at(now + TRIP_S + late_s, self._arrive, connection, reply, frame)
        return True

    def _arrive(self, connection: int, reply: str, frame: Frame) -> None:
        is_same = self.client.is_connected and self.client.connections == connection
        heard = is_same and self.client.hand_over(reply, frame)
        if not heard and frame[1]:
            self._loop.call_later(ACK_WAIT_S, self._come_again, int(frame[1].split(b".")[5]) - 1)

    @property
    def all_said_at(self) -> float:
        """When the last frame that was said will have arrived."""
        return self._last_arrival

    def _end_timers(self, pull: Pull) -> None:
        for timer in pull.timers:
            timer.cancel()


class FakeClient:
    """What pulls use of a connection."""

    def __init__(self, server: PullServer) -> None:
        self.options = SimpleNamespace(request_timeout=5.0, running_reconnect_s=60.0)
        self.loop = asyncio.get_running_loop()
        self.is_connected = True
        self.is_closed = False
        self.connections = 1
        self.subscriptions: dict[str, Callable[[list[Frame]], None]] = {}
        self.refused_acks: dict[tuple[str, str], object] = {}
        self._server = server
        self._watchers: list[Callable[[], None]] = []
        self._inboxes = 0
        self._back = asyncio.Event()
        self._flushes: list[Callable[[], None]] = []
        # What the server knows of; it learns of ends a trip later.
        self._known: set[str] = set()

    def new_inbox(self) -> str:
        self._inboxes += 1
        return f"_INBOX.{self._inboxes}"

    def listens(self, reply: str) -> bool:
        return self.is_connected and reply.rpartition(".")[0] in self._known

    def hand_over(self, reply: str, frame: Frame) -> bool:
        sink = self.subscriptions.get(reply.rpartition(".")[0])
        if sink is not None:
            sink([frame])
        return sink is not None

    async def subscribe(
        self, subject: str, sink: Callable[[list[Frame]], None], **_: object
    ) -> SimpleNamespace:
        inbox = subject.removesuffix(".*")
        self.subscriptions[inbox] = sink
        self._known.add(inbox)

        def stop() -> None:
            self._later(lambda: self._known.discard(inbox))

        def close() -> None:
            self.subscriptions.pop(inbox, None)
            stop()

        return SimpleNamespace(stop=stop, close=close)

    def publish_command(self, subject: str, reply: str, headers: bytes, payload: bytes) -> bytes:
        return headers + f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n"

    def write(self, commands: bytes) -> bool:
        while commands:
            line, _, rest = commands.partition(b"\r\n")
            _, subject, *reply, size = line.decode().split()
            body, commands = rest[: int(size)], rest[int(size) + 2 :]
            self._later(self._take_command, subject, reply[0] if reply else "", body)
        return True

    def _take_command(self, subject: str, reply: str, body: bytes) -> None:
        self._server.take(subject, reply, body)

    def _later(self, act: Callable[..., None], *args: str | bytes) -> None:
        connection = self.connections

        def arrive() -> None:
            if self.is_connected and self.connections == connection:
                act(*args)
            else:
                self._server.miss(*args[:1])

        asyncio.get_running_loop().call_later(TRIP_S, arrive)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def watch_denied(self, sink: Callable[..., None]) -> Callable[[], None]:
        del sink
        return lambda: None

    def when_flushed(self, then: Callable[[], None]) -> bool:
        """As a PONG does: behind all that was said before."""
        if not self.is_connected:
            return False
        self._flushes.append(then)
        at = max(asyncio.get_running_loop().time() + 2 * TRIP_S, self._server.all_said_at)
        asyncio.get_running_loop().call_at(at + TRIP_S, self._end_flush, then)
        return True

    def _end_flush(self, then: Callable[[], None]) -> None:
        if then in self._flushes:
            self._flushes.remove(then)
            then()

    async def flush(self, timeout: float, **_: object) -> None:
        del timeout
        await asyncio.sleep(2 * TRIP_S)

    def check_loop(self) -> None:
        """Every loop is its own."""

    async def wait_connected(self, timeout: float, **_: object) -> None:
        if self.is_connected:
            return
        try:
            async with asyncio.timeout(timeout):
                await self._back.wait()
        except TimeoutError:
            raise ConnectionLostError("no server came back", retryable=True) from None

    def cut(self) -> None:
        """Break the connection; the server forgets what is listened to."""
        self.is_connected = False
        self._back.clear()
        flushes, self._flushes = self._flushes, []
        for then in flushes:
            then()
        self._tell()

    def reconnect(self) -> None:
        """Come back; what is listened to is told to the server again."""
        self.is_connected = True
        self.connections += 1
        self._known = set(self.subscriptions)
        self._server.move(tells=False)
        self._back.set()
        self._tell()

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()


class FakeApi:
    """What pulls ask of JetStream's API."""

    def __init__(self, server: PullServer) -> None:
        self.client = server.client
        self._server = server

    def subject(self, subject: str) -> str:
        return subject

    async def read(self, subject: str, body: Any, *, what: str, timeout: float) -> Fields:
        """Answer with the consumer's info."""
        del subject, body
        connection = self.client.connections
        await asyncio.sleep(min(2 * TRIP_S, timeout))
        is_same = self.client.is_connected and self.client.connections == connection
        if not is_same or self._server.is_frozen:
            await asyncio.sleep(max(timeout - 2 * TRIP_S, 0))
            raise RequestTimeoutError(f"{what}: no answer", retryable=True)
        waiting = self._server.waiting
        return Fields(
            {
                "stream_name": "S",
                "name": "C",
                "config": {"max_waiting": 512},
                "delivered": {"stream_seq": 0},
                "ack_floor": {"stream_seq": 0},
                "num_pending": len(self._server.pending),
                "num_waiting": waiting,
                "created": "1970-01-01T00:00:00.000000001Z",
            },
            what,
        )
