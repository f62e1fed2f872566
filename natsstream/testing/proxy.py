"""A TCP proxy on 127.0.0.1 whose link can be made slow, silent or broken while it runs."""

from __future__ import annotations

import contextlib
import socket
import sys
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from natsstream.constructors import answers_arguments
from natsstream.errors import UsageError
from natsstream.testing.atexit_stop import AtExit
from natsstream.testing.loops import LoopThread
from natsstream.testing.pipes import HELD_BYTES_MAX, RESET_ON_CLOSE, Connection, Faults
from natsstream.testing.ports import HOST, check_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

Direction: TypeAlias = Literal["to_server", "to_client", "both"]

# 2 directions x 1 MiB held x 256 connections = 512 MiB worst case, which needs a fault on each.
CONNECTIONS_MAX = 256
LISTEN_BACKLOG = 128
# When the process has no descriptors left, accepting is tried again after this time.
ACCEPT_PAUSE_S = 0.5
_PORT_HINT = "pass the port that the server listens on"


@answers_arguments
class FaultProxy:
    """A TCP proxy in front of one port of 127.0.0.1, for tests of what a network does to a program.

    ```python
    with NatsServer() as server, FaultProxy(server.port) as proxy:
        async with natsstream.connect(proxy.url) as js:
            proxy.stall()  # A frozen link: connections stay open, nothing arrives.
            proxy.heal()
            proxy.cut()  # A dead one: connections are reset, new ones are refused.
            proxy.heal()
    ```

    A server may be stopped and started behind it: new connections go to whatever listens on
    `target_port` then, and are reset while nothing does. It lives until `stop()`, the end of its
    `with` block, or the normal end of the Python process. Its methods may be called from any thread
    and from async code; each takes effect before it returns and takes microseconds.

    Faults add up, each direction has its own, and they hold for all connections, old and new.

    Cost: on two cores a round trip takes some 0.04 ms longer, and 300 to 600 MB/s go through.
    """

    def __init__(
        self, target_port: int | None = None, *, loop_thread: LoopThread | None = None
    ) -> None:
        """Describe a proxy; nothing listens yet.

        Args:
            target_port: Port on 127.0.0.1 that connections go to. None while it is not known yet:
                connections wait for it, 10 s at most.
            loop_thread: The thread that forwards, to share one between proxies; it must run from
                `start()` to `stop()`. None makes one for this proxy alone.

        Raises:
            UsageError: The port is not between 1 and 65535.
        """
        self._target_port = check_port(target_port, hint=_PORT_HINT)
        self._thread = loop_thread if loop_thread is not None else LoopThread("natsstream-proxy")
        self._owns_thread = loop_thread is None
        self._to_server = Faults()
        self._to_client = Faults()
        self._is_cut = False
        self._connections: set[Connection] = set()
        self._n_accepted = 0
        self._port: int | None = None
        # Bound but not listening: it keeps the port while the listener is closed by `cut()`.
        self._reservation: socket.socket | None = None
        self._listener: socket.socket | None = None
        self._at_exit = AtExit(self._stop_at_exit)

    def __repr__(self) -> str:
        state = f"port {self._port}" if self._port is not None else "not running"
        return f"<FaultProxy {state}, to port {self._target_port}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def target_port(self) -> int | None:
        """Port that new connections go to; may be set at any time.

        With None they wait until it is set, 10 s at most.
        """
        return self._target_port

    @target_port.setter
    def target_port(self, port: int | None) -> None:
        checked = check_port(port, hint=_PORT_HINT)

        def change() -> None:
            self._target_port = checked
            if checked is not None:
                for connection in list(self._connections):
                    connection.connect(checked)

        self._apply(change)

    @property
    def port(self) -> int:
        """Port that the proxy listens on, chosen by `start()` and given up by `stop()`.

        Raises:
            UsageError: The proxy is not running.
        """
        if self._port is None:
            message = "the proxy is not running, so it has no port"
            raise UsageError(message, hint="call start(), or use the proxy in a with statement")
        return self._port

    @property
    def url(self) -> str:
        """Address for NATS clients, `nats://127.0.0.1:<port>`.

        Raises:
            UsageError: The proxy is not running.
        """
        return f"nats://{HOST}:{self.port}"

    @property
    def connection_count(self) -> int:
        """Number of connections that are open through the proxy now, at most 256."""
        return len(self._connections)

    @property
    def accepted_count(self) -> int:
        """Number of connections that were accepted since the proxy was made."""
        return self._n_accepted

    def byte_count(self, direction: Direction = "both") -> int:
        """Return the number of bytes forwarded since the proxy was made.

        Args:
            direction: Whose bytes; `both` is the sum.
        """
        return sum(faults.n_bytes for faults in self._faults_of(direction))

    @property
    def held_count(self) -> int:
        """Number of bytes that wait in the proxy now, at most 1 MiB a direction and connection."""
        return sum(connection.n_held for connection in list(self._connections))

    def start(self) -> Self:
        """Listen on a free port and return the proxy; a running one stays as it is.

        Raises:
            OSError: The system has no port or no descriptor left.
        """
        if self._port is not None:
            return self
        try:
            self._reservation = _bound_socket(0)
            self._port = cast("tuple[str, int]", self._reservation.getsockname())[1]
            if self._owns_thread:
                self._thread.start()
            self._at_exit.arm()
            self._thread.call(self._listen)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Reset all connections, close the listener and end the thread; stopping twice is fine.

        Raises:
            NatsStreamError: The thread does not end within 30 s.
        """
        self._at_exit.disarm()
        if self._thread.is_running:
            self._thread.call(self._close)
        if self._owns_thread:
            self._thread.stop()
        self._port = None
        if self._reservation is not None:
            self._reservation.close()
            self._reservation = None

    def delay(self, seconds: float, *, direction: Direction = "both") -> None:
        """Let every byte arrive later by some seconds; order and throughput are kept.

        Up to 1 MiB of each direction of a connection waits in the proxy; with more than that on the
        way, the sender is held back.

        Args:
            seconds: Seconds from arrival to departure; 0 ends the delay.
            direction: Which bytes; a round trip takes twice as long with `both`.

        Raises:
            UsageError: The time is negative or not finite.
        """
        if not 0 <= seconds < float("inf"):
            message = f"a delay of {seconds} s is not possible"
            raise UsageError(message, hint="use stall() for a link that delivers nothing")
        self._set(direction, "delay_s", seconds)

    def limit_rate(self, bytes_per_s: int, *, direction: Direction = "both") -> None:
        """Forward at most so many bytes in a second, on each connection and in each direction.

        Args:
            bytes_per_s: Bytes in a second; 0 ends the limit.
            direction: Which bytes.

        Raises:
            UsageError: The rate is negative.
        """
        if bytes_per_s < 0:
            message = f"a rate of {bytes_per_s} bytes a second is not possible"
            raise UsageError(message, hint="use stall() for a link that delivers nothing")
        self._set(direction, "bytes_per_s", bytes_per_s)

    def stall(self, *, direction: Direction = "both") -> None:
        """Forward nothing more: connections stay open, and new ones are accepted.

        The proxy reads nothing either, so that a sender is held back as soon as the system's
        buffers are full. `heal()` sends the data it had read before.

        Args:
            direction: Which bytes are held.
        """
        self._set(direction, "is_stalled", True)  # noqa: FBT003 - The value of a field.

    def truncate(self, n_bytes: int, *, direction: Direction = "to_client") -> None:
        """Forward n more bytes, then end the connection that carried the last of them, once.

        The receiver gets exactly these bytes and the end of the connection, most likely in the
        middle of a frame; the sender is reset. All connections count together, the others go on and
        new ones are accepted.

        Args:
            n_bytes: Number of bytes, at least 1.
            direction: Whose bytes are counted; with `both`, each direction counts its own, and so
                one connection may end by each.

        Raises:
            UsageError: The number is not positive.
        """
        if n_bytes < 1:
            message = f"{n_bytes} bytes cannot be forwarded before the end"
            raise UsageError(message, hint="use cut() to end all connections at once")
        self._set(direction, "bytes_left", n_bytes)

    def inject(self, data: bytes, *, direction: Direction = "to_client") -> None:
        """Send bytes of your own on every open connection, once, wherever in its flow that is.

        They stand behind what has arrived at the proxy, so most likely within a frame; a program
        that speaks NATS must take them for no NATS, and connect again.

        Args:
            data: The bytes, at most 1 MiB.
            direction: The receiving side.

        Raises:
            UsageError: They are more, or none.
        """
        if not 0 < len(data) <= HELD_BYTES_MAX:
            message = f"{len(data)} bytes cannot be injected"
            raise UsageError(message, hint="give 1 byte to 1 MiB, more than once if need be")
        ways = [faults is self._to_server for faults in self._faults_of(direction)]

        def send() -> None:
            for connection in list(self._connections):
                for to_server in ways:
                    connection.inject(data, to_server=to_server)

        self._apply(send)

    def cut(self) -> None:
        """Reset all connections and refuse new ones until `heal()`; the port stays the proxy's."""
        self._apply(self._cut)

    def reset(self) -> None:
        """Reset all connections once; new ones are accepted as before."""
        self._apply(self._abort_all)

    def heal(self) -> None:
        """End all faults: held data is sent at once, and new connections are accepted."""
        self._apply(self._recover)

    def _faults_of(self, direction: Direction) -> tuple[Faults, ...]:
        by_direction = {
            "to_server": (self._to_server,),
            "to_client": (self._to_client,),
            "both": (self._to_server, self._to_client),
        }
        if direction not in by_direction:
            message = f"{direction!r} is not a direction"
            raise UsageError(message, hint=f"one of {', '.join(by_direction)}")
        return by_direction[direction]

    def _set(self, direction: Direction, field: str, value: float) -> None:
        faults_of_direction = self._faults_of(direction)

        def change() -> None:
            for faults in faults_of_direction:
                setattr(faults, field, value)
            for connection in list(self._connections):
                connection.pump()

        self._apply(change)

    def _apply(self, change: Callable[[], None]) -> None:
        """Make a change on the loop's thread; a fault may be set before that runs."""
        if self._port is not None:
            self._thread.call(change)
        else:
            change()

    # All below runs on the loop's thread.

    def _listen(self) -> None:
        if self._listener is None and self._port is not None and not self._is_cut:
            listener = _bound_socket(self._port)
            listener.settimeout(0)
            listener.listen(LISTEN_BACKLOG)
            self._thread.loop.add_reader(listener, self._accept)
            self._listener = listener

    def _accept(self) -> None:
        listener = self._listener
        if listener is None:
            return
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            # No descriptor is left. The listener stays readable, so it is not watched for a while.
            self._thread.loop.remove_reader(listener)
            self._thread.loop.call_later(ACCEPT_PAUSE_S, self._accept_again, listener)
            return
        if len(self._connections) >= CONNECTIONS_MAX:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            client.close()
            return
        self._n_accepted += 1
        client.settimeout(0)
        try:
            connection = Connection(
                self._thread.loop,
                client,
                self._to_server,
                self._to_client,
                self._connections.discard,
            )
        except OSError:
            client.close()
            return
        self._connections.add(connection)
        if self._target_port is not None:
            connection.connect(self._target_port)

    def _accept_again(self, listener: socket.socket) -> None:
        if listener is self._listener:
            self._thread.loop.add_reader(listener, self._accept)

    def _abort_all(self) -> None:
        for connection in list(self._connections):
            connection.abort()

    def _cut(self) -> None:
        self._is_cut = True
        self._close()

    def _recover(self) -> None:
        self._is_cut = False
        self._to_server.heal()
        self._to_client.heal()
        self._listen()
        for connection in list(self._connections):
            connection.pump()

    def _close(self) -> None:
        if self._listener is not None:
            self._thread.loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        self._abort_all()

    def _stop_at_exit(self) -> None:
        with contextlib.suppress(OSError):
            self.stop()


def _bound_socket(port: int) -> socket.socket:
    """Return a socket on the port that lets another socket of this proxy have the port as well."""
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform != "linux":
            # Only Linux lets two sockets share a port with SO_REUSEADDR while one at most listens.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((HOST, port))
    except BaseException:
        bound.close()
        raise
    return bound
