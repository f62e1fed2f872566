"""What every part of a stream's surface stands on."""

from __future__ import annotations

from natsstream.streams.api import Api
from natsstream.streams.diff import ConfigChange
from natsstream.streams.info import StreamInfo


class Part:
    """One part of `Stream`; the parts share the stream's name, its info and its connection."""

    def __init__(self, api: Api, cached: StreamInfo, change: ConfigChange | None = None) -> None:
        self._api = api
        self.change: ConfigChange = change or ConfigChange(cached.name, "unchanged")
        self.cached: StreamInfo = cached
        self.name: str = cached.name
