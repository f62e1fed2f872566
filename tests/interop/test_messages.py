"""Messages: what one client writes, every client reads byte for byte."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect
from tests.interop.clients.client import Ack, RefusedError, Stored
from tests.interop.pairs import pairs

if TYPE_CHECKING:
    from tests.interop.clients.client import Client
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio


@dataclass(frozen=True, slots=True)
class Content:
    """What is published; the name of the case tells what is odd about it."""

    data: bytes = b""
    headers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


CONTENTS = {
    "text": Content(b"hello"),
    "empty": Content(),
    "every-byte": Content(bytes(range(256)) * 8),
    "protocol-lines": Content(b"\r\nMSG x 1 5\r\nhello\r\n+ACK\r\nNATS/1.0\r\n\r\n"),
    "half-a-mebibyte": Content(b"0123456789abcdef" * 32_768),
    "braces": Content(b"{{Count}} {{.Nope}}"),
    "header-alone": Content(headers={"A": ["1"]}),
    "header-with-values": Content(b"x", {"Trace": ["one", "two", "one"], "B": ["3"]}),
    "header-empty": Content(b"x", {"Empty": [""], "Full": ["1"]}),
    "header-unicode": Content(b"x", {"City": ["Zürich \N{SNOWMAN} \N{ROCKET}"]}),
    "header-colons": Content(b"x", {"Time": ["12:30:00: noon"]}),
    "header-case": Content(b"x", {"x-case": ["low"], "X-Case": ["high"], "X-CASE": ["all"]}),
    "header-long": Content(b"x", {"Long": ["v" * 30_000]}),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=list(CONTENTS))
@pairs("stream")
async def test_message_reads_as_it_was_written(
    ours: Ours, writer: Client, reader: Client, stream_name: str, content: Content
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    subject = f"{stream_name}.a"

    ack = await writer.publish(subject, content.data, headers=content.headers)

    assert ack == Ack(stream_name, 1)
    stored = Stored(subject, 1, content.headers, content.data)
    assert await reader.get(stream_name, 1) == stored
    assert await reader.read(stream_name, 1) == [stored]


# nats-py 2.16 takes and shows one value of a header.
OF_NATS_PY = {
    name: content
    for name, content in CONTENTS.items()
    if all(len(values) == 1 and values[0].isascii() for values in content.headers.values())
}


@pytest.mark.sampled
@pytest.mark.parametrize("content", OF_NATS_PY.values(), ids=list(OF_NATS_PY))
@pairs("stream", ("our", "py"), ("our", "py"))
async def test_message_of_nats_py_reads_as_it_was_written(
    ours: Ours, writer: Client, reader: Client, stream_name: str, content: Content
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    subject = f"{stream_name}.a"

    ack = await writer.publish(subject, content.data, headers=content.headers)
    again = await reader.publish(subject, b"2", msg_id="order-1")
    once = await writer.publish(subject, b"3", msg_id="order-1")

    assert (ack, again, once.duplicate) == (Ack(stream_name, 1), Ack(stream_name, 2), True)
    stored = Stored(subject, 1, content.headers, content.data)
    assert await reader.get(stream_name, 1) == stored
    assert (await reader.read(stream_name, 2))[0] == stored


@pairs("stream")
async def test_message_id_of_one_client_is_a_duplicate_for_the_other(
    ours: Ours, writer: Client, reader: Client, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    subject = f"{stream_name}.a"

    first = await writer.publish(subject, b"1", msg_id="order-1")
    again = await reader.publish(subject, b"2", msg_id="order-1")

    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.sequence == first.sequence
    stored = await reader.get(stream_name, 1)
    assert (stored.data, stored.headers) == (b"1", {"Nats-Msg-Id": ["order-1"]})


EXPECTATIONS = {
    "stream": (Expect(stream="ANOTHER"), 10060),
    "last-sequence": (Expect(last_seq=7), 10071),
    "last-sequence-of-an-empty-stream": (Expect(last_seq=0), 10071),
    "last-subject-sequence": (Expect(last_subject_seq=7), 10071),
    "last-subject-sequence-of-a-new-subject": (Expect(last_subject_seq=0), 10071),
    "last-message-id": (Expect(last_msg_id="order-9"), 10070),
}


@pytest.mark.parametrize(("expect", "err_code"), EXPECTATIONS.values(), ids=list(EXPECTATIONS))
async def test_expectation_that_does_not_hold_is_refused_with_the_same_code(
    ours: Ours, writer: Client, stream_name: str, expect: Expect, err_code: int
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    await ours.publish(f"{stream_name}.a", b"1", msg_id="order-1")

    with pytest.raises(RefusedError) as refused:
        await writer.publish(f"{stream_name}.a", b"2", expect=expect)

    assert refused.value.err_code == err_code
    info = await (await ours.js.streams.get(stream_name)).info()
    assert info.state.last_seq == 1


async def test_expectations_that_hold_are_taken_from_every_client(
    ours: Ours, writer: Client, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    await ours.publish(f"{stream_name}.a", b"1", msg_id="order-1")
    expect = Expect(stream=stream_name, last_seq=1, last_subject_seq=1, last_msg_id="order-1")

    ack = await writer.publish(f"{stream_name}.a", b"2", expect=expect)

    assert ack.sequence == 2


async def test_expectation_about_another_subject_means_the_same_to_every_client(
    ours: Ours, writer: Client, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    await ours.publish(f"{stream_name}.a", b"1")

    stale = Expect(last_subject_seq=7, subject=f"{stream_name}.a")
    right = Expect(last_subject_seq=1, subject=f"{stream_name}.a")

    with pytest.raises(RefusedError) as refused:
        await writer.publish(f"{stream_name}.b", b"2", expect=stale)
    ack = await writer.publish(f"{stream_name}.b", b"3", expect=right)

    assert refused.value.err_code == 10071
    assert ack.sequence == 2


@pairs("stream")
async def test_time_to_live_is_stored_for_every_client(
    ours: Ours, writer: Client, reader: Client, stream_name: str
) -> None:
    await ours.create(
        {"name": stream_name, "subjects": [f"{stream_name}.>"], "allow_msg_ttl": True}
    )

    await writer.publish(f"{stream_name}.a", b"1", ttl_s=60)

    # A number is seconds, and with units it is a duration of Go.
    stored = await reader.get(stream_name, 1)
    assert stored.headers in [{"Nats-TTL": [life]} for life in ("60", "60s", "1m0s")]


async def test_time_to_live_is_refused_alike_by_a_stream_without_it(
    ours: Ours, writer: Client, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})

    with pytest.raises(RefusedError) as refused:
        await writer.publish(f"{stream_name}.a", b"1", ttl_s=60)

    assert refused.value.err_code == 10166
