"""Filters outside of the stream's subjects: reported in the log where nothing can ever match."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


async def enter(stream: Stream, filters: list[str]) -> None:
    """Open an ordered consumer."""
    async with stream.ordered(filters=filters):
        pass


async def read(stream: Stream, filters: list[str]) -> None:
    """Read to the end."""
    async for _ in stream.read(filters=filters):
        pass


CALLS: dict[str, Callable[[Stream, list[str]], Awaitable[object]]] = {
    "read": read,
    "ordered": enter,
    "create": lambda stream, filters: stream.consumers.create("c", filters=filters),
    "ensure": lambda stream, filters: stream.consumers.ensure("c", filters=filters),
}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings that readers have logged."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "natsstream.consumer" and record.levelno == logging.WARNING
    ]


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_filter_that_can_match_nothing_is_reported(
    js: JetStream,
    stream_name: str,
    caplog: pytest.LogCaptureFixture,
    call: Callable[[Stream, list[str]], Awaitable[object]],
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await stream.publish(f"{stream_name}.a", b"")
    await call(stream, [f"{stream_name}.a", "order.>"])

    (told,) = warnings_of(caplog)
    assert f"stream {stream_name}" in told
    assert f"filter order.> matches none of the subjects of stream {stream_name}, which" in told


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize("token", ["n*", ">n", "#"])
async def test_filter_whose_wildcard_is_none_is_reported(
    js: JetStream,
    stream_name: str,
    caplog: pytest.LogCaptureFixture,
    call: Callable[[Stream, list[str]], Awaitable[object]],
    token: str,
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await call(stream, [f"{stream_name}.{token}"])

    (told,) = warnings_of(caplog)
    assert f"{token} in {stream_name}.{token} is no wildcard" in told


async def test_subject_of_a_stream_whose_wildcard_is_none_is_reported(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    await js.streams.ensure(stream_name, subjects=[f"{stream_name}.orders*"])

    (told,) = warnings_of(caplog)
    assert told.startswith(f"stream {stream_name}: orders* in {stream_name}.orders* is no wildcard")


async def test_purge_of_a_subject_that_can_match_nothing_is_reported(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    assert await stream.purge(subject="order.>") == 0
    assert await stream.purge(subject=f"{stream_name}.none") == 0

    (told,) = warnings_of(caplog)
    assert told.startswith(f"purge of stream {stream_name}: filter order.> matches none")


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_filter_of_messages_from_earlier_subjects_is_not_reported(
    js: JetStream,
    stream_name: str,
    caplog: pytest.LogCaptureFixture,
    call: Callable[[Stream, list[str]], Awaitable[object]],
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.old"])
    await stream.publish(f"{stream_name}.old", b"")
    stream = await js.streams.update(stream_name, subjects=[f"{stream_name}.new"])
    await call(stream, [f"{stream_name}.old"])

    assert warnings_of(caplog) == []


async def test_subjects_that_were_added_since_are_not_reported(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.a"])
    await js.streams.update(stream_name, subjects=[f"{stream_name}.a", f"{stream_name}.b"])
    await stream.consumers.ensure("c", filters=[f"{stream_name}.b"])

    assert warnings_of(caplog) == []


@pytest.mark.parametrize("has_filters", [False, True])
async def test_consumer_that_gets_schedules_before_they_fire_is_told(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture, *, has_filters: bool
) -> None:
    subjects = [f"{stream_name}.do.>", f"{stream_name}.when.>"]
    stream = await js.streams.create(stream_name, subjects=subjects, allow_msg_schedules=True)
    await stream.consumers.create("c", filters=subjects[:1] if has_filters else [])
    told = f"consumer c of stream {stream_name} gets schedules before they fire"
    assert [each.partition(":")[0] for each in warnings_of(caplog)] == [told] * (not has_filters)

    await stream.consumers.ensure("c")
    await stream.consumers.create("all", filters=subjects)
    assert len(warnings_of(caplog)) == 2 - has_filters, "unchanged; and one of all subjects"
