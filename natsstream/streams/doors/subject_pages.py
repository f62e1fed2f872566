"""Reads what a stream says of itself, its subjects page by page.

Law: a stream with more subjects than one answer holds is never cut short in silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from natsstream._wire import subjects
from natsstream.api.names import check_filter
from natsstream.api.paging import pages
from natsstream.api.requests import Api
from natsstream.api.stream_info import subject_counts
from natsstream.arguments import check_text
from natsstream.errors import SubjectError
from natsstream.fields import Fields


@dataclass(frozen=True, slots=True)
class SubjectPage:
    """Some subjects of a stream.

    Attributes:
        counts: Messages of each subject; at most 100,000 subjects.
        answer: The server's whole answer.
    """

    counts: Mapping[str, int]
    answer: Fields


async def ask_info(api: Api, stream: str, body: Mapping[str, object]) -> Fields:
    """Return the server's answer to a question for a stream's info."""
    return await api.read(subjects.stream_info(stream), body, what=f"stream {stream}")


async def subject_pages(
    api: Api, stream: str, subject: str, body: Mapping[str, object] | None = None
) -> AsyncIterator[SubjectPage]:
    """Yield the subjects of a stream with their numbers of messages, at least one page.

    The server sorts them by name and keeps nothing between two pages: where subjects appear or
    vanish meanwhile, one may come twice or not at all.

    Args:
        api: The connection's API.
        stream: The stream.
        subject: Which subjects, with wildcards.
        body: What the first question asks besides.
    """
    wanted = check_filter(check_text(subject, "subjects", error=SubjectError))
    question = pages(
        api,
        subjects.stream_info(stream),
        {"subjects_filter": wanted},
        what=f"stream {stream}",
        names=subject_counts,
        at_first=body,
    )
    async for answer in question:
        yield SubjectPage(subject_counts(answer), answer)
