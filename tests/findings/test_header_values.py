"""Finding 23: headers with several values, with text beyond ASCII, and whose dict they are.

nats-py 2.16 keeps the last of several values, can send none, returns `é` of a stored message as
replacement characters, and adds its own headers to the caller's dict.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import Expect, PublishMessage
from tests.support.ordered import take

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream, Message

pytestmark = pytest.mark.asyncio

HEADERS: dict[str, str | list[str]] = {
    "Tag": ["one", "two", "", "one"],
    "tag": "another name",
    "Text": "é, 日本語 and 😀",
    "Nats-Odd": "a: b; c=d",
}

PAIRS = [
    (name, value)
    for name, values in HEADERS.items()
    for value in ([values] if isinstance(values, str) else values)
]


@pytest.mark.finding(23)
async def test_headers_arrive_whole_by_every_way(
    js: JetStream,
    nats_py: Any,
    stream_name: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], allow_direct=False)

    await js.publish(stream_name, b"1", headers=HEADERS)
    await stream.publish(stream_name, b"2", headers=HEADERS)
    async with js.publisher() as publisher:
        await publisher.send(stream_name, b"3", headers=HEADERS)
        await publisher.send_many([PublishMessage(stream_name, b"4", headers=HEADERS)])
    await js.core.publish(stream_name, b"5", headers=HEADERS)
    await js.core.flush()

    async with stream.ordered() as tail:
        found = await take(tail, 5)
    found += [message async for message in stream.read()]
    for sequence in range(1, 6):
        one = await stream.get(sequence)
        assert one is not None
        found.append(one)
    # `stream.publish` names its stream in one more header.
    assert [given(message) for message in found] == [PAIRS] * 15
    assert found[-1].headers.all("Tag") == ("one", "two", "", "one")
    assert found[-1].headers["Text"] == "é, 日本語 and 😀"

    theirs = await nats_py.jetstream(timeout=30).get_msg(stream_name, 1, direct=False)
    record_testsuite_property("finding 23: nats-py reads", repr(theirs.headers))


def given(message: Message) -> list[tuple[str, str]]:
    """Return the headers that were given, every value in its order."""
    return [pair for pair in message.headers.items_all() if pair[0] in HEADERS]


@pytest.mark.finding(23)
async def test_headers_of_the_caller_are_only_read(js: JetStream, stream_name: str) -> None:
    """A mapping that can not be written to is enough, with all that adds headers beside it."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], allow_msg_ttl=True)
    values = ["1", "2"]
    mine = {"A": values}
    headers = MappingProxyType(mine)

    await js.publish(
        stream_name, headers=headers, msg_id="a", ttl=60, expect=Expect(stream=stream_name)
    )
    await stream.publish(stream_name, headers=headers, msg_id="b", expect=Expect(last_seq=1))
    async with js.publisher(retry_for=30) as publisher:
        await publisher.send(stream_name, headers=headers, ttl="never")

    assert mine == {"A": ["1", "2"]}
    assert mine["A"] is values
    stored = [message.headers async for message in stream.read()]
    assert [each.all("A") for each in stored] == [("1", "2")] * 3
    assert [each.get("Nats-TTL") for each in stored] == ["60", None, "never"]


@pytest.mark.finding(23)
async def test_values_of_one_name_survive_a_request_and_its_answer(
    js: JetStream, stream_name: str
) -> None:
    async with js.core.subscribe(stream_name) as questions:
        inbox = f"{stream_name}.answer"
        async with js.core.subscribe(inbox) as answers:
            await js.core.publish(stream_name, headers=HEADERS, reply=inbox)
            question = await anext(questions)
            await question.respond(b"", headers=HEADERS)
            answer = await anext(answers)

    assert question.headers.items_all() == answer.headers.items_all() == PAIRS
