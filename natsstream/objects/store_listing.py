"""Goes through the object stores of an account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from natsstream.objects.kind import STORE
from natsstream.objects.status import ObjectStoreStatus
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.views.listing import ViewListing

EVERY_STORE = StoreSubjects("*").chunk_filter
"""What every store captures some of; as nats.go asks for them."""


class ObjectStoreListing(ViewListing):
    """The status of each object store, to be read with `async for`; made by `js.objects.list`.

    Each loop asks anew.
    """

    def __init__(self, js: JetStreamContext, on_missing: Literal["raise", "report"]) -> None:
        super().__init__(js, on_missing, STORE, EVERY_STORE)

    def __aiter__(self) -> AsyncIterator[ObjectStoreStatus]:
        return self._statuses()

    async def _statuses(self) -> AsyncIterator[ObjectStoreStatus]:
        async for info in self._infos():
            yield ObjectStoreStatus.from_stream(info)
