"""Schedules: what nats.js asks for by its own options is what we list and end, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import Schedule
from tests.interop.pairs import pairs

if TYPE_CHECKING:
    from natsstream import Stream
    from tests.interop.clients.client import Client
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

TARGET = "{}.do.a"


def cases(name: str) -> list[tuple[Schedule, dict[str, Any]]]:
    """Return schedules of ours, each with nats.js's options for the same."""
    target = TARGET.format(name)
    moment = datetime(2199, 1, 2, 3, 4, 5, 678_000, UTC)
    return [
        (
            Schedule.every(90, target=target, ttl=60, source=f"{name}.sample"),
            {"specification": {"every": "90s"}, "ttl": "60s", "source": f"{name}.sample"},
        ),
        (
            Schedule.cron("0 30 9 * * MON-FRI", target=target, time_zone="Europe/Berlin"),
            {"specification": {"cron": "0 30 9 * * MON-FRI"}, "timezone": "Europe/Berlin"},
        ),
        (
            Schedule.cron("@daily", target=target, rollup="subject", ttl="never"),
            {"specification": {"predefined": "@daily"}, "rollup": "sub", "ttl": "never"},
        ),
        (
            Schedule.at(moment, target=target),
            {"specification": {"at": "2199-01-02T03:04:05.678000000Z"}},
        ),
    ]


async def make(ours: Ours, name: str, replicas: int = 1) -> Stream:
    """Make a stream that takes schedules."""
    return await ours.js.streams.create(
        name,
        subjects=[f"{name}.>"],
        replicas=replicas,
        allow_msg_schedules=True,
        allow_msg_ttl=True,
    )


@pytest.mark.needs_node
async def test_schedules_of_nats_js_are_read_as_what_they_are(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    stream = await make(ours, stream_name)
    target = TARGET.format(stream_name)

    for number, (_, given) in enumerate(cases(stream_name)):
        await nats_js.call(
            "publish",
            subject=f"{stream_name}.when.{number}",
            data="",
            headers={},
            options={"schedule": {**given, "target": target}},
        )

    found = [each.schedule async for each in stream.schedules.list()]
    assert found == [schedule for schedule, _ in cases(stream_name)]
    assert await stream.schedules.cancel(f"{stream_name}.when.0")


@pytest.mark.needs_node
async def test_schedule_of_ours_is_ended_by_nats_js(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    stream = await make(ours, stream_name)
    when = f"{stream_name}.when.a"
    schedule = Schedule.every(3600, target=TARGET.format(stream_name))
    await stream.publish(when, b"", schedule=schedule)

    await nats_js.call(
        "publish",
        subject=f"{stream_name}.done",
        data="",
        headers={},
        options={"cancelSchedule": {"scheduleSubject": when}},
    )

    assert [each async for each in stream.schedules.list()] == []


def headers_of(schedule: Schedule) -> dict[str, list[str]]:
    """Return the headers that the documentation of ADR-51 names, written by hand."""
    values = {
        "Nats-Schedule": schedule.pattern,
        "Nats-Schedule-Target": schedule.target,
        "Nats-Schedule-Source": schedule.source,
        "Nats-Schedule-Time-Zone": schedule.time_zone,
        "Nats-Schedule-Rollup": "sub" if schedule.rollup else None,
        "Nats-Schedule-TTL": None if schedule.ttl is None else str(schedule.ttl),
    }
    return {name: [value] for name, value in values.items() if value is not None}


@pairs("stream", replicated=True)
async def test_schedule_that_a_client_writes_as_headers_is_read_with_every_field(
    ours: Ours, writer: Client, reader: Client, stream_name: str, replicas: int
) -> None:
    stream = await make(ours, stream_name, replicas)
    subjects = [f"{stream_name}.when.{number}" for number in range(len(cases(stream_name)))]

    for subject, (schedule, _) in zip(subjects, cases(stream_name), strict=True):
        headers = {**headers_of(schedule), "Trace": ["one", "two"]}
        await writer.publish(subject, b"payload", headers=headers)

    found = [each async for each in stream.schedules.list()]
    assert [each.schedule for each in found] == [schedule for schedule, _ in cases(stream_name)]
    assert [(each.subject, each.data) for each in found] == [
        (name, b"payload") for name in subjects
    ]
    assert {each.headers.all("Trace") for each in found} == {("one", "two")}
    for number, (schedule, _) in enumerate(cases(stream_name)):
        stored = (await reader.get(stream_name, number + 1)).headers
        wanted = headers_of(schedule)
        assert {name: stored.get(name) for name in wanted} == wanted


@pairs("stream", replicated=True)
async def test_what_the_schedule_of_one_client_sends_is_what_the_others_read(
    ours: Ours, writer: Client, reader: Client, stream_name: str, replicas: int
) -> None:
    await make(ours, stream_name, replicas)
    target = TARGET.format(stream_name)
    due = Schedule.at(datetime(2020, 1, 1, tzinfo=UTC), target=target, ttl=3600)
    headers = {**headers_of(due), "Trace": ["one", "two"]}

    await writer.publish(f"{stream_name}.when.a", b"payload", headers=headers)

    stream = await ours.js.streams.get(stream_name)
    async with stream.ordered(filters=[target]) as tail:
        sent = await anext(aiter(tail))
    stored = await reader.get(stream_name, sent.sequence)
    assert (stored.subject, stored.data) == (target, b"payload")
    assert stored.headers["Trace"] == ["one", "two"]
    assert stored.headers["Nats-Scheduler"] == [f"{stream_name}.when.a"]
    assert stored.headers["Nats-TTL"] == ["3600"]


async def test_every_client_reads_the_same_schedule(
    ours: Ours, reader: Client, stream_name: str
) -> None:
    stream = await make(ours, stream_name)
    schedule, _ = cases(stream_name)[0]

    await stream.publish(f"{stream_name}.when.a", b"payload", schedule=schedule)

    (stored,) = await reader.read(stream_name, 1)
    assert stored.data == b"payload"
    assert stored.headers["Nats-Schedule"] == ["@every 90s"]
    assert stored.headers["Nats-Schedule-Target"] == [TARGET.format(stream_name)]
    assert stored.headers["Nats-Schedule-Source"] == [f"{stream_name}.sample"]
    assert stored.headers["Nats-Schedule-TTL"] == ["60"]
