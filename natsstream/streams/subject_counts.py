"""The subjects of a stream with their numbers of messages.

Law: a stream with more subjects than one answer holds is never cut short in silence.
"""

from __future__ import annotations

import heapq
from collections.abc import AsyncGenerator, Iterable
from itertools import starmap
from typing import NamedTuple

from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import subject_pages
from natsstream.arguments import check_int
from natsstream.iteration import Flattened


class SubjectCount(NamedTuple):
    """How many messages of a subject a stream holds.

    Attributes:
        subject: The subject.
        messages: Messages of it.
    """

    subject: str
    messages: int


async def largest_subjects(
    api: Api, stream: str, subject: str, top: int | None
) -> list[SubjectCount]:
    """Return the subjects with the most messages; see `Stream.subjects`."""
    if top is None:
        return sorted([each async for each in each_subject(api, stream, subject)], key=_by_size)
    check_int(top, "top", minimum=1)
    largest: list[SubjectCount] = []
    async for page in subject_pages(api, stream, subject):
        largest = heapq.nsmallest(top, [*largest, *_counts(page)], key=_by_size)
    return largest


def each_subject(api: Api, stream: str, subject: str) -> AsyncGenerator[SubjectCount]:
    """Yield the subjects by name; see `Stream.subject_counts`."""
    return Flattened(subject_pages(api, stream, subject), _counts)


def _counts(page: StreamInfo) -> Iterable[SubjectCount]:
    return starmap(SubjectCount, (page.state.subjects or {}).items())


def _by_size(count: SubjectCount) -> tuple[int, str]:
    return -count.messages, count.subject
