"""Sizes of the messages in memory, as numbers that follow each edit; pure rules.

Law: a number is kept up to date by the edits, so that a write costs the same in a long stream. They
are kept only while a limit needs them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from natsstream.conat.configuration import Configuration
from natsstream.conat.reconcile import Reconciler
from natsstream.conat.record import Record
from natsstream.conat.sizes import logical_size
from natsstream.conat.views import Codec
from natsstream.errors import CodecError
from natsstream.units import NS_PER_SECOND


class Usage:
    """The logical sizes of the messages of one core stream.

    Args:
        rules: The arrays.
        codec: Reads their records.

    Attributes:
        size: Sum of all logical sizes.
    """

    def __init__(self, rules: Reconciler, codec: Codec) -> None:
        self.size: int = 0
        self._log = rules.log
        self._codec = codec
        self._is_kept = False
        # Time and size of the messages of about the last second, by sequence.
        self._fresh: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._fresh_size = 0

    def follow(self, config: Configuration) -> None:
        """Keep the numbers from now on if a limit needs them, else forget them.

        Cost: a look at every message when the first limit is set, nothing otherwise.
        """
        rates = (config.max_msgs_per_second, config.max_bytes_per_second)
        is_needed = config.max_bytes >= 0 or max(rates) > 0
        if is_needed == self._is_kept:
            return
        self._is_kept = is_needed
        self.size = self._fresh_size = 0
        self._fresh.clear()
        self._log.observer = self._count if is_needed else None
        if is_needed:
            for record in self._log.records():
                self._count(record, 1)

    def recent(self, now_ns: int) -> tuple[int, int]:
        """Return number and logical size of the messages of the last second."""
        self._forget_before(now_ns - NS_PER_SECOND)
        return len(self._fresh), self._fresh_size

    def sizes(self) -> Iterator[int]:
        """Yield the logical sizes, the oldest message's first."""
        return map(self._size_of, self._log.records())

    def _count(self, record: Record, sign: int) -> None:
        size = self._size_of(record)
        self.size += sign * size
        if sign < 0:
            _, fresh_size = self._fresh.pop(record.seq, (0, 0))
            self._fresh_size -= fresh_size
        else:
            self._fresh[record.seq] = record.time_ns, size
            self._fresh_size += size
            self._forget_before(record.time_ns - NS_PER_SECOND)

    def _forget_before(self, time_ns: int) -> None:
        while self._fresh and next(iter(self._fresh.values()))[0] < time_ns:
            _, (_, size) = self._fresh.popitem(last=False)
            self._fresh_size -= size

    def _size_of(self, record: Record) -> int:
        headers = self._codec.headers(record)
        try:
            blob = headers.blob
            size = len(record.data) if blob is None else blob.size
            return logical_size(headers.user, size, self._codec.key(record))
        except CodecError:
            return len(record.data)  # Another program wrote it.
