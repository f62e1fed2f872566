"""Makes, finds and deletes buckets: `js.kv`."""

from __future__ import annotations

from natsstream.streams.jetstream import JetStreamContext


class KeyValueManager:
    """The key-value buckets of an account; `js.kv`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
