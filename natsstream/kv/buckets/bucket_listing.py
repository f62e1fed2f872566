"""Goes through the buckets of an account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from natsstream.kv.buckets.conventions import BUCKET
from natsstream.kv.buckets.status import BucketStatus
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.views.listing import ViewListing


class BucketListing(ViewListing):
    """The status of each bucket, to be read with `async for`; made by `js.kv.list`.

    Each loop asks anew.
    """

    def __init__(self, js: JetStreamContext, on_missing: Literal["raise", "report"]) -> None:
        super().__init__(js, on_missing, BUCKET)

    def __aiter__(self) -> AsyncIterator[BucketStatus]:
        return self._statuses()

    async def _statuses(self) -> AsyncIterator[BucketStatus]:
        async for info in self._infos():
            yield BucketStatus.from_stream(info)
