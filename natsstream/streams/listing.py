"""Lists the streams of an account.

Law: a stream without an info is never left out silently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from natsstream.api.paging import Gaps, OnMissing
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import checked_subject, stream_infos


class StreamListing:
    """The infos of streams; read it with `async for`. Returned by `js.streams.list`.

    Each loop sends new requests.
    """

    def __init__(self, api: Api, subject: str | None, on_missing: OnMissing) -> None:
        self._api = api
        self._subject = None if subject is None else checked_subject(subject)
        self._on_missing: OnMissing = on_missing
        self._gaps = Gaps("streams", on_missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """Streams whose servers have not answered in time, in the loop so far."""
        return self._gaps.missing

    @property
    def offline(self) -> Mapping[str, str]:
        """Streams that no server can run now, with the reason, such as a field that is too new."""
        return self._gaps.offline

    def __aiter__(self) -> AsyncIterator[StreamInfo]:
        return self._infos()

    async def _infos(self) -> AsyncIterator[StreamInfo]:
        gaps = self._gaps = Gaps("streams", self._on_missing)
        async for info in stream_infos(self._api, gaps, self._subject):
            yield info

    def __repr__(self) -> str:
        return f"<StreamListing {self._subject or 'of all streams'}>"
