"""Makes, finds and deletes object stores: `js.objects`."""

from __future__ import annotations

from natsstream.streams.jetstream import JetStreamContext


class ObjectStoreManager:
    """The object stores of an account; `js.objects`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
