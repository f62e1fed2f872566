"""Goes through the object stores of an account.

What lives here: the listing. What must not: how streams are listed (`streams/listing.py`), and the
objects of one store (`watch.py`).

Law: a store that the servers name and can not describe is never left out in silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Literal

from natsstream.arguments import check_choice
from natsstream.objects.config import is_store
from natsstream.objects.place import STREAM_PREFIX, Place
from natsstream.objects.status import ObjectStoreStatus
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.listing import StreamListing
from natsstream.streams.paging import check_whole

EVERY_STORE = Place("*").chunk_filter
"""What every store captures some of; as nats.go asks for them."""


class ObjectStoreListing:
    """The status of each object store, to be read with `async for`; made by `js.objects.list`.

    Each loop asks anew.
    """

    def __init__(self, js: JetStreamContext, on_missing: Literal["raise", "report"]) -> None:
        check_choice(on_missing, "on_missing", ("raise", "report"))
        # A stream that is missing and no store is nobody's concern here.
        self._streams: StreamListing = js.streams.list(subject=EVERY_STORE, on_missing="report")
        self._raises = on_missing == "raise"

    @property
    def missing(self) -> tuple[str, ...]:
        """Stores whose servers did not answer in time, in the loop so far."""
        return tuple(_store(name) for name in self._streams.missing if _is_named(name))

    @property
    def offline(self) -> Mapping[str, str]:
        """Stores that no server can run now, with the reason."""
        offline = self._streams.offline.items()
        return {_store(name): reason for name, reason in offline if _is_named(name)}

    def __aiter__(self) -> AsyncIterator[ObjectStoreStatus]:
        return self._statuses()

    async def _statuses(self) -> AsyncIterator[ObjectStoreStatus]:
        async for info in self._streams:
            if is_store(info.config):
                yield ObjectStoreStatus.from_stream(info)
        if self._raises:
            check_whole("object stores", self.missing, self.offline)

    def __repr__(self) -> str:
        return "<ObjectStoreListing>"


def _is_named(stream: str) -> bool:
    return stream.startswith(STREAM_PREFIX)


def _store(stream: str) -> str:
    return stream.removeprefix(STREAM_PREFIX)
