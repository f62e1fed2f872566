"""Fast batches: what each client ingests, every client reads, also side by side in one stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from natsstream import IngestReport, Stream
    from tests.interop.clients.client import Client, Headers, Stored
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

COUNT = 60
SIDE_BY_SIDE = 700


def messages(count: int) -> list[tuple[bytes, Headers]]:
    """Return payloads with headers, some of them odd."""
    return [
        (b"" if number % 9 == 0 else b"%d \r\n" % number, {"N": [str(number), "zwölf"]})
        for number in range(count)
    ]


def contents(found: list[Stored]) -> list[tuple[bytes, Headers]]:
    """Return payloads and headers, without that of natsstream's first message: for one stream."""
    return [
        (each.data, {name: each.headers[name] for name in each.headers if name == "N"})
        for each in found
    ]


async def make(ours: Ours, name: str, replicas: int) -> Stream:
    """Make a stream that takes fast batches."""
    return await ours.js.streams.create(
        name, subjects=[f"{name}.>"], replicas=replicas, allow_batched=True
    )


async def ingest(stream: Stream, subject: str, count: int) -> IngestReport:
    """Ingest messages with natsstream."""
    async with stream.ingest() as fast:
        for data, headers in messages(count):
            await fast.send(subject, data, headers=headers)
        return await fast.close()


async def test_what_another_client_ingests_is_what_every_client_reads(
    ours: Ours, peer: NatsJs, reader: Client, stream_name: str
) -> None:
    # nats.js does not send again: on R3 its batch ends early now and then.
    await make(ours, stream_name, replicas=1)
    sent = messages(COUNT)

    ack = await peer.ingest(f"{stream_name}.a", sent)

    assert (ack.stream, ack.sequence) == (stream_name, COUNT)
    found = await reader.read(stream_name, COUNT)
    assert contents(found) == sent


@pytest.mark.parametrize("replicas", [1, 3], ids=["R1", "R3"])
async def test_what_we_ingest_is_what_every_client_reads(
    ours: Ours, reader: Client, stream_name: str, replicas: int
) -> None:
    stream = await make(ours, stream_name, replicas)

    report = await ingest(stream, f"{stream_name}.a", COUNT)

    assert (report.stored, report.last_seq) == (COUNT, COUNT)
    found = await reader.read(stream_name, COUNT)
    assert contents(found) == messages(COUNT)


async def test_clients_that_ingest_into_one_stream_keep_their_own_order(
    ours: Ours, peer: NatsJs, stream_name: str
) -> None:
    stream = await make(ours, stream_name, replicas=1)

    report, ack = await asyncio.gather(
        ingest(stream, f"{stream_name}.ours", SIDE_BY_SIDE),
        peer.ingest(f"{stream_name}.theirs", messages(SIDE_BY_SIDE)),
    )

    assert report.is_complete
    assert max(report.last_seq or 0, ack.sequence) == 2 * SIDE_BY_SIDE
    for subject in (f"{stream_name}.ours", f"{stream_name}.theirs"):
        found = await ours.read(stream_name, SIDE_BY_SIDE, only=subject)
        assert contents(found) == messages(SIDE_BY_SIDE)
