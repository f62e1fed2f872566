"""How many messages are asked for before a handler is free, where nobody says how many; pure.

Law: a worker holds what it handles in a tenth of a second, and never less than one message for each
handler. Slow handlers leave the rest to other workers; quick ones do not wait for the server.
"""

from __future__ import annotations

WINDOW_MAX = 512
AHEAD_S = 0.1
# As many messages are looked at together.
_SAMPLE_MIN = 64
# Where more than this share was delivered before, some worker has just died of one of them: each
# message that is held takes part in the next death, and uses up a delivery.
_AGAIN_SHARE = 0.25


class PrefetchWindow:
    """Measures one worker.

    Args:
        base: The smallest window: handlers that run side by side.
        now_s: The time, in seconds of any clock.

    Attributes:
        window: Messages to ask for now.
    """

    def __init__(self, base: int, now_s: float) -> None:
        self.window: int = base
        self._base = base
        self._sample = max(base, _SAMPLE_MIN)
        self._since_s = now_s
        self._done = 0
        self._again = 0

    def count(self, delivered: int) -> bool:
        """Count a message that was handled; True when it is time to `measure`.

        Args:
            delivered: How often it was delivered, from 1.
        """
        self._done += 1
        if delivered > 1:
            self._again += 1
        return self._done >= self._sample

    def measure(self, now_s: float) -> int:
        """Return the window from what was counted since the last time; a power of two above base.

        Args:
            now_s: The time, in seconds of the same clock.
        """
        done, again, took_s = self._done, self._again, max(now_s - self._since_s, 1e-6)
        self._done = self._again = 0
        self._since_s = now_s
        ahead = min(int(done / took_s * AHEAD_S), WINDOW_MAX)
        if ahead <= self._base or again > done * _AGAIN_SHARE:
            self.window = self._base
        else:
            # Few different windows: each has pulls of its own, which are kept ready as bytes.
            self.window = max(self._base, 1 << (ahead.bit_length() - 1))
        return self.window
