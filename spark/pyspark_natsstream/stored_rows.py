"""The rows of a task that are stored already, as the producer's checkpoint tells; pure rules.

    {"batch": 7, "rows": 997, "digest": "5f2c...", "partitions": 4}

Law: rows count as stored only if the task gives them again, in the same order. If it gives others,
the write stops: to go on would lose rows or store them twice.

The end of the rows is not kept: where Spark fails to compute a row, the rows before it come as if
they were all.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Self, cast

from natsstream.errors import IntegrityError

if TYPE_CHECKING:
    from pyspark_natsstream.rows import Row

_DIGEST_BYTES = 8
_ADVICE = (
    "make the input the same at every attempt: restart with the same options and number of "
    "partitions, sort within partitions, or write a checkpointed DataFrame; or take "
    "guarantee=duplicate-window with idColumn"
)


class InputChangedError(IntegrityError):
    """A task that runs again has other rows than those which its first attempt has stored."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """How far the rows of a partition are stored.

    Attributes:
        batch: The number of the micro-batch; 0 in a batch write.
        rows: Rows of it that are stored.
        digest: A hash of their identities, in their order.
        partitions: Partitions of the write; 0 if it did not say.
    """

    batch: int
    rows: int = 0
    digest: str = ""
    partitions: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the checkpoint of the producer."""
        return asdict(self)

    @classmethod
    def of(cls, checkpoint: object, batch: int, partitions: int = 0) -> Self:
        """Return what is stored of a batch.

        Args:
            checkpoint: The checkpoint that the producer recovered; None without one.
            batch: The batch that is written now.
            partitions: Partitions of the write; 0 if it does not say.

        Raises:
            InputChangedError: A later batch is stored, the write had another number of partitions,
                or the checkpoint is not of this class.
        """
        if checkpoint is None:
            return cls(batch, partitions=partitions)
        try:
            found = cls(**cast("dict[str, object]", checkpoint))  # pyright: ignore[reportArgumentType] - Checked below.
        except TypeError as error:
            raise InputChangedError(
                f"the producer's checkpoint is {checkpoint!r}, which no write to Spark has stored",
                hint="give the write another job name",
            ) from error
        if found.batch > batch:
            raise InputChangedError(
                f"batch {batch} is written, and batch {found.batch} is stored already",
                hint="another query writes with this checkpoint, or the checkpoint is an old copy; "
                "a new checkpoint needs another job name",
            )
        if found.batch < batch:
            return cls(batch, partitions=partitions)
        if found.partitions != partitions:
            raise _other_partitions(found, partitions)
        return found


class RowCheck:
    """Follows the rows of an attempt, and tells which of them are stored.

    Args:
        stored: The rows that earlier attempts have stored.
        job: The name of the write, for errors.
    """

    def __init__(self, stored: StoredRows, job: str) -> None:
        self._stored = stored
        self._job = job
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self.rows = 0

    def is_stored(self, row: Row) -> bool:
        """Take the next row, and return True if it is stored.

        Raises:
            InputChangedError: The rows so far are not those that are stored.
        """
        self._digest.update(b"%d " % len(row.identity))
        self._digest.update(row.identity)
        self.rows += 1
        if self.rows > self._stored.rows:
            return False
        if self.rows == self._stored.rows and self._digest.hexdigest() != self._stored.digest:
            raise self._changed(f"begins with {self.rows} rows that are not those stored")
        return True

    def end(self) -> None:
        """Note that there are no more rows.

        Raises:
            InputChangedError: Earlier attempts have stored more rows than there are now.
        """
        if self.rows < self._stored.rows:
            raise self._changed(f"had {self._stored.rows} rows or more, and has {self.rows}")

    def so_far(self) -> StoredRows:
        """Return what is stored when all rows so far are."""
        return replace(self._stored, rows=self.rows, digest=self._digest.hexdigest())

    def _changed(self, how: str) -> InputChangedError:
        return InputChangedError(
            f"job {self._job}: a partition of batch {self._stored.batch} is written again, and its "
            f"input changed: it {how}",
            hint=_ADVICE,
        )


def _other_partitions(found: StoredRows, partitions: int) -> InputChangedError:
    """Return the error for another number of partitions, or for one that is not given each time."""
    if not partitions:
        return InputChangedError(
            f"batch {found.batch} was written with the option partitions, which is missing now",
            hint=f'add .option("partitions", "{found.partitions}"), as before',
        )
    if not found.partitions:
        return InputChangedError(
            f"batch {found.batch} was written without the option partitions, which is "
            f"{partitions} now",
            hint="leave the option partitions out, as before",
        )
    return InputChangedError(
        f"batch {found.batch} was written in {found.partitions} partitions, and has {partitions}",
        hint="use the same options, files and number of partitions as before",
    )
