"""Lists the views of one kind in an account.

Law: a view that the servers name and cannot describe is never skipped silently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from natsstream.api.paging import OnMissing, check_on_missing, check_whole
from natsstream.api.stream_info import StreamInfo
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.listing import StreamListing
from natsstream.streams.views.kind import Kind


class ViewListing:
    """The streams of a kind, read with `async for`; each loop requests them again."""

    def __init__(
        self, js: JetStreamContext, on_missing: OnMissing, kind: Kind, subject: str | None = None
    ) -> None:
        check_on_missing(on_missing)
        # Only missing streams of this kind matter here.
        self._streams: StreamListing = js.streams.list(subject=subject, on_missing="report")
        self._kind = kind
        self._raises = on_missing == "raise"

    @property
    def missing(self) -> tuple[str, ...]:
        """Names whose servers did not answer in time, in the loop so far."""
        kind = self._kind
        return tuple(kind.name_of(name) for name in self._streams.missing if kind.is_named(name))

    @property
    def offline(self) -> Mapping[str, str]:
        """Names that no server can run now, with the reason."""
        kind, offline = self._kind, self._streams.offline.items()
        return {kind.name_of(name): reason for name, reason in offline if kind.is_named(name)}

    async def _infos(self) -> AsyncIterator[StreamInfo]:
        async for info in self._streams:
            if self._kind.is_one(info.config):
                yield info
        if self._raises:
            check_whole(f"{self._kind.noun}s", self.missing, self.offline)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
