from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

import natsstream as ns
from natsstream.errors import IntegrityError, UsageError, WrongLastSequenceError
from scripts.flights.dataset import Flights, open_flights
from scripts.flights.publish import STREAM, publish_flights

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream.testing import NatsServer

ROWS = 3_000
AWAY_S = 20.0


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Flights:
    """The first 60,000 flights."""
    with ZipFile(open_flights().archive) as opened:
        lines = opened.read("flights.csv").splitlines(keepends=True)[:60_001]
    return Flights(write_archive(tmp_path_factory.mktemp("data"), b"".join(lines)))


def write_archive(folder: Path, content: bytes) -> Path:
    path = folder / "flights.csv.zip"
    with ZipFile(path, "w") as written:
        written.writestr("flights.csv", content)
    return path


@dataclass
class Publishing:
    """One call of `publish_flights` with what it told on the way."""

    held_before: int
    progress: list[int]


async def publish(server: NatsServer, flights: Flights, rows: int = ROWS) -> Publishing:
    progress: list[int] = []
    async with ns.connect(server.url, request_timeout=AWAY_S) as js:
        held = await publish_flights(js, flights, rows=rows, advance=progress.append)
    return Publishing(held, progress)


async def assert_stored(server: NatsServer, flights: Flights, rows: int = ROWS) -> None:
    """The stream holds exactly the first rows, each under its own number."""
    async with ns.connect(server.url) as js:
        stream = await js.streams.get(STREAM)
        found = [(m.sequence, m.subject, m.data) async for m in stream.read()]
        last_seq = (await stream.info()).state.last_seq
    assert last_seq == rows
    assert found == [
        (row, message.subject, message.data)
        for row, message in enumerate(flights.messages(1, rows), 1)
    ]


@pytest.mark.asyncio
async def test_row_n_is_stored_as_sequence_n(fresh_server: NatsServer, flights: Flights) -> None:
    done = await publish(fresh_server, flights)

    assert done.held_before == 0
    assert done.progress == sorted(done.progress)
    assert (done.progress[0], done.progress[-1]) == (0, ROWS)
    await assert_stored(fresh_server, flights)


@pytest.mark.asyncio
async def test_second_run_stores_nothing(fresh_server: NatsServer, flights: Flights) -> None:
    await publish(fresh_server, flights)

    assert (await publish(fresh_server, flights)).held_before == ROWS
    await assert_stored(fresh_server, flights)


@pytest.mark.asyncio
async def test_later_run_may_take_more_rows(fresh_server: NatsServer, flights: Flights) -> None:
    await publish(fresh_server, flights, rows=1_000)

    assert (await publish(fresh_server, flights)).held_before == 1_000
    await assert_stored(fresh_server, flights)
    async with ns.connect(fresh_server.url) as js:
        metadata = (await js.streams.get(STREAM)).cached.config.metadata or {}
    assert (metadata["rows"], metadata["sha256"]) == (str(ROWS), flights.digest)


@pytest.mark.asyncio
async def test_fewer_rows_than_stored_are_refused(
    fresh_server: NatsServer, flights: Flights
) -> None:
    await publish(fresh_server, flights)

    with pytest.raises(UsageError, match="holds 3,000 rows already"):
        await publish(fresh_server, flights, rows=ROWS - 1)
    await assert_stored(fresh_server, flights)


@pytest.mark.asyncio
async def test_publishing_goes_on_when_the_server_comes_back(
    fresh_server: NatsServer, flights: Flights
) -> None:
    # The server is killed with the window full of messages of which nobody knows.
    rows = flights.total
    progress: list[int] = []
    is_under_way = asyncio.Event()

    def advance(done: int) -> None:
        progress.append(done)
        if done > rows // 10:
            is_under_way.set()

    async with ns.connect(fresh_server.url, request_timeout=AWAY_S) as js:
        work = asyncio.create_task(publish_flights(js, flights, rows=rows, advance=advance))
        begun = asyncio.ensure_future(is_under_way.wait())
        await asyncio.wait({work, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        fresh_server.kill()
        assert not work.done()
        await asyncio.to_thread(fresh_server.start)
        assert await work == 0
    await assert_stored(fresh_server, flights, rows)


@pytest.mark.asyncio
async def test_second_publisher_on_the_chain_doubles_nothing(
    fresh_server: NatsServer, flights: Flights
) -> None:
    # Each takes over where the other got in between; both end with every row stored once.
    await publish(fresh_server, flights, rows=1)
    both = await asyncio.gather(
        publish(fresh_server, flights), publish(fresh_server, flights), return_exceptions=True
    )

    assert any(isinstance(one, Publishing) for one in both)
    assert all(isinstance(one, Publishing | WrongLastSequenceError) for one in both)
    await assert_stored(fresh_server, flights)


@pytest.mark.asyncio
async def test_stream_of_somebody_else_is_refused(
    fresh_server: NatsServer, flights: Flights
) -> None:
    async with ns.connect(fresh_server.url) as js:
        await js.streams.create(STREAM, subjects=["flights.>"])

        with pytest.raises(UsageError, match="not made by the quickstart") as caught:
            await publish(fresh_server, flights)
        assert (await (await js.streams.get(STREAM)).info()).state.messages == 0
    assert "--dir" in caught.value.hint


@pytest.mark.asyncio
async def test_stream_of_another_data_set_is_refused(
    fresh_server: NatsServer, flights: Flights, tmp_path: Path
) -> None:
    await publish(fresh_server, flights)
    with ZipFile(flights.archive) as opened:
        changed = opened.read("flights.csv").replace(b"N14228", b"N14229", 1)
    other = Flights(write_archive(tmp_path, changed))

    with pytest.raises(IntegrityError, match="another version of the data set"):
        await publish(fresh_server, other, rows=ROWS + 1)
    await assert_stored(fresh_server, flights)


@pytest.mark.asyncio
async def test_stream_with_a_foreign_message_is_refused(
    fresh_server: NatsServer, flights: Flights
) -> None:
    await publish(fresh_server, flights)
    async with ns.connect(fresh_server.url) as js:
        await js.publish("flights.JFK.XX", b"{}")

    with pytest.raises(IntegrityError, match=f"message {ROWS + 1} .* is not row"):
        await publish(fresh_server, flights, rows=ROWS + 500)
