"""Looking into a stream without reading it: its subjects by size, and its holes."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from typing import NamedTuple

from natsstream.api.stream_info import DeletedRange, StreamInfo
from natsstream.arguments import check_int
from natsstream.streams.doors.part import Part
from natsstream.streams.doors.subject_pages import ask_info, subject_pages


class SubjectCount(NamedTuple):
    """How many messages of a subject a stream holds.

    Attributes:
        subject: The subject.
        messages: Messages of it.
    """

    subject: str
    messages: int


class Inspection(Part):
    """Looks into a stream."""

    async def subjects(self, filter: str = ">", *, top: int | None = None) -> list[SubjectCount]:  # noqa: A002 - The field's own word.
        """Return the subjects that the stream holds, those with the most messages first.

        Args:
            filter: Which subjects, with wildcards.
            top: How many at most; None is all.

        Raises:
            SubjectError: The filter is no subject; nothing was sent.
            StreamNotFoundError: The stream was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip for each 100,000 subjects; the memory of `top` of them and a page.
        """
        if top is not None:
            check_int(top, "top", minimum=1)
        if top is None:
            return sorted([each async for each in self.subject_counts(filter)], key=_by_size)
        largest: list[SubjectCount] = []
        async for page in subject_pages(self._api, self.name, filter):
            counts = (SubjectCount(*each) for each in page.counts.items())
            largest = heapq.nsmallest(top, [*largest, *counts], key=_by_size)
        return largest

    async def subject_counts(self, filter: str = ">") -> AsyncIterator[SubjectCount]:  # noqa: A002 - The field's own word.
        """Yield the subjects that the stream holds, by name, for streams with very many.

        Where subjects appear or vanish meanwhile, one may come twice or not at all.

        Raises:
            SubjectError: The filter is no subject; nothing was sent.
            StreamNotFoundError: The stream was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip and the memory of a page for each 100,000 subjects.
        """
        async for page in subject_pages(self._api, self.name, filter):
            for subject, messages in page.counts.items():
                yield SubjectCount(subject, messages)

    async def gaps(self) -> list[DeletedRange]:
        """Return the sequences between the first and the last that hold no message, as ranges.

        They were deleted, expired, or replaced by a newer message of their subject. Sequences that
        the server knows to be lost are among them; `info(deleted_details=True)` tells them apart.

        Raises:
            StreamNotFoundError: The stream was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip, with some 7 bytes for each deleted sequence: a stream of one million
        updates of one subject answers with 7 MB.
        """
        answer = await ask_info(self._api, self.name, {"deleted_details": True})
        return list(StreamInfo.from_json(answer).state.deleted or ())


def _by_size(count: SubjectCount) -> tuple[int, str]:
    return -count.messages, count.subject
