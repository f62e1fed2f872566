"""A stream that is deleted and made anew at once is empty, and knows no id of the old one.

The first test has a real server mix them up, which it does in some of the rounds; the others stand
between the client and the server, and let each kind of mixing up happen.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import connect
from natsstream.errors import IntegrityError, ServerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from natsstream import JetStream
    from natsstream.testing import NatsNode

    Spoil = Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]

pytestmark = pytest.mark.asyncio

# Without the look at what was made a third stream of a name holds old messages once in six names.
NAMES = 40
ROUNDS = 3
MESSAGES = 20
OLD = "2020-01-01T00:00:00Z"


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


def with_remains(answer: dict[str, Any]) -> dict[str, Any]:
    state = {**cast("dict[str, Any]", answer["state"])}
    state |= {"messages": 3, "first_seq": 1, "first_ts": OLD, "last_seq": 3, "last_ts": OLD}
    return {**answer, "state": state}


async def always_old(_: int, answer: dict[str, Any]) -> dict[str, Any]:
    return with_remains(answer)


async def never_made(_: int, answer: dict[str, Any]) -> dict[str, Any]:
    return not_made(answer)


def not_made(answer: dict[str, Any]) -> dict[str, Any]:
    del answer
    error = {"code": 500, "err_code": 10049, "description": "error creating store for stream"}
    return {"error": error}


async def test_a_stream_that_is_made_anew_at_once_is_empty(js: JetStream, stream_name: str) -> None:
    for number in range(NAMES):
        name = f"{stream_name}_{number}"
        for _ in range(ROUNDS):
            stream = await js.streams.create(name)
            assert stream.cached.state.last_seq == 0
            async with js.publisher() as publisher:
                for each in range(MESSAGES):
                    await publisher.send(name, bytes(200), msg_id=str(each))
            assert (await stream.info()).state.messages == MESSAGES
            await stream.delete()


async def test_a_stream_with_old_messages_is_deleted_and_made_once_more(
    server: NatsNode, stream_name: str
) -> None:
    async def spoil(number: int, answer: dict[str, Any]) -> dict[str, Any]:
        return with_remains(answer) if number == 1 else answer

    async with (
        between(server, stream_name, spoil) as asked,
        connect(server.url, api_prefix=stream_name) as js,
    ):
        stream = await js.streams.create(stream_name)

    assert stream.cached.state.messages == 0
    assert asked == ["CREATE", "INFO", "DELETE", "CREATE"]


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


async def test_a_stream_that_always_has_old_messages_is_told_and_gone(
    server: NatsNode, stream_name: str
) -> None:
    async with (
        between(server, stream_name, always_old) as asked,
        connect(server.url, api_prefix=stream_name) as js,
    ):
        with pytest.raises(IntegrityError, match="deleted stream of its name"):
            await js.streams.create(stream_name)

    assert asked[-1] == "DELETE"


async def test_a_stream_with_old_messages_stays_where_others_have_stored_since(
    server: NatsNode, js: JetStream, stream_name: str
) -> None:
    """What was acknowledged is in the stream: it is not deleted with the old messages."""

    async def spoil(number: int, answer: dict[str, Any]) -> dict[str, Any]:
        del number
        await js.publish(stream_name, b"new")
        return with_remains(answer)

    async with (
        between(server, stream_name, spoil) as asked,
        connect(server.url, api_prefix=stream_name) as behind,
    ):
        with pytest.raises(IntegrityError, match="others have stored"):
            await behind.streams.create(stream_name)

    assert "DELETE" not in asked
    assert (await (await js.streams.get(stream_name)).info()).state.messages == 1


async def test_a_stream_that_is_there_already_is_no_new_one(
    js: JetStream, stream_name: str
) -> None:
    """Its messages are older than the answer, and nobody's remains."""
    await js.streams.create(stream_name, first_seq=100)
    await js.publish(stream_name, b"kept")

    again = await js.streams.create(stream_name, first_seq=100)

    assert (again.cached.state.messages, again.cached.state.last_seq) == (1, 100)
