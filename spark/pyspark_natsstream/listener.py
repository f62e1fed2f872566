"""How far streaming queries have come: lag and rates, for `spark.streams.addListener`.

Law: queries with other sources are left out, and a listener never fails a query.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from natsstream.errors import UsageError
from natsstream.notebook import NotebookTable
from pyspark_natsstream.offsets import Offset, offsets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

_log = logging.getLogger("pyspark_natsstream.progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamProgress(NotebookTable):
    """The progress of one query in one stream, after a micro-batch.

    Attributes:
        query: The query's name, or its id without one.
        stream: The stream.
        batch: The number of the micro-batch.
        next_seq: The sequence to read next.
        lag: Sequences of the stream that the query has not read yet.
        rows: Rows of the micro-batch.
        rows_per_second: Rows that were handled a second.
    """

    query: str
    stream: str
    batch: int
    next_seq: int
    lag: int
    rows: int
    rows_per_second: float

    def to_json(self) -> str:
        """Return the progress as one line."""
        return json.dumps(asdict(self))


class NatsListener(StreamingQueryListener):
    """Tells the progress of all queries that read streams.

    One line attaches it: `spark.streams.addListener(NatsListener())`.

    Args:
        on_progress: Gets each progress, in a thread of Spark; None logs it at INFO under
            `pyspark_natsstream.progress`, as a line of JSON.
    """

    def __init__(self, on_progress: Callable[[StreamProgress], object] | None = None) -> None:
        super().__init__()
        self._on_progress = on_progress

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's names.
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Tell how far a query has come."""
        for progress in progress_of(event.progress):
            if self._on_progress is None:
                _log.info("%s", progress.to_json())
            else:
                self._on_progress(progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing."""


def progress_of(progress: StreamingQueryProgress) -> Iterator[StreamProgress]:
    """Yield the progress in each stream of a query, as of `query.lastProgress`."""
    for source in progress.sources:
        latest = {each.stream: each for each in _known(source.latestOffset)}
        for end in _known(source.endOffset):
            newest = latest.get(end.stream, end)
            yield StreamProgress(
                query=progress.name or str(progress.id),
                stream=end.stream,
                batch=progress.batchId,
                next_seq=end.next_seq,
                lag=max(newest.next_seq - end.next_seq, 0),
                rows=source.numInputRows,
                rows_per_second=source.processedRowsPerSecond,
            )


def _known(text: str | None) -> list[Offset]:
    """Return offsets of streams; none for those of other sources."""
    try:
        return offsets_of(text)
    except UsageError:
        return []
