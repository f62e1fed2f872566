"""Lists the consumers of a stream.

Law: a consumer without an info is never left out silently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import consumer_infos
from natsstream.api.paging import Gaps, OnMissing
from natsstream.api.requests import Api


class ConsumerListing:
    """The infos of consumers; read it with `async for`. Returned by `stream.consumers.list`.

    Each loop sends new requests.
    """

    def __init__(self, api: Api, stream: str, on_missing: OnMissing) -> None:
        self._api = api
        self._stream = stream
        self._on_missing: OnMissing = on_missing
        self._gaps = Gaps(f"consumers of stream {stream}", on_missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """Consumers whose servers have not answered in time, in the loop so far."""
        return self._gaps.missing

    @property
    def offline(self) -> Mapping[str, str]:
        """Consumers that no server can run now, with the reason."""
        return self._gaps.offline

    def __aiter__(self) -> AsyncIterator[ConsumerInfo]:
        return self._infos()

    async def _infos(self) -> AsyncIterator[ConsumerInfo]:
        gaps = self._gaps = Gaps(f"consumers of stream {self._stream}", self._on_missing)
        async for info in consumer_infos(self._api, gaps, self._stream):
            yield info

    def __repr__(self) -> str:
        return f"<ConsumerListing of {self._stream}>"
