"""What every part of a consumer's surface stands on."""

from __future__ import annotations

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.diff import ConfigChange
from natsstream.api.requests import Api
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.units import duration_ns


class ConsumerPart:
    """One part of `Consumer`; the parts share its name, its info and its connection."""

    def __init__(self, api: Api, cached: ConsumerInfo, change: ConfigChange | None = None) -> None:
        self._api = api
        self.cached: ConsumerInfo = cached
        self.change: ConfigChange = change or ConfigChange(cached.name, "unchanged")
        self.name: str = cached.name
        self.stream: str = cached.stream

    def _source(self) -> ConsumerSource:
        """Return what the rooms below need to know of this consumer."""
        config = self.cached.config
        return ConsumerSource(
            api=self._api,
            stream=self.stream,
            consumer=self.name,
            ack_policy=config.ack_policy or "none",
            ack_wait_ns=duration_ns(config.ack_wait or 0),
            backoff_ns=tuple(map(duration_ns, config.backoff or ())),
            max_deliver=config.max_deliver or -1,
            priority_group=next(iter(config.priority_groups or ()), ""),
            priority_policy=config.priority_policy or "none",
            max_batch=config.max_batch or 0,
            max_expires_ns=duration_ns(config.max_expires or 0),
            max_bytes=config.max_bytes or 0,
            deliver_subject=config.deliver_subject or "",
            created_ns=self.cached.created_ns,
        )
