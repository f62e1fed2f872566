"""Verdicts of one client, as the server and the next client of the same consumer see them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from natsstream.advisories import MaxDeliveries, MessageTerminated
from tests.interop.clients.client import Taken
from tests.interop.pairs import pairs
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from tests.interop.clients.client import Config, Verdict, Worker
    from tests.interop.clients.ours import Ours
    from tests.interop.pairs import Client as Name

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

SECOND_NS = 1_000_000_000
HANG_S = 30.0
NAME = "billing"
DELAY_S = 0.4
REASON = "Rechnung fehlt: größer als 5 %"
# The nats CLI 0.3.0 has no flag for the others.
OF_THE_CLI = ("ack", "nak", "term")
WORKERS: tuple[Name, ...] = ("our", "js", "go", "py")
# What stands on the wire; a delay is JSON or a number of nanoseconds.
BYTES: dict[Verdict, tuple[bytes, ...]] = {
    "ack": (b"+ACK", b""),
    "nak": (b"-NAK",),
    "delay": (b'-NAK {"delay":400000000}',),
    "term": (b"+TERM",),
    "progress": (b"+WPI",),
}


async def make(ours: Ours, stream: str, count: int = 2, **fields: object) -> None:
    """Make a stream with messages and a consumer that all clients share."""
    await ours.create({"name": stream, "subjects": [f"{stream}.>"]})
    config: Config = {"durable_name": NAME, "ack_policy": "explicit", "ack_wait": 60 * SECOND_NS}
    await ours.create_consumer(stream, {**config, **fields})
    for number in range(count):
        await ours.publish(f"{stream}.a", b"%d" % number)


async def all_settled(ours: Ours, stream: str) -> None:
    """Wait until nothing is out: a server that has read a verdict works it off a little later."""
    handle = await ours.consumer(stream, NAME)

    async def is_settled() -> bool:
        return (await handle.info()).num_ack_pending == 0

    assert await eventually_async(is_settled, within_s=HANG_S)


@pytest.mark.parametrize("verdict", BYTES)
async def test_verdict_has_the_same_bytes_from_every_client(
    ours: Ours, worker: Worker, stream_name: str, verdict: Verdict
) -> None:
    await make(ours, stream_name)
    async with ours.js.core.subscribe(f"$JS.ACK.{stream_name}.{NAME}.>") as verdicts:
        await ours.js.core.rtt()

        assert await worker.settle(stream_name, NAME, verdict, delay_s=DELAY_S) == Taken(1, 1)

        said = await verdicts.next(HANG_S)
    assert said is not None
    assert said.data.replace(b'"delay": ', b'"delay":') in BYTES[verdict]


@pairs("stream", WORKERS, WORKERS)
@pytest.mark.parametrize("verdict", ["nak", "delay", "none"])
async def test_message_that_one_client_gives_back_comes_again_to_the_other(
    ours: Ours, writer: Worker, reader: Worker, stream_name: str, verdict: Verdict
) -> None:
    # "none" is a client that has gone: the message comes again after the consumer's ack_wait.
    wait = SECOND_NS if verdict == "none" else 60 * SECOND_NS
    await make(ours, stream_name, count=1, ack_wait=wait)
    begun = time.monotonic()

    assert await writer.settle(stream_name, NAME, verdict, delay_s=DELAY_S) == Taken(1, 1)

    assert await reader.settle(stream_name, NAME, "ack") == Taken(1, 2)
    assert time.monotonic() - begun >= {"nak": 0, "delay": DELAY_S, "none": 0.9}[verdict]
    await all_settled(ours, stream_name)


@pairs("stream", WORKERS, WORKERS)
async def test_message_that_one_client_terminates_does_not_come_to_the_other(
    ours: Ours, writer: Worker, reader: Worker, stream_name: str
) -> None:
    await make(ours, stream_name)

    assert await writer.settle(stream_name, NAME, "term") == Taken(1, 1)

    assert await reader.settle(stream_name, NAME, "ack") == Taken(2, 1)
    await all_settled(ours, stream_name)


# nats-py 2.16 gives no reason.
@pairs("stream", ("our", "js", "go"), ("our", "js", "go"))
async def test_reason_of_one_client_is_in_the_advisory(
    ours: Ours, writer: Worker, reader: Worker, stream_name: str
) -> None:
    await make(ours, stream_name)

    async with ours.js.advisories(kinds=["msg_terminated"], stream=stream_name) as advisories:
        assert await writer.settle(stream_name, NAME, "reason", reason=REASON) == Taken(1, 1)
        told = await advisories.next(HANG_S)

    assert isinstance(told, MessageTerminated)
    assert (told.stream_seq, told.reason) == (1, REASON)
    assert await reader.settle(stream_name, NAME, "ack") == Taken(2, 1)
    await all_settled(ours, stream_name)


@pairs("stream", WORKERS, WORKERS)
async def test_message_is_given_up_after_max_deliver_whoever_took_it(
    ours: Ours, writer: Worker, reader: Worker, stream_name: str
) -> None:
    # One message: the server answers a pull with the next one while it has not worked off a nak.
    await make(ours, stream_name, count=1, max_deliver=2)

    async with ours.js.advisories(kinds=["max_deliveries"], stream=stream_name) as advisories:
        assert await writer.settle(stream_name, NAME, "nak") == Taken(1, 1)
        assert await reader.settle(stream_name, NAME, "nak") == Taken(1, 2)
        await ours.publish(f"{stream_name}.a", b"1")
        assert await writer.settle(stream_name, NAME, "ack") == Taken(2, 1)
        told = await advisories.next(HANG_S)

    assert isinstance(told, MaxDeliveries)
    assert (told.stream_seq, told.deliveries) == (1, 2)


@pairs("stream", ("our", "cli"), ("our", "cli"))
@pytest.mark.parametrize("verdict", OF_THE_CLI)
async def test_verdicts_of_the_cli_mean_the_same(
    ours: Ours, writer: Worker, reader: Worker, stream_name: str, verdict: Verdict
) -> None:
    await make(ours, stream_name, count=1 if verdict == "nak" else 2)

    assert await writer.settle(stream_name, NAME, verdict) == Taken(1, 1)

    then = Taken(1, 2) if verdict == "nak" else Taken(2, 1)
    assert await reader.settle(stream_name, NAME, "ack") == then
