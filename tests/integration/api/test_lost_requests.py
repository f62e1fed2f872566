"""Questions that a node takes and nobody answers, played by a listener under an API of its own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import NoRespondersError, RequestTimeoutError
from tests.support.loops import turn

if TYPE_CHECKING:
    from natsstream import CoreMessage, CoreSubscription, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

INFO = {"config": {"name": "A"}, "created": "2026-11-21T05:00:00Z", "state": {}}


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is asked again sooner than after a second."""
    monkeypatch.setattr("natsstream._wire.request_timer._AGAIN_AFTER_S", 0.2)


async def answer_second(questions: CoreSubscription) -> list[CoreMessage]:
    """Let the first question go unheard, answer the second, and return both."""
    asked = [await anext(questions), await anext(questions)]
    await asked[1].respond(json.dumps(INFO).encode())
    return asked


async def test_question_that_was_lost_is_asked_again_within_its_deadline(
    server: NatsServer, stream_name: str
) -> None:
    async with (
        connect(server.url, api_prefix=stream_name, request_timeout=30) as js,
        js.core.subscribe(f"{stream_name}.STREAM.INFO.A") as questions,
        asyncio.TaskGroup() as group,
    ):
        answering = group.create_task(answer_second(questions))
        stream = await js.streams.get("A")

    first, second = answering.result()
    assert stream.name == "A"
    assert (first.reply, first.data) == (second.reply, second.data)


async def test_request_without_an_answer_hints_at_the_option_that_its_call_has(
    server: NatsServer, stream_name: str
) -> None:
    async with (
        connect(server.url, api_prefix=stream_name, request_timeout=0.5) as js,
        js.core.subscribe(f"{stream_name}.>"),
    ):
        for call in (js.streams.get("A"), js.streams.create("A", subjects=["a"])):
            with pytest.raises(RequestTimeoutError, match=r"within 0\.5 s") as caught:
                await call
            assert caught.value.hint.startswith("raise request_timeout, or check")


async def test_questions_leave_no_reply_behind(
    server: NatsServer, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock jumps behind the deadline when two have been asked."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    async with (
        connect(server.url, api_prefix=stream_name, request_timeout=30) as js,
        js.core.subscribe(f"{stream_name}.STREAM.INFO.A") as questions,
    ):
        asking = asyncio.ensure_future(js.streams.get("A"))
        first, second = await anext(questions), await anext(questions)
        with monkeypatch.context() as patches:
            patches.setattr(loop, "time", lambda: clock() + 100)
            with pytest.raises(RequestTimeoutError, match="within"):
                await asking
        await js.core.flush()

        assert first.reply == second.reply
        assert questions.pending_count == 0
        assert waiting(js) == {}


async def test_question_that_nobody_heard_is_told_as_that_when_the_last_one_is_lost(
    server: NatsServer, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last attempt has what the others left of the time, and says less than they do."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    async with connect(server.url, api_prefix=stream_name, request_timeout=30) as js:
        asking = asyncio.ensure_future(js.streams.get("A"))
        await turn()
        await js.core.flush()
        async with js.core.subscribe(f"{stream_name}.STREAM.INFO.A") as questions:
            await anext(questions)
            with monkeypatch.context() as patches:
                patches.setattr(loop, "time", lambda: clock() + 100)
                with pytest.raises(NoRespondersError):
                    await asking


async def test_answers_that_come_twice_are_no_answer_to_the_next_question(
    server: NatsServer, stream_name: str
) -> None:
    async with (
        connect(server.url, api_prefix=stream_name, request_timeout=30) as js,
        js.core.subscribe(f"{stream_name}.STREAM.INFO.*") as questions,
    ):
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(answer_second(questions))
            await js.streams.get("A")
        late, _ = answering.result()
        async with asyncio.TaskGroup() as group:
            group.create_task(answer_after(questions, late))
            stream = await js.streams.get("B")

    assert stream.name == "B"


async def answer_after(questions: CoreSubscription, late: CoreMessage) -> None:
    """Answer an old question, then the next one."""
    await late.respond(json.dumps(INFO).encode())
    config = {**INFO, "config": {"name": "B"}}
    await (await anext(questions)).respond(json.dumps(config).encode())


async def test_request_that_changes_something_is_sent_once(
    server: NatsServer, stream_name: str
) -> None:
    async with (
        connect(server.url, api_prefix=stream_name, request_timeout=1.2) as js,
        js.core.subscribe(f"{stream_name}.STREAM.DELETE.A") as questions,
    ):
        with pytest.raises(RequestTimeoutError):
            await js.streams.delete("A")
        await js.core.flush()

        assert questions.pending_count == 1


async def test_cancelled_question_is_asked_no_more(server: NatsServer, stream_name: str) -> None:
    async with (
        connect(server.url, api_prefix=stream_name, request_timeout=30) as js,
        js.core.subscribe(f"{stream_name}.STREAM.INFO.A") as questions,
    ):
        asking = asyncio.ensure_future(js.streams.get("A"))
        await anext(questions)
        asking.cancel()

        assert await asyncio.wait([asking]) == ({asking}, set())
        assert asking.cancelled()
        assert waiting(js) == {}


def waiting(js: JetStream) -> object:
    """Return the replies that are waited for."""
    return js._client.requests._waiting  # pyright: ignore[reportPrivateUsage]
