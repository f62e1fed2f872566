"""Lists the views of one kind in an account.

Law: a view that the servers name and cannot describe is never skipped silently.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

from natsstream.api.listing import Listing
from natsstream.api.paging import Gaps, OnMissing
from natsstream.api.stream_info import StreamInfo
from natsstream.iteration import Calls
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.views.kind import Kind

StatusT = TypeVar("StatusT")


def view_listing(
    js: JetStreamContext,
    kind: Kind,
    status: Callable[[StreamInfo], StatusT],
    on_missing: OnMissing,
    subject: str | None = None,
) -> Listing[StatusT]:
    """Return the statuses of the views of a kind.

    Args:
        js: The JetStream context.
        kind: The kind.
        status: Returns the status of a view by its stream's info.
        on_missing: For views without an info: "raise" after all others, or "report".
        subject: A subject of each stream of the kind; None if they share none.
    """

    def statuses(gaps: Gaps) -> AsyncGenerator[StatusT]:
        # Only missing streams of this kind matter here.
        streams = js.streams.list(subject=subject, on_missing="report")
        infos = aiter(streams)

        async def take() -> StatusT | None:
            async for info in infos:
                _note(gaps, kind, streams)
                if kind.is_one(info.config):
                    return status(info)
            _note(gaps, kind, streams)
            gaps.check()
            return None

        return Calls(take, infos)

    return Listing(f"{kind.noun}s", on_missing, statuses)


def _note(gaps: Gaps, kind: Kind, streams: Listing[StreamInfo]) -> None:
    """Note the views among the streams that the servers cannot describe."""
    gaps.missing = tuple(map(kind.name_of, filter(kind.is_named, streams.missing)))
    offline = streams.offline.items()
    gaps.offline = {kind.name_of(name): why for name, why in offline if kind.is_named(name)}
