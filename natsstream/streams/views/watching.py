"""The part that the watches of all views have in common: one start, and one opening.

Law: an error of a watch is its view's: a stream that is gone is a bucket that is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from natsstream.arguments import check_int
from natsstream.errors import UsageError
from natsstream.read.latest.latest import Latest
from natsstream.read.start_position import SEQUENCE_MAX, check_starts
from natsstream.streams.stream import Stream
from natsstream.streams.views.kind import Kind


class Watching:
    """The newest messages of a view's stream, for its watch.

    Attributes:
        name: The view's name.
        latest: The reader.
    """

    def __init__(
        self,
        kind: Kind,
        stream: Stream,
        *,
        call: str,
        item: str,
        filters: Sequence[str],
        include_history: bool,
        updates_only: bool,
        resume_after: int | None,
        created_ns: int | None,
        headers_only: bool = False,
    ) -> None:
        """Describe it; see `KeyValue.watch` for the other arguments.

        Args:
            kind: The view's kind.
            stream: Its stream.
            call: The call that makes the watch, for errors.
            item: The noun for a value of its loop, for errors.
        """
        first_seq = None
        if resume_after is not None:
            maximum = SEQUENCE_MAX - 1
            first_seq = check_int(resume_after, "resume_after", minimum=0, maximum=maximum) + 1
        starts = {
            "include_history": include_history,
            "updates_only": updates_only,
            "resume_after": resume_after is not None,
        }
        check_starts(starts, hint="give one of them, or none for the newest of each")
        self._kind = kind
        self._call = call
        self._item = item
        self._is_entered = False
        self.name: str = kind.name_of(stream.name)
        self.latest: Latest = stream.latest(
            filters=filters,
            include_history=include_history,
            updates_only=updates_only,
            headers_only=headers_only,
            first_seq=first_seq,
            created_ns=created_ns,
        )

    async def open(self) -> None:
        """Find the start and make the first consumer."""
        if self._is_entered:
            raise UsageError("a watch opens once", hint=f"call {self._call} again")
        self._is_entered = True
        with self.errors():
            try:
                await self.latest.__aenter__()
            except BaseException:
                await self.latest.close()
                raise

    def opened(self) -> Latest:
        """Return the reader of a watch that was opened.

        Raises:
            UsageError: It was not.
        """
        if not self._is_entered:
            raise UsageError(
                "the watch is not open",
                hint=f"async with {self._call} as watch: async for {self._item} in watch",
            )
        return self.latest

    def errors(self) -> AbstractContextManager[None]:
        """Raise errors of the view instead of its stream's."""
        return self._kind.translate_errors(self.name)
