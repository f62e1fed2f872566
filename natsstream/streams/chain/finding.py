"""Finds one writer's links in a stream, and checks that the stream can store a chain.

Law: the writer's last link has the hash of its content. A copy of an older link behind it is not
taken for the last one if one read finds both.
"""

from __future__ import annotations

from collections.abc import Sequence

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import ChainBrokenError, ConfigError
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.streams.chain.links import ChainHead, ChainLink, is_same_hash, link_hash
from natsstream.streams.chain.verify import BreakKind, BrokenLink, link_of

# Sequences of the first read back for the writer's last link; each further one doubles.
_READ_BACK = 1_000
_READ_BACK_MAX = 64_000

StoredLink = tuple[Message, ChainLink]


def check_stream(info: StreamInfo) -> None:
    """Refuse a stream that does not store links as they are sent.

    Raises:
        ConfigError: The stream changes, drops or does not acknowledge messages.
    """
    config = info.config
    reasons = {
        "subject_transform": bool(config.subject_transform),
        "no_ack": bool(config.no_ack),
        "allow_msg_counter": bool(config.allow_msg_counter),
        f"retention {config.retention}": config.retention in ("workqueue", "interest"),
    }
    for what, is_so in reasons.items():
        if is_so:
            raise ConfigError(
                f"stream {info.name} has {what}: no chain can be written into it",
                hint="a link's hash covers its subject and payload, the next link waits for its "
                "ack, and both must stay in the stream",
            )


class LinkFinder:
    """Reads the links of one writer.

    Args:
        api: The connection's API.
        stream: Name of the stream.
        writer: The writer's id.
        key: The key of the HMAC; None for plain hashes.
        filters: Subjects to read; none is all.
    """

    def __init__(
        self, api: Api, stream: str, writer: str, key: bytes | None, filters: Sequence[str]
    ) -> None:
        self._api = api
        self._stream = stream
        self._writer = writer
        self._key = key
        self._filters = filters

    async def between(self, first: int, last: int) -> list[StoredLink]:
        """Return the writer's links from one sequence to another, both inclusive."""
        if first > last:
            return []
        spec = RangeSpec(
            stream=self._stream,
            first_seq=first,
            last_seq=last,
            filters=self._filters,
            on_loss="report",
        )
        links: list[StoredLink] = []
        async for message in StreamRange(self._api, spec):
            link = link_of(message)
            if isinstance(link, ChainLink) and link.writer == self._writer:
                links.append((message, link))
        return links

    async def last(self, info: StreamInfo) -> StoredLink | None:
        """Return this writer's last link, reading back from the end of the stream.

        Raises:
            ChainBrokenError: The link is not as its writer made it, or the key is wrong.
        """
        last, span = info.state.last_seq, _READ_BACK
        while last >= info.state.first_seq and last > 0:
            first = max(info.state.first_seq, last - span + 1, 1)
            # The highest number: a copy of an older link may stand behind the newest one.
            newest = max(
                await self.between(first, last), key=lambda stored: stored[1].count, default=None
            )
            if newest is not None:
                self.check_hash(*newest)
                return newest
            last, span = first - 1, min(2 * span, _READ_BACK_MAX)
        return None

    async def at_head(self, info: StreamInfo, head: ChainHead) -> Message | None:
        """Return the message of a given head; None if limits may have removed it.

        Raises:
            ChainBrokenError: The stream ends before the head, or has another message there.
        """
        if not head.sequence:
            return None
        if info.state.last_seq < head.sequence:
            detail = f"the stream ends at {info.state.last_seq}, the head is at {head.sequence}"
            raise self._broken("tail", 0, detail)
        spec = RangeSpec(
            stream=self._stream, first_seq=head.sequence, last_seq=head.sequence, on_loss="report"
        )
        async for message in StreamRange(self._api, spec):
            link = link_of(message)
            if not isinstance(link, ChainLink) or not is_same_hash(link.hash, head.hash):
                raise self._broken("head", message.sequence, f"the head's hash is {head.hash}")
            self.check_hash(message, link)
            return message
        return None

    def check_hash(self, message: Message, link: ChainLink) -> None:
        """Check a link's hash.

        Raises:
            ChainBrokenError: It is not the hash of the link's content.
        """
        content = (message.subject, message.headers, message.data)
        actual = link_hash(link.writer, link.count, link.previous, content, self._key)
        if not is_same_hash(actual, link.hash):
            raise self._broken("content", message.sequence, f"the hash is {actual}")

    def _broken(self, kind: BreakKind, sequence: int, detail: str) -> ChainBrokenError:
        return BrokenLink(self._writer, sequence, kind, detail).error(self._stream)
