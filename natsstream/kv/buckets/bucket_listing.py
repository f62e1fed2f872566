"""Goes through the buckets of an account.

What lives here: the listing. What must not: how streams are listed (`streams/listing.py`), and the
keys of one bucket (`kv/listing.py`).

Law: a bucket that the servers name and can not describe is never left out in silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Literal

from natsstream.arguments import check_choice
from natsstream.kv.buckets.conventions import STREAM_PREFIX, is_bucket
from natsstream.kv.buckets.status import BucketStatus
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.listing import StreamListing
from natsstream.streams.paging import check_whole


class BucketListing:
    """The status of each bucket, to be read with `async for`; made by `js.kv.list`.

    Each loop asks anew.
    """

    def __init__(self, js: JetStreamContext, on_missing: Literal["raise", "report"]) -> None:
        check_choice(on_missing, "on_missing", ("raise", "report"))
        # A stream that is missing and no bucket is nobody's concern here.
        self._streams: StreamListing = js.streams.list(on_missing="report")
        self._raises = on_missing == "raise"

    @property
    def missing(self) -> tuple[str, ...]:
        """Buckets whose servers did not answer in time, in the loop so far."""
        return tuple(_bucket(name) for name in self._streams.missing if _is_named(name))

    @property
    def offline(self) -> Mapping[str, str]:
        """Buckets that no server can run now, with the reason."""
        offline = self._streams.offline.items()
        return {_bucket(name): reason for name, reason in offline if _is_named(name)}

    def __aiter__(self) -> AsyncIterator[BucketStatus]:
        return self._statuses()

    async def _statuses(self) -> AsyncIterator[BucketStatus]:
        async for info in self._streams:
            if is_bucket(info.config):
                yield BucketStatus.from_stream(info)
        if self._raises:
            check_whole("buckets", self.missing, self.offline)

    def __repr__(self) -> str:
        return "<BucketListing>"


def _is_named(stream: str) -> bool:
    return stream.startswith(STREAM_PREFIX)


def _bucket(stream: str) -> str:
    return stream.removeprefix(STREAM_PREFIX)
