"""Streams that are only read as core streams, for integration tests."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from natsstream.errors import StreamNotFoundError
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from natsstream import CoreStream, JetStream, Stream

LOOK_EVERY_S = 0.2
"""Seconds between two comparisons, in tests of what only they find."""


def new_stream() -> str:
    """Return a name of a stream, and first token of its subjects, that no other test has."""
    return f"over{secrets.token_hex(6)}"


@asynccontextmanager
async def foreign(js: JetStream, name: str = "", **fields: Any) -> AsyncGenerator[Stream]:
    """Create a stream with the subjects `<name>.>`; it is deleted at the end."""
    name = name or new_stream()
    if "mirror" not in fields:
        fields = {"subjects": [f"{name}.>"], **fields}
    stream = await js.streams.create(name, **fields)
    try:
        yield stream
    finally:
        with suppress(StreamNotFoundError):
            await js.streams.delete(name)


async def send(js: JetStream, stream: str, *tokens: str, data: bytes = b"") -> None:
    """Publish a message to each of the subjects `<stream>.<token>`; its data is the token."""
    for token in tokens:
        await js.publish(f"{stream}.{token}", data or token.encode())


async def until_same(view: CoreStream, stream: Stream) -> list[int]:
    """Wait until a view has what the server holds; return the sequences."""

    async def are_same() -> list[tuple[int, bytes]] | None:
        held = [(each.sequence, each.data) async for each in stream.read(on_loss="report")]
        shown = [(each.seq, each.raw) for each in view.raw]
        return shown if shown == held and bool(shown) == bool(held) else None

    async def are_settled() -> bool:
        found = await are_same()
        return found is not None

    await eventually_async(are_settled)
    return view.seqs()
