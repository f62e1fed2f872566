"""Direct gets of many messages: batches and the newest of each subject, the same for all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.client import Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

    from natsstream import Message, Stream
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

COUNT = 30
DELETED = (7, 8, 30)
# What the server adds to an answer: nats.js and nats.go leave it, natsstream takes it out.
ADDED = {
    "Nats-Last-Sequence",
    "Nats-Num-Pending",
    "Nats-Sequence",
    "Nats-Stream",
    "Nats-Subject",
    "Nats-Time-Stamp",
    "Nats-UpTo-Sequence",
}
SUBJECTS = ("a.x", "a.y", "b")


async def fill(ours: Ours, name: str) -> Stream:
    """Make a stream of three subjects, with holes and odd payloads."""
    await ours.create({"name": name, "subjects": [f"{name}.>"], "allow_direct": True})
    stream = await ours.js.streams.get(name)
    for number in range(COUNT):
        headers = {"N": [str(number), "zwölf"]} if number % 2 else None
        data = b"" if number % 5 == 0 else b"\r\n%d\x00\xff" % number
        await ours.publish(f"{name}.{SUBJECTS[number % 3]}", data, headers=headers)
    for sequence in DELETED:
        await stream.delete_message(sequence)
    return stream


def told(messages: Iterable[Message]) -> list[Stored]:
    """Return messages as the shape that all clients answer in."""
    return [
        Stored(
            each.subject,
            each.sequence,
            {name: list(each.headers.all(name)) for name in each.headers},
            each.data,
        )
        for each in messages
    ]


def own(messages: Iterable[Stored]) -> list[Stored]:
    """Return messages without what the server has added to the answer."""
    return [
        replace(each, headers={n: v for n, v in each.headers.items() if n not in ADDED})
        for each in messages
    ]


@pytest.mark.parametrize("subject", ["", ".a.*"], ids=["all", "filtered"])
@pytest.mark.parametrize(("first", "count"), [(1, 5), (6, 10), (25, 100)])
async def test_direct_batch_is_the_same_for_every_client(
    ours: Ours, peer: NatsJs, stream_name: str, subject: str, first: int, count: int
) -> None:
    stream = await fill(ours, stream_name)
    wanted = f"{stream_name}{subject}" if subject else ""

    mine = await stream.direct.batch(count, first_seq=first, subject=wanted or None)
    theirs = await peer.direct_batch(stream_name, count, first=first, subject=wanted)

    by_leader = await ours.read(stream_name, COUNT - len(DELETED))
    asked = [
        each
        for each in by_leader
        if each.sequence >= first and (not subject or each.subject.startswith(f"{stream_name}.a."))
    ]
    assert told(mine.messages) == own(theirs) == asked[:count]


@pytest.mark.parametrize("filters", [(">",), ("a.*", "b"), ("b",)], ids=" ".join)
async def test_newest_messages_are_the_same_for_every_client(
    ours: Ours, peer: NatsJs, stream_name: str, filters: tuple[str, ...]
) -> None:
    stream = await fill(ours, stream_name)
    wanted = [f"{stream_name}.{each}" for each in filters]

    mine = await stream.direct.latest(wanted)
    theirs = await peer.direct_latest(stream_name, wanted)

    newest = {each.subject: each for each in await ours.read(stream_name, COUNT - len(DELETED))}
    asked = [
        each
        for each in sorted(newest.values(), key=lambda each: each.sequence)
        if filters != ("b",) or each.subject.endswith(".b")
    ]
    assert told(mine.messages) == own(theirs) == asked
