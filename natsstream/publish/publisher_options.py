"""The options of a publisher."""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.names import check_stream_name
from natsstream.arguments import check_int, check_seconds, check_text

MAX_PENDING = 4_096
"""Default window: at 256 bytes a message it hides a round trip of 20 ms at 200,000 messages/s."""
MAX_PENDING_BYTES = 32 << 20
"""Default window in bytes: 4,096 messages of 8 KiB; the same bytes may stand in the socket's buffer
once more."""
ACK_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherOptions:
    """The options of `JetStream.publisher`, which explains them."""

    max_pending: int = MAX_PENDING
    max_pending_bytes: int = MAX_PENDING_BYTES
    ack_timeout: float = ACK_TIMEOUT_S
    retry_for: float | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_pending", "max_pending_bytes"):
            check_int(getattr(self, name), name, minimum=1)
        check_seconds(self.ack_timeout, "ack_timeout")
        if self.retry_for is not None:
            check_seconds(self.retry_for, "retry_for")
        if self.stream is not None:
            check_stream_name(check_text(self.stream, "stream"))
