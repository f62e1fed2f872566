"""Streams that are made when a message is published for which there is none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import Expect, connect
from natsstream.errors import (
    ConfigError,
    InvalidConfigError,
    LimitExceededError,
    NoRespondersError,
    RequestTimeoutError,
    StreamExistsError,
    StreamNameError,
    StreamNotFoundError,
)

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


async def names_of(js: JetStream, prefix: str) -> list[str]:
    """Return the names of the streams that capture subjects below a prefix."""
    return [name async for name in js.streams.names(subject=f"{prefix}.>")]


@pytest.mark.smoke
@pytest.mark.proves("1a", "stream templates (seed 004 item)")
async def test_publish_makes_the_stream_and_stores_the_message(
    js: JetStream, stream_name: str
) -> None:
    js.streams.template(f"{stream_name}.*", max_msgs=5, storage="memory", metadata={"a": "1"})

    ack = await js.publish(f"{stream_name}.new", b"1")

    name = f"{stream_name.replace('_', '=5F')}_new"
    assert (ack.stream, ack.sequence) == (name, 1)
    config = (await js.streams.get(name)).cached.config
    assert (config.subjects, config.max_msgs, config.storage) == (
        (f"{stream_name}.new",),
        5,
        "memory",
    )
    assert (config.metadata or {})["a"] == "1"
    assert (await js.publish(f"{stream_name}.new", b"2")).sequence == 2


@pytest.mark.proves("1a", "stream templates (seed 004 item)")
async def test_subjects_that_differ_get_streams_that_differ(
    js: JetStream, stream_name: str
) -> None:
    js.streams.template(f"{stream_name}.*.*", name=f"{stream_name}_{{1}}_{{2}}")

    first = await js.publish(f"{stream_name}.a_b.c", b"")
    second = await js.publish(f"{stream_name}.a.b_c", b"")
    third = await js.publish(f"{stream_name}.a.b=5Fc", b"")

    assert [ack.sequence for ack in (first, second, third)] == [1, 1, 1]
    assert len({first.stream, second.stream, third.stream}) == 3


async def test_rest_of_the_subject_goes_to_one_stream(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*.>", name=f"{stream_name}_{{1}}")

    acks = [await js.publish(f"{stream_name}.{tail}", b"") for tail in ("a.x", "a.y.z", "b.x")]

    assert [(ack.stream, ack.sequence) for ack in acks] == [
        (f"{stream_name}_a", 1),
        (f"{stream_name}_a", 2),
        (f"{stream_name}_b", 1),
    ]
    with pytest.raises(NoRespondersError):
        await js.publish(f"{stream_name}.a", b"", retry_attempts=0)


async def test_subject_outside_of_the_template_makes_nothing(
    js: JetStream, stream_name: str
) -> None:
    template = js.streams.template(f"{stream_name}.*")

    with pytest.raises(NoRespondersError):
        await js.publish(f"{stream_name}.a.b", b"", retry_attempts=0)

    assert await names_of(js, stream_name) == []
    template.remove()
    template.remove()
    with pytest.raises(NoRespondersError):
        await js.publish(f"{stream_name}.a", b"", retry_attempts=0)


@pytest.mark.proves("1a", "stream templates (seed 004 item)")
async def test_many_publishers_at_once_make_one_stream(
    js: JetStream, server: NatsNode, stream_name: str
) -> None:
    """Of two connections, each with its own template."""
    async with connect(server.url) as other:
        for each in (js, other):
            each.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(each.publish(f"{stream_name}.{number % 3}", b""))
                for number in range(30)
                for each in (js, other)
            ]

    acks = [task.result() for task in tasks]
    assert sorted(await names_of(js, stream_name)) == [f"{stream_name}_{n}" for n in range(3)]
    stored = sorted((ack.stream, ack.sequence) for ack in acks)
    assert stored == [(f"{stream_name}_{n}", seq) for n in range(3) for seq in range(1, 21)]


@pytest.mark.proves("1a", "stream templates (seed 004 item)")
async def test_publisher_makes_streams_and_loses_nothing(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")

    async with js.publisher() as publisher:
        acks = await publisher.send_many(
            [(f"{stream_name}.{number % 4}", b"%d" % number) for number in range(40)]
        )

    assert [ack.sequence for ack in acks] == [number // 4 + 1 for number in range(40)]
    for name in await names_of(js, stream_name):
        stream = await js.streams.get(name)
        numbers = [int(message.data) async for message in stream.read()]
        assert numbers == sorted(numbers)
        assert len(numbers) == 10


async def test_publisher_that_retries_makes_the_stream(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")

    async with js.publisher(retry_for=30) as publisher:
        future = await publisher.send(f"{stream_name}.a", b"")
        assert (await future).stream == f"{stream_name}_a"


async def test_expectation_holds_for_a_stream_that_is_made(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")

    ack = await js.publish(f"{stream_name}.a", b"", expect=Expect(last_seq=0), msg_id="once")
    again = await js.publish(f"{stream_name}.a", b"", msg_id="once")

    assert (ack.sequence, again.sequence, again.duplicate) == (1, 1, True)


async def test_number_of_streams_is_bounded(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}", max_streams=3)

    results = await asyncio.gather(
        *(js.publish(f"{stream_name}.{number}", b"") for number in range(6)),
        return_exceptions=True,
    )

    refused = [each for each in results if isinstance(each, LimitExceededError)]
    assert len(await names_of(js, stream_name)) == 6 - len(refused) <= 3
    first = (await names_of(js, stream_name))[0].removeprefix(f"{stream_name}_")
    assert (await js.publish(f"{stream_name}.{first}", b"")).sequence == 2


async def test_subjects_that_come_at_once_get_as_many_streams_as_there_may_be(
    js: JetStream, stream_name: str
) -> None:
    """They all ask how many there are before the first one is made."""
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}", max_streams=3)
    make = js._api.make_stream  # pyright: ignore[reportPrivateUsage]
    assert make is not None

    results = await asyncio.gather(
        *(make(f"{stream_name}.{number}") for number in range(6)), return_exceptions=True
    )

    assert [each for each in results if each is True] == [True] * 3
    assert sum(isinstance(each, LimitExceededError) for each in results) == 3
    assert len(await names_of(js, stream_name)) == 3


async def test_stream_of_somebody_else_is_never_changed(js: JetStream, stream_name: str) -> None:
    theirs = await js.streams.create(f"{stream_name}_a", subjects=[f"other.{stream_name}"])
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")

    with pytest.raises(StreamExistsError, match="captures other subjects"):
        await js.publish(f"{stream_name}.a", b"")

    assert (await theirs.info()).config == theirs.cached.config


async def test_stream_that_captures_the_subject_is_used(js: JetStream, stream_name: str) -> None:
    await js.streams.create(f"{stream_name}_all", subjects=[f"{stream_name}.>"])
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")

    assert (await js.publish(f"{stream_name}.a", b"")).stream == f"{stream_name}_all"
    async with js.publisher() as publisher:
        acks = await publisher.send_many([(f"{stream_name}.b", b"")])

    assert acks[0].stream == f"{stream_name}_all"


async def test_changed_stream_of_the_template_stays_changed(
    js: JetStream, stream_name: str
) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}", max_msgs=5)
    await js.publish(f"{stream_name}.a", b"")
    await js.streams.update(f"{stream_name}_a", max_msgs=9)

    await js.publish(f"{stream_name}.a", b"")

    assert (await js.streams.get(f"{stream_name}_a")).cached.config.max_msgs == 9


async def test_what_can_not_be_made_is_told_by_publish(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*", max_age=5, duplicate_window=9)
    js.streams.template(f"{stream_name}.x.*", name="S_{1}")

    with pytest.raises(InvalidConfigError):
        await js.publish(f"{stream_name}.a", b"")
    with pytest.raises(StreamNameError):
        await js.publish(f"{stream_name}.x.{'a' * 300}", b"")
    with pytest.raises(RequestTimeoutError):
        await js.publish(f"{stream_name}.b", b"", timeout=0.0001)


async def test_templates_that_can_not_work_are_refused(js: JetStream, stream_name: str) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}")
    misspelt: dict[str, Any] = {"max_msg": 1}

    with pytest.raises(ConfigError, match="overlaps"):
        js.streams.template(f"{stream_name}.>".replace(".>", ".*"))
    with pytest.raises(ConfigError, match="names of template"):
        js.streams.template(f"{stream_name}.*.>", name=f"{stream_name}_{{1}}")
    with pytest.raises(ConfigError, match="subjects cannot be given"):
        js.streams.template("t.*", subjects=["t.>"])
    with pytest.raises(ConfigError, match="did you mean max_msgs"):
        js.streams.template("t.*", **misspelt)
    with pytest.raises(ConfigError, match="max_streams"):
        js.streams.template("t.*", max_streams=0)


async def test_stream_of_three_replicas_is_made_on_a_cluster(
    cluster_js: JetStream, stream_name: str
) -> None:
    cluster_js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}", replicas=3)

    acks = await asyncio.gather(
        *(cluster_js.publish(f"{stream_name}.{number % 2}", b"") for number in range(8))
    )

    assert sorted((ack.stream, ack.sequence) for ack in acks) == [
        (f"{stream_name}_{n}", seq) for n in range(2) for seq in range(1, 5)
    ]
    made = await cluster_js.streams.get(f"{stream_name}_0")
    assert made.cached.config.replicas == 3


async def test_cancelled_publish_leaves_the_template_working(
    js: JetStream, stream_name: str
) -> None:
    js.streams.template(f"{stream_name}.*", name=f"{stream_name}_{{1}}", max_streams=1)
    for _ in range(3):
        task = asyncio.ensure_future(js.publish(f"{stream_name}.a", b""))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert (await js.publish(f"{stream_name}.a", b"")).stream == f"{stream_name}_a"
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(f"{stream_name}_b")
