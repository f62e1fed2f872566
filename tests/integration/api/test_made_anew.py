"""A stream that is deleted and made anew at once: what is tried again, and what is left alone."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from natsstream import JetStream
    from natsstream.testing import NatsNode

    Spoil = Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def between(server: NatsNode, prefix: str, spoil: Spoil) -> AsyncGenerator[list[str]]:
    """Stand for JetStream's API under a prefix; `spoil` may change the answer to each creation.

    Yields the operations that were asked for, such as `CREATE`.
    """
    asked: list[str] = []
    async with connect(server.url) as js, js.core.subscribe(f"{prefix}.>") as requests:

        async def forward() -> None:
            async for request in requests:
                subject = f"$JS.API{request.subject.removeprefix(prefix)}"
                answer = json.loads((await js.core.request(subject, request.data)).data)
                if subject.startswith("$JS.API.STREAM."):
                    asked.append(subject.split(".")[3])
                    if asked[-1] == "CREATE":
                        answer = await spoil(asked.count("CREATE"), answer)
                await request.respond(json.dumps(answer).encode())

        forwarding = asyncio.ensure_future(forward())
        try:
            yield asked
        finally:
            forwarding.cancel()
            await asyncio.gather(forwarding, return_exceptions=True)


async def never_made(_: int, answer: dict[str, Any]) -> dict[str, Any]:
    return not_made(answer)


def not_made(answer: dict[str, Any]) -> dict[str, Any]:
    del answer
    error = {"code": 500, "err_code": 10049, "description": "error creating store for stream"}
    return {"error": error}


async def test_a_stream_that_can_not_be_made_for_now_is_made_a_moment_later(
    server: NatsNode, stream_name: str
) -> None:
    async def spoil(number: int, answer: dict[str, Any]) -> dict[str, Any]:
        return not_made(answer) if number <= 2 else answer

    async with (
        between(server, stream_name, spoil) as asked,
        connect(server.url, api_prefix=stream_name) as js,
    ):
        await js.streams.create(stream_name)

    assert asked == ["CREATE"] * 3


async def test_a_stream_that_can_not_be_made_at_all_is_the_servers_error(
    server: NatsNode, stream_name: str
) -> None:
    async with (
        between(server, stream_name, never_made) as asked,
        connect(server.url, api_prefix=stream_name) as js,
    ):
        with pytest.raises(ServerError) as caught:
            await js.streams.create(stream_name)

    assert caught.value.err_code == 10049
    assert set(asked) == {"CREATE"}


async def test_a_stream_whose_messages_are_older_than_itself_keeps_them(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    """A server alone says `did_create` of a stream that was there already."""
    stream = await js.streams.create(stream_name)
    await js.publish(stream_name, b"kept")
    await stream.backup(tmp_path / "backup")
    await stream.delete()
    await js.streams.restore(tmp_path / "backup")

    again = await js.streams.create(stream_name)

    assert (again.cached.state.messages, again.cached.state.last_seq) == (1, 1)
