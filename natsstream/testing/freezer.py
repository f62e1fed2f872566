"""SIGSTOP pulses: a process pauses and resumes again and again, as on an overloaded machine."""

from __future__ import annotations

import random
import signal
import threading
from typing import TYPE_CHECKING

from natsstream.arguments import check_int, check_seconds
from natsstream.errors import NatsStreamError, UsageError
from natsstream.testing.atexit_stop import AtExit

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from typing import Self

PULSES_MAX = 100_000
JOIN_WAIT_S = 30.0


class Freezer:
    """Pauses and resumes one process on a thread, between entering and leaving a `with` block.

    The process resumes when the block is left, when all pulses are done, and at the normal end of
    Python. Pulses end early when the process ends.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        paused_s: float,
        running_s: float,
        count: int,
        seed: int | None = None,
    ) -> None:
        """Describe pulses; nothing is paused yet.

        Args:
            process: The process that is paused.
            paused_s: Seconds that it stands still in each pulse.
            running_s: Seconds that it runs after each pulse.
            count: Number of pulses, at most 100,000.
            seed: With a seed, each time is drawn between half and one and a half of the given one,
                the same for the same seed. None takes the times as they are.

        Raises:
            UsageError: A time that is not positive, or a count that is out of range.
        """
        for name, seconds in (("paused_s", paused_s), ("running_s", running_s)):
            if not 0 < check_seconds(seconds, name, may_be_zero=True) < threading.TIMEOUT_MAX:
                message = f"{name} is {seconds}, it must be positive"
                raise UsageError(message, hint="for a lasting pause use pause() and resume()")
        if not 1 <= check_int(count, "count") <= PULSES_MAX:
            raise UsageError(f"count is {count}, it must be between 1 and {PULSES_MAX}")
        self._process = process
        self._paused_s = paused_s
        self._running_s = running_s
        self._count = count
        self._seed = seed
        self._n_done = 0
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._at_exit = AtExit(self.stop)

    def __enter__(self) -> Self:
        self._ends.clear()
        self._n_done = 0
        # After the server's own exit handler, so it runs before it.
        self._at_exit.arm()
        name = f"natsstream-pulses-{self._process.pid}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def done_count(self) -> int:
        """Number of pulses whose pause is over."""
        return self._n_done

    def wait(self, timeout: float) -> bool:
        """Return True when all pulses are done, or the process has ended, within some seconds."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def stop(self) -> None:
        """End the pulses and let the process go on; stopping twice is fine.

        Raises:
            NatsStreamError: The thread does not end.
        """
        self._at_exit.disarm()
        self._ends.set()
        if not self.wait(JOIN_WAIT_S):
            message = f"the pulses of pid {self._process.pid} do not end within {JOIN_WAIT_S} s"
            raise NatsStreamError(message)

    def _run(self) -> None:
        try:
            times = draw_times(self._paused_s, self._running_s, self._count, self._seed)
            for paused_s, running_s in times:
                if self._process.poll() is not None:
                    return
                self._process.send_signal(signal.SIGSTOP)
                has_ended = self._ends.wait(paused_s)
                self._process.send_signal(signal.SIGCONT)
                self._n_done += 1
                if has_ended or self._ends.wait(running_s):
                    return
        finally:
            self._process.send_signal(signal.SIGCONT)


def draw_times(
    paused_s: float, running_s: float, count: int, seed: int | None
) -> Iterator[tuple[float, float]]:
    """Yield the seconds of each pause, and of the run after it."""
    draw = random.Random(seed)  # noqa: S311 - Times that can be repeated, no secrets.
    for _ in range(count):
        if seed is None:
            yield paused_s, running_s
        else:
            yield paused_s * draw.uniform(0.5, 1.5), running_s * draw.uniform(0.5, 1.5)
