"""The ids that a writer remembers of its own messages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import cast

import pytest

from natsstream.conat import writer as writer_module
from natsstream.conat.blobs import Blobs
from natsstream.conat.configuration import Configuration
from natsstream.conat.names import StreamNames
from natsstream.conat.values import Encoding
from natsstream.conat.writer import PublishOptions, Writer, WrittenStream
from natsstream.streams.jetstream import JetStreamContext

pytestmark = pytest.mark.asyncio

NAMES = StreamNames("hub/x")


class SearchedDict(OrderedDict[str, None]):
    """Counts the searches for the first item: a plain dict looks at all removed ones before it."""

    searches = 0

    def __iter__(self) -> Iterator[str]:
        self.searches += 1
        return super().__iter__()


class Server:
    """Stores nothing, and acks all."""

    max_payload = 1_000_000
    config = Configuration()
    sequence = 0

    @property
    def raw(self) -> Server:
        return self

    @property
    def stream(self) -> Server:
        return self

    async def publish(self, *_: object, **__: object) -> Server:
        self.sequence += 1
        return self

    async def stored_ns(self, _: int) -> int:
        return 0


async def test_the_oldest_ids_are_forgotten_without_a_search_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer_module, "_IDS_KEPT", 3)
    server = Server()
    js, sync = cast("JetStreamContext", server), cast("WrittenStream", server)
    blobs = Blobs(js, NAMES, lambda: sync.stream)
    writer = Writer(js, NAMES, sync, blobs, Encoding.MSGPACK)
    ids = writer.msg_ids = SearchedDict()
    for number in range(20):
        await writer.publish(number, PublishOptions(msg_id=f"id{number}"))

    assert ids.searches == 0
    assert list(ids) == ["id17", "id18", "id19"]
    assert await writer.publish(19, PublishOptions(msg_id="id19")) is None
    assert server.sequence == 20
