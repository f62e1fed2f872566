"""One message at a time: what it may ask of the stream, who answers, and when it is sent again."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import ConfigError, Expect, connect
from natsstream.errors import (
    MessageRuleError,
    NoRespondersError,
    PermissionDeniedError,
    ProtocolError,
    RequestTimeoutError,
    WrongLastSequenceError,
)
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

DENYING = """
accounts { A { jetstream: enabled, users: [
  { user: all, password: pw }
  { user: narrow, password: pw, permissions: { publish: { deny: ["s.closed"] } } } ] } }
"""


@asynccontextmanager
async def answering(js: JetStream, subject: str, answer: bytes) -> AsyncGenerator[None]:
    """Something that is no stream answers on a subject."""
    async with js.core.subscribe(subject) as requests:

        async def answer_all() -> None:
            async for request in requests:
                await js.core.publish(request.reply, answer)

        task = asyncio.create_task(answer_all())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.mark.proves("1b", "...-Subject (seq for another / wildcard subject)")
@pytest.mark.finding(31)
async def test_expected_sequence_of_another_subject_is_checked_there(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await js.publish(f"{stream_name}.a", b"1")
    await js.publish(f"{stream_name}.a", b"2")

    held = Expect(last_subject_seq=2, subject=f"{stream_name}.a")
    ack = await js.publish(f"{stream_name}.b", b"3", expect=held)
    stale = Expect(last_subject_seq=1, subject=f"{stream_name}.a")
    with pytest.raises(WrongLastSequenceError):
        await js.publish(f"{stream_name}.b", b"4", expect=stale)

    assert ack.sequence == 3


@pytest.mark.proves("1b", 'per-message TTL (fraction, "never")')
@pytest.mark.finding(31)
async def test_ttl_stands_in_the_message_as_it_was_asked(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], allow_msg_ttl=True)

    await js.publish(stream_name, b"1", ttl=90)
    await stream.publish(stream_name, b"2", ttl="never")

    found = [message.headers["Nats-TTL"] async for message in stream.read()]
    assert found == ["90", "never"]


@pytest.mark.proves("1b", 'per-message TTL (fraction, "never")')
async def test_message_is_gone_after_its_ttl(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], allow_msg_ttl=True)
    await js.publish(stream_name, b"1", ttl=1)

    async def is_gone() -> bool:
        return (await stream.info()).state.messages == 0

    await eventually_async(is_gone)


@pytest.mark.proves("1b", 'per-message TTL (fraction, "never")')
async def test_ttl_is_refused_by_a_stream_that_does_not_allow_it(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    with pytest.raises(MessageRuleError, match="10166"):
        await js.publish(stream_name, b"1", ttl=60)


@pytest.mark.proves("1b", "counters (Nats-Incr, PubAck.val)")
async def test_counter_tells_its_total(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], extra={"allow_msg_counter": True})

    await js.publish(stream_name, headers={"Nats-Incr": "+40"})
    ack = await js.publish(stream_name, headers={"Nats-Incr": "+2"})

    assert (ack.sequence, ack.value) == (2, 42)


async def test_headers_with_several_values_arrive_and_stay_the_callers(
    js: JetStream, stream_name: str
) -> None:
    """nats-py collapses values into one and writes into the caller's dict (finding 23)."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], allow_msg_ttl=True)
    headers: dict[str, str | list[str]] = {"A": ["1", "2"], "B": "é"}

    await js.publish(stream_name, b"x", headers=headers, ttl=60, expect=Expect(last_seq=0))
    message = await stream.get(1)

    assert headers == {"A": ["1", "2"], "B": "é"}
    assert message is not None
    assert message.headers.all("A") == ("1", "2")
    assert message.headers["B"] == "é"


@pytest.mark.finding(24)
@pytest.mark.parametrize("answer", [b"", b"pong", b"{}", b'{"stream":"S"}', b"[" * 100_000])
async def test_answer_that_is_no_ack_is_a_protocol_error(
    js: JetStream, stream_name: str, answer: bytes
) -> None:
    """nats-py raises a JSONDecodeError there (finding 24)."""
    async with answering(js, stream_name, answer):
        with pytest.raises(ProtocolError) as caught:
            await js.publish(stream_name, b"x")
        async with js.publisher() as publisher:
            with pytest.raises(ProtocolError):
                await (await publisher.send(stream_name, b"x"))

    assert stream_name in caught.value.message


