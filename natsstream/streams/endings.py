"""The endings of a stream's connection, for views: clean-up that outlives cancels of its caller.

Users of a stream have no use for it, so it is no part of `Stream`.
"""

from __future__ import annotations

from natsstream._wire.endings import Endings
from natsstream.streams.stream import Stream

__all__ = ["Endings", "endings_of"]


def endings_of(stream: Stream) -> Endings:
    """Return what carries out the clean-up of a stream's connection."""
    return stream._api.client.endings  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
