"""Arguments of a message: what is wrong is refused in the caller's words, before anything is sent.

The four ways to send share one check, so each is asked the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream import ConfigError, PublishMessage, Schedule, UsageError
from natsstream.errors import HeaderError, MessageRuleError, ScheduleError, SubjectError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream

    Send = Callable[..., Awaitable[object]]

pytestmark = pytest.mark.asyncio


async def by_publish(js: JetStream, stream: str, subject: Any, **arguments: Any) -> object:
    """Publish by the context."""
    del stream
    return await js.publish(subject, **arguments)


async def by_stream(js: JetStream, stream: str, subject: Any, **arguments: Any) -> object:
    """Publish by the stream."""
    return await (await js.streams.get(stream)).publish(subject, **arguments)


async def by_publisher(js: JetStream, stream: str, subject: Any, **arguments: Any) -> object:
    """Publish by a publisher."""
    del stream
    async with js.publisher() as publisher:
        return await (await publisher.send(subject, **arguments))


async def by_retrying_publisher(
    js: JetStream, stream: str, subject: Any, **arguments: Any
) -> object:
    """Publish by a publisher that may send again."""
    async with js.publisher(retry_for=30, stream=stream) as publisher:
        return await (await publisher.send(subject, **arguments))


async def by_many(js: JetStream, stream: str, subject: Any, **arguments: Any) -> object:
    """Publish by a publisher, as one of many."""
    del stream
    async with js.publisher() as publisher:
        return await publisher.send_many([PublishMessage(subject, **arguments)])


WAYS = [by_publish, by_stream, by_publisher, by_retrying_publisher, by_many]
WRONG: list[tuple[dict[str, Any], type[UsageError], str]] = [
    ({"subject": None}, SubjectError, "subject is None"),
    ({"subject": b"s"}, SubjectError, "decode"),
    ({"subject": ["s"]}, SubjectError, "of type list"),
    ({"subject": 7}, SubjectError, "of type int"),
    ({"subject": "a b"}, SubjectError, "a b"),
    ({"data": "text"}, ConfigError, "encode"),
    ({"data": None}, ConfigError, "data is None"),
    ({"headers": "x"}, ConfigError, "headers is 'x'"),
    ({"headers": [("A", "b")]}, ConfigError, "headers is"),
    ({"headers": {1: "b"}}, HeaderError, "header name"),
    ({"headers": {"A": 5}}, HeaderError, "type int"),
    ({"headers": {"A": "x\r\nNats-TTL: 1"}}, HeaderError, "line break"),
    ({"msg_id": 5}, ConfigError, "msg_id is 5"),
    ({"msg_id": b"i"}, ConfigError, "decode"),
    ({"msg_id": "a\r\nb"}, HeaderError, "line break"),
    ({"expect": {"last_seq": 1}}, ConfigError, "ns.Expect"),
    ({"ttl": "1h"}, ConfigError, "never"),
    ({"ttl": True}, ConfigError, "ttl is True"),
    ({"ttl": [1]}, ConfigError, "finite"),
    ({"ttl": 0.5}, ConfigError, "whole number"),
    ({"rollup": "subjct"}, ConfigError, "did you mean subject"),
    ({"rollup": True}, ConfigError, "one of subject, all"),
    ({"schedule": "@hourly"}, ConfigError, "ns.Schedule"),
    ({"schedule": Schedule.every(60, target="s.t"), "subject": "s.t"}, ConfigError, "own subject"),
    ({"schedule": Schedule.every(60, target="s.t"), "rollup": "all"}, ConfigError, "rollup"),
]


@pytest.mark.parametrize("way", WAYS)
async def test_wrong_arguments_are_refused_before_anything_is_sent(
    js: JetStream, stream_name: str, way: Send
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    for arguments, error, words in WRONG:
        given = {"subject": stream_name, **arguments}
        with pytest.raises(error) as caught:
            await way(js, stream_name, **given)
        assert words in str(caught.value), arguments
        assert caught.value.hint or isinstance(caught.value, SubjectError | HeaderError), arguments

    assert (await stream.info()).state.last_seq == 0


NO_MESSAGES: list[Any] = [None, 5, "ab", {"s": b""}, ["ab"], [("s",)], [None], [("s", b"", {})]]


@pytest.mark.parametrize("messages", NO_MESSAGES)
async def test_many_messages_of_another_shape_are_refused(js: JetStream, messages: Any) -> None:
    async with js.publisher() as publisher:
        with pytest.raises(ConfigError, match="subject, data"):
            await publisher.send_many(messages)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": "5"},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"retry_attempts": 1.5},
        {"retry_attempts": -1},
        {"retry_wait": None},
    ],
)
async def test_wrong_patience_is_refused(js: JetStream, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        await js.publish("nobody.listens", b"", **options)


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_stream_does_not_allow_is_told_with_what_to_change(
    js: JetStream, stream_name: str, way: Send
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"], storage="memory")
    subject = f"{stream_name}.a"
    target = f"{stream_name}.b"

    with pytest.raises(MessageRuleError, match=f"allow_msg_ttl on stream {stream_name}"):
        await way(js, stream_name, subject, ttl=5)
    with pytest.raises(MessageRuleError, match="allow_rollup_hdrs"):
        await way(js, stream_name, subject, rollup="subject")
    with pytest.raises(ScheduleError, match="allow_msg_schedules"):
        await way(js, stream_name, subject, schedule=Schedule.every(9, target=target))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rollup", "left"), [("subject", [2, 4]), ("all", [4])])
async def test_rollup_replaces_what_stands_before_it(
    js: JetStream, stream_name: str, way: Send, rollup: str, left: list[int]
) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], storage="memory", allow_rollup_hdrs=True
    )
    for name in ("a", "b", "a"):
        await js.publish(f"{stream_name}.{name}", b"")

    await way(js, stream_name, f"{stream_name}.a", rollup=rollup)

    assert [message.sequence async for message in stream.read()] == left


@pytest.mark.parametrize("way", WAYS)
async def test_arguments_stand_in_the_stored_headers(
    js: JetStream, stream_name: str, way: Send
) -> None:
    stream = await js.streams.create(
        stream_name,
        subjects=[stream_name],
        storage="memory",
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
    )

    await way(
        js,
        stream_name,
        stream_name,
        headers={"A": ["1", "2"]},
        msg_id="i",
        ttl="never",
        rollup="subject",
    )

    message = await stream.get(1)
    assert message is not None
    assert message.headers.all("A") == ("1", "2")
    assert message.headers["Nats-Msg-Id"] == "i"
    assert message.headers["Nats-TTL"] == "never"
    assert message.headers["Nats-Rollup"] == "sub"