@pytest.mark.proves("1b", "retry on no responders (ADR-22)")
async def test_message_is_sent_again_until_a_stream_is_there(
    js: JetStream, stream_name: str
) -> None:
    """As in a leader change, nobody listens at first (ADR-22; finding 30)."""
    publishing = asyncio.create_task(
        js.publish(stream_name, b"x", retry_attempts=10_000, retry_wait=0.02, timeout=30)
    )
    await asyncio.wait([publishing], timeout=0.1)
    assert not publishing.done()

    await js.streams.create(stream_name, subjects=[stream_name])

    assert (await publishing).sequence == 1


async def test_attempts_are_counted_and_spaced(js: JetStream, stream_name: str) -> None:
    started = time.monotonic()
    with pytest.raises(NoRespondersError):
        await js.publish(stream_name, b"x", retry_attempts=3, retry_wait=0.05)
    waited = time.monotonic() - started

    assert waited >= 0.15
    with pytest.raises(NoRespondersError):
        # The second attempt would come too late, so it is not waited for.
        async with asyncio.timeout(40):
            await js.publish(stream_name, b"x", retry_attempts=1_000, retry_wait=60, timeout=30)
    # A short timeout ends them too; on a machine that stands still there may be no answer in time.
    with pytest.raises((NoRespondersError, RequestTimeoutError)):
        async with asyncio.timeout(40):
            await js.publish(stream_name, b"x", retry_attempts=1_000, timeout=0.3)


@pytest.mark.parametrize("ask", ["publish", "change"])
async def test_attempt_that_would_come_too_late_is_not_made(
    js: JetStream, stream_name: str, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process stands still, by its clock, while it waits for the second attempt."""
    loop = asyncio.get_running_loop()
    clock, stood_still_s = loop.time, 0

    async def stand_still(_: float) -> None:
        nonlocal stood_still_s
        stood_still_s += 100

    client = js._client  # pyright: ignore[reportPrivateUsage] - what sends requests.
    command = client.publish_command
    sent: list[str] = []

    def count(subject: str, reply: str, headers: bytes, data: bytes) -> bytes:
        sent.append(subject)
        return command(subject, reply, headers, data)

    if ask == "publish":
        asking: Awaitable[object] = js.publish(stream_name, b"x", timeout=30)
    else:
        asking = client.request(stream_name, timeout=30, retries=2)
    with monkeypatch.context() as patches:
        patches.setattr(loop, "time", lambda: clock() + stood_still_s)
        patches.setattr(asyncio, "sleep", stand_still)
        patches.setattr(client, "publish_command", count)
        with pytest.raises(NoRespondersError):
            await asking

    assert sent == [stream_name]


@pytest.mark.parametrize("option", [{"retry_attempts": -1}, {"retry_wait": -1}, {"timeout": 0}])
async def test_options_below_zero_are_refused(
    js: JetStream, stream_name: str, option: dict[str, int]
) -> None:
    with pytest.raises(ConfigError):
        await js.publish(stream_name, b"x", **option)  # pyright: ignore[reportArgumentType] - a table.


async def test_missing_ack_hints_at_streams_that_give_none(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], no_ack=True)

    with pytest.raises(RequestTimeoutError) as caught:
        await js.publish(stream_name, b"x", timeout=0.3)

    assert "no_ack" in caught.value.hint


async def test_denied_publish_fails_at_once_and_no_other_does() -> None:
    with NatsServer(config=DENYING) as server:
        async with (
            connect(server.url, user="all", password="pw") as boss,  # noqa: S106 - of the test.
            connect(server.url, user="narrow", password="pw") as js,  # noqa: S106
        ):
            await boss.streams.create("S", subjects=["s.>"])

            with pytest.raises(PermissionDeniedError) as caught:
                await js.publish("s.closed", b"x", timeout=60)
            async with js.publisher(ack_timeout=60) as publisher:
                futures = [
                    await publisher.send(f"s.{name}", b"x")
                    for name in ("open", "closed", "open", "closed")
                ]
                async with asyncio.timeout(30):
                    await asyncio.wait(futures)
                ended = [type(future.exception()) for future in futures]

    assert caught.value.subject == "s.closed"
    assert ended == [type(None), PermissionDeniedError] * 2
