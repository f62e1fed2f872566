"""Streams that other clients make: odd names, bytes that are no text, headers that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.errors import ConfigError
from natsstream.testing import NatsServer
from tests.support.streams import change, fill, payload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream, Stream
    from natsstream._wire.client import Client

pytestmark = pytest.mark.asyncio

ODD_HEADERS = [
    b"garbage",
    b"garbage: yes\r\n\r\n",
    b"\r\n\r\n",
    b"NATS/1.0\r\nA: b",
    b"NATS/1.0\r\na\nb: c\r\n\r\n",
    b"NATS/1.0\r\nA: \xff\r\n\r\n",
    b"NATS/1.0 404 Not Found\r\nA: b\r\n\r\n",
]


def client_of(js: JetStream) -> Client:
    """Return the connection under a context."""
    return js._client  # pyright: ignore[reportPrivateUsage]


async def publish_raw(js: JetStream, subject: bytes, header: bytes, data: bytes) -> None:
    """Publish bytes as another client might, and wait for the ack."""
    client = client_of(js)
    reply, future = client.requests.expect(subject.decode(errors="surrogateescape"))
    line = b"HPUB %b %b %d %d" % (subject, reply.encode(), len(header), len(header) + len(data))
    client.write(b"%b\r\n%b%b\r\n" % (line, header, data))
    ack = json.loads((await future)[3])
    client.requests.forget(reply)
    assert "seq" in ack, ack


async def test_headers_that_are_none_do_not_hide_the_other_messages(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    for number, header in enumerate(ODD_HEADERS):
        await publish_raw(js, stream_name.encode(), header, b"%d" % number)

    messages = [message async for message in stream.read()]
    rows = (await stream.read().to_arrow(["headers", "data"])).to_pylist()

    numbers = [b"%d" % number for number in range(len(ODD_HEADERS))]
    assert [message.data for message in messages] == numbers
    assert [row["data"] for row in rows] == numbers
    pairs = [[(pair["key"], pair["value"]) for pair in row["headers"]] for row in rows]
    # The server takes a status line away with its headers.
    assert pairs[:6] == [
        [("", "garbage")],
        [("", "garbage: yes\r\n\r\n")],
        [("", "\r\n\r\n")],
        [("A", "b")],
        [("a\nb", "c")],
        [("A", "\ufffd")],
    ]
    assert messages[0].headers.items_all() == [("", "garbage")]
    assert messages[3].headers["A"] == "b"


async def test_subject_that_is_no_text_is_read(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await publish_raw(js, f"{stream_name}.".encode() + b"\xff", b"NATS/1.0\r\n\r\n", b"x")

    (message,) = [each async for each in stream.read()]
    row = (await stream.read().to_arrow(["subject"])).to_pylist()[0]

    assert message.subject == f"{stream_name}.\udcff"
    assert row["subject"] == f"{stream_name}.\ufffd"


@pytest.mark.parametrize("name", ["a\u00a0b", "a\u2003b", "Straße", "日本", "$X", "a=b,c"])
async def test_names_that_servers_take_are_taken(fresh_js: JetStream, name: str) -> None:
    await fresh_js.streams.create(name, subjects=["s.>"])
    await fresh_js.publish("s.a", b"x")

    stream = await fresh_js.streams.get(name)

    assert [each async for each in fresh_js.streams.names()] == [name]
    assert [message.data async for message in stream.read()] == [b"x"]


async def test_stream_with_a_name_that_we_refuse_does_not_hide_the_others(
    fresh_js: JetStream,
) -> None:
    for name in ("A", "a\x01b", "c\x7fd"):
        subjects = [f"{name}.x"]
        await change(fresh_js, f"STREAM.CREATE.{name}", {"name": name, "subjects": subjects})

    infos = [info async for info in fresh_js.streams.list()]

    assert sorted(info.name for info in infos) == ["A", "a\x01b", "c\x7fd"]
    assert await fresh_js.streams.find("c\u007fd.x".replace("\u007f", "*")) is None


async def read_both_ways(
    stream: Stream, *, first: int | None = None
) -> tuple[list[int], list[int]]:
    """Return the sequences of a stream as messages and as columns."""
    messages = stream.read(first_seq=first)
    return (
        [message.sequence async for message in messages],
        (await messages.to_arrow(["sequence"])).column("sequence").to_pylist(),
    )


@pytest.mark.parametrize("first", [98, 10**15 - 50, 10**18 - 50, 10**18, 2**61])
async def test_large_sequences_are_read_both_ways(
    js: JetStream, stream_name: str, first: int
) -> None:
    stream = await fill(js, stream_name, 300, first_seq=first)

    by_message, by_column = await read_both_ways(stream)

    assert by_message == list(range(first, first + 300))
    assert by_column == by_message


@pytest_asyncio.fixture(params=["feature_flags { js_ack_fc_v2: true }", "domain"])
async def other_acks(request: pytest.FixtureRequest) -> AsyncIterator[JetStream]:
    """A connection to a server whose ack subjects have another form."""
    config = cast("str", request.param)
    if config == "domain":
        config = "feature_flags { js_ack_fc_v2: true }\njetstream { domain: hub }"
    with NatsServer(config=config) as server:
        async with connect(server.url) as js:
            yield js


@pytest.mark.sampled_variants
@pytest.mark.finding(1)
async def test_ack_subjects_of_the_second_form_are_read_both_ways(
    other_acks: JetStream, stream_name: str
) -> None:
    stream = await fill(other_acks, stream_name, 20_000)

    by_message, by_column = await read_both_ways(stream, first=5)
    (message,) = [each async for each in stream.read(first_seq=7, last_seq=7)]

    assert by_message == list(range(5, 20_001))
    assert by_column == by_message
    assert (message.sequence, message.data) == (7, payload(6))


async def test_read_leaves_an_interest_stream_to_its_consumers(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], retention="interest"
    )
    config = {"name": "w", "durable_name": "w", "ack_policy": "explicit"}
    body: dict[str, object] = {"stream_name": stream_name, "config": config}
    await change(js, f"CONSUMER.CREATE.{stream_name}.w", body)
    await fill(js, stream_name, 100, retention="interest")

    assert len([message async for message in stream.read()]) == 100
    assert len([message async for message in stream.read()]) == 100
    assert (await stream.info()).state.messages == 100


async def test_stream_without_acks_is_told_before_anything_is_sent(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], no_ack=True)

    with pytest.raises(ConfigError, match="no_ack"):
        await stream.publish(stream_name, b"x")

    assert (await stream.info()).state.messages == 0
