"""Goes through the streams of an account.

Law: a stream that the servers name and can not describe is never left out in silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from natsstream._wire import subjects
from natsstream.api.names import check_filter
from natsstream.api.paging import Gaps, OnMissing, listed_streams, pages
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.arguments import check_text
from natsstream.errors import SubjectError

WHAT = "streams of the account"
"""What errors call them."""


class StreamListing:
    """The infos of streams, to be read with `async for`; made by `js.streams.list`.

    Each loop asks anew.
    """

    def __init__(self, api: Api, subject: str | None, on_missing: OnMissing) -> None:
        self._api = api
        self._body = subject_body(subject)
        self._on_missing: OnMissing = on_missing
        self._gaps = Gaps("streams", on_missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """Streams whose servers did not answer in time, in the loop so far."""
        return self._gaps.missing

    @property
    def offline(self) -> Mapping[str, str]:
        """Streams that no server can run now, with the reason, such as a server that is too old for
        one of their fields."""
        return self._gaps.offline

    def __aiter__(self) -> AsyncIterator[StreamInfo]:
        return self._infos()

    async def _infos(self) -> AsyncIterator[StreamInfo]:
        gaps = self._gaps = Gaps("streams", self._on_missing)
        question = pages(
            self._api, subjects.STREAM_LIST, self._body, what=WHAT, names=listed_streams
        )
        async for answer in question:
            gaps.add(answer)
            for body in answer.parts("streams"):
                yield StreamInfo.from_json(body)
        gaps.check()

    def __repr__(self) -> str:
        return f"<StreamListing {self._body.get('subject') or 'of all streams'}>"


def subject_body(subject: str | None) -> dict[str, object]:
    """Return what a question for streams asks for.

    Raises:
        SubjectError: It is no subject or filter.
    """
    if subject is None:
        return {}
    return {"subject": check_filter(check_text(subject, "subject", error=SubjectError))}
