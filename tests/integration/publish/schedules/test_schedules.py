"""Schedules: the server publishes at a moment or again and again, until it is told to end.

The shortest schedules take a second, so the tests that wait for one wait together.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal

import pytest

from natsstream import ConfigError, Expect, PublishMessage, Schedule, connect
from natsstream.errors import (
    MessageRuleError,
    NatsStreamError,
    ScheduleError,
    SubjectError,
    UnsupportedServerError,
    WrongLastSequenceError,
)
from natsstream.fields import Fields
from natsstream.testing import NatsServer, server_binary
from natsstream.units import NS_PER_SECOND, parse_life_time, parse_rfc3339
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream, Message, Stream
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

SOON = 0.05
NEVER = timedelta(days=300)


async def make(js: JetStream, name: str, **fields: Any) -> Stream:
    """Make a stream with schedules on `<name>.when.>` and targets on `<name>.do.>`."""
    given: dict[str, Any] = {
        "storage": "memory",
        "allow_msg_schedules": True,
        "allow_msg_ttl": True,
        **fields,
    }
    return await js.streams.ensure(name, subjects=[f"{name}.>"], **given)


async def fired(stream: Stream, count: int = 1) -> list[Message]:
    """Return what was published to the targets, once it is so many messages."""

    async def published() -> list[Message]:
        found = [each async for each in stream.read(filters=[f"{stream.name}.do.>"])]
        return found if len(found) >= count else []

    return await eventually_async(published)


async def names(stream: Stream, *filters: str) -> list[str]:
    """Return the last tokens of the subjects of a stream's schedules."""
    return [each.subject.rsplit(".", 1)[1] async for each in stream.schedules.list(filters)]


@pytest.mark.proves("1b", "schedules (at/every/cron/tz/source/ttl/rollup, cancel)")
async def test_message_for_a_moment_is_published_once_and_its_schedule_is_gone(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)
    when, target = f"{stream_name}.when.a", f"{stream_name}.do.a"
    later = Schedule.at(datetime.now(UTC) + NEVER, target=target)
    await js.publish(f"{stream_name}.when.z", b"later", schedule=later)

    await js.publish(
        when,
        b"payload",
        headers={"Kept": "yes"},
        schedule=Schedule.after(SOON, target=target, ttl=3600),
    )

    (message,) = await fired(stream)
    assert (message.subject, message.data) == (target, b"payload")
    assert message.headers["Kept"] == "yes"
    assert message.headers["Nats-Scheduler"] == when
    assert message.headers["Nats-Schedule-Next"] == "purge"
    assert message.headers["Nats-TTL"] == "3600"
    assert "Nats-Schedule" not in message.headers

    async def is_gone() -> bool:
        return await names(stream) == ["z"]

    await eventually_async(is_gone)  # The server takes it out after it has published.


async def test_moment_that_is_over_means_now(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)

    await stream.publish(
        f"{stream_name}.when.a", b"", schedule=Schedule.at(0, target=f"{stream_name}.do.a")
    )

    assert len(await fired(stream)) == 1


@pytest.mark.proves("1b", "schedules (at/every/cron/tz/source/ttl/rollup, cancel)")
async def test_repeated_message_comes_again_with_a_copy_of_the_source_and_replaces_the_last(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)
    await js.publish(f"{stream_name}.sample", b"source")
    plain = Schedule.every(1, target=f"{stream_name}.do.plain")
    copied = Schedule.every(
        1, target=f"{stream_name}.do.copied", source=f"{stream_name}.sample", rollup="subject"
    )

    async with js.publisher() as publisher:
        await publisher.send_many(
            [
                PublishMessage(f"{stream_name}.when.plain", b"own", schedule=plain),
                PublishMessage(f"{stream_name}.when.copied", b"own", schedule=copied),
            ]
        )

    async def again() -> list[tuple[str, bytes]]:
        """Both have come, and the one that replaces nothing has come twice."""
        found = [(each.subject.rsplit(".", 1)[1], each.data) for each in await fired(stream, 3)]
        return found if {name for name, _ in found} == {"plain", "copied"} else []

    found = await eventually_async(again)
    assert set(found) == {("plain", b"own"), ("copied", b"source")}
    assert found.count(("copied", b"source")) == 1
    assert await names(stream) == ["plain", "copied"]


async def test_cron_fields_are_meant_in_the_time_zone(js: JetStream, stream_name: str) -> None:
    """All seconds of this and the next minutes in India, which is half an hour beside UTC."""
    stream = await make(js, stream_name)
    now = datetime.now(timezone(timedelta(hours=5, minutes=30)))
    moments = [now + timedelta(minutes=minutes) for minutes in range(3)]
    minutes = ",".join(str(each.minute) for each in moments)
    hours = ",".join({str(each.hour) for each in moments})

    for name, zone in (("there", "Asia/Kolkata"), ("utc", None)):
        schedule = Schedule.cron(
            f"* {minutes} {hours} * * *", target=f"{stream_name}.do.{name}", time_zone=zone
        )
        await js.publish(f"{stream_name}.when.{name}", b"", schedule=schedule)

    assert {each.subject for each in await fired(stream)} == {f"{stream_name}.do.there"}


async def test_first_interval_begins_at_the_nearest_whole_second_and_the_others_follow(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)
    ack = await js.publish(
        f"{stream_name}.when.a", b"", schedule=Schedule.every(2, target=f"{stream_name}.do.a")
    )
    stored = await stream.get(ack.sequence)

    (message, *_) = await fired(stream)

    assert stored is not None
    nearest = (stored.time_ns + NS_PER_SECOND // 2) // NS_PER_SECOND
    assert message.time_ns >= (nearest + 2) * NS_PER_SECOND
    # It is told when the server has published: a server that is late counts from then.
    following = parse_rfc3339(message.headers["Nats-Schedule-Next"])
    assert following % NS_PER_SECOND == 0
    assert following >= (nearest + 4) * NS_PER_SECOND


@pytest.mark.smoke
@pytest.mark.proves("1b", "schedules (at/every/cron/tz/source/ttl/rollup, cancel)")
@pytest.mark.parametrize("retention", ["limits", "workqueue"])
async def test_list_and_get_tell_what_was_asked_for(
    js: JetStream, stream_name: str, retention: Literal["limits", "workqueue"]
) -> None:
    stream = await make(js, stream_name, retention=retention)
    target = f"{stream_name}.do.a"
    asked = {
        "every": Schedule.every(timedelta(hours=1), target=target),
        "cron": Schedule.cron("0 30 9 * * MON-FRI", target=target, time_zone="Europe/Berlin"),
        "daily": Schedule.cron("@daily", target=target, rollup="subject", ttl="never"),
        "at": Schedule.at(datetime(2199, 1, 1, tzinfo=UTC), target=target, ttl=60),
        "source": Schedule.every(90, target=target, source=f"{stream_name}.x"),
    }
    for name, schedule in asked.items():
        await js.publish(f"{stream_name}.when.{name}", name.encode(), schedule=schedule)
    await js.publish(f"{stream_name}.when.plain", b"no schedule")

    found = [each async for each in stream.schedules.list()]
    at = await stream.schedules.get(f"{stream_name}.when.at")

    assert {each.subject.rsplit(".", 1)[1]: each.schedule for each in found} == asked
    assert [each.data.decode() for each in found] == list(asked)
    assert at is not None
    assert (at.sequence, at.schedule.is_repeated, at.time > datetime(2020, 1, 1, tzinfo=UTC)) == (
        4,
        False,
        True,
    )
    assert await names(stream, f"{stream_name}.when.cron") == ["cron"]
    assert await stream.schedules.get(f"{stream_name}.when.plain") is None
    assert await stream.schedules.get(f"{stream_name}.when.nothing") is None


async def test_later_schedule_takes_the_place_of_the_earlier_and_a_plain_message_ends_it(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)
    when, target = f"{stream_name}.when.a", f"{stream_name}.do.a"
    for hours in (1, 2):
        await js.publish(when, b"", schedule=Schedule.every(hours * 3600, target=target))

    patterns = [each.schedule.pattern async for each in stream.schedules.list()]
    await js.publish(when, b"plain")

    assert patterns == ["@every 7200s"]
    assert await names(stream) == []


@pytest.mark.proves("1b", "schedules (at/every/cron/tz/source/ttl/rollup, cancel)")
async def test_cancelled_schedule_is_gone_and_nothing_else(js: JetStream, stream_name: str) -> None:
    stream = await make(js, stream_name)
    target = f"{stream_name}.do.a"
    for name in ("a", "b"):
        schedule = Schedule.after(NEVER, target=target)
        await js.publish(f"{stream_name}.when.{name}", b"", schedule=schedule)
    await js.publish(f"{stream_name}.plain", b"")

    assert await stream.schedules.cancel(f"{stream_name}.when.a")
    assert not await stream.schedules.cancel(f"{stream_name}.when.a")
    with pytest.raises(ScheduleError, match="is not a schedule"):
        await stream.schedules.cancel(f"{stream_name}.plain")

    assert await names(stream) == ["b"]
    assert (await stream.info()).state.messages == 2


async def test_cancelling_spares_a_schedule_that_took_the_place_meanwhile_only_to_end_it_too(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the purge another client writes; the answer is about what is there."""
    stream = await make(js, stream_name)
    when = f"{stream_name}.when.a"
    schedule = Schedule.after(NEVER, target=f"{stream_name}.do.a")
    await js.publish(when, b"1", schedule=schedule)
    change = stream._api.change  # pyright: ignore[reportPrivateUsage]
    purged: list[object] = []

    async def disturbed(subject: str, body: Any, **options: Any) -> Fields:
        if not purged:
            await js.publish(when, b"2", schedule=schedule)
        answer = await change(subject, body, **options)
        purged.append(answer.count("purged"))
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(stream._api, "change", disturbed)  # pyright: ignore[reportPrivateUsage]
        assert await stream.schedules.cancel(when)

    assert purged == [0, 1]
    assert await names(stream) == []


async def test_schedule_that_is_replaced_again_and_again_is_not_told_as_gone(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = await make(js, stream_name)
    when = f"{stream_name}.when.a"
    schedule = Schedule.after(NEVER, target=f"{stream_name}.do.a")
    await js.publish(when, b"", schedule=schedule)
    change = stream._api.change  # pyright: ignore[reportPrivateUsage]

    async def disturbed(subject: str, body: Any, **options: Any) -> Fields:
        await js.publish(when, b"", schedule=schedule)
        return await change(subject, body, **options)

    with monkeypatch.context() as patched:
        patched.setattr(stream._api, "change", disturbed)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ScheduleError, match="replaced"):
            await stream.schedules.cancel(when)

    assert await names(stream) == ["a"]


async def test_message_that_ends_a_schedule_is_stored_with_it_or_not_at_all(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name)
    when, done = f"{stream_name}.when.a", f"{stream_name}.done"
    target = f"{stream_name}.do.a"
    await js.publish(f"{stream_name}.plain", b"")
    ack = await js.publish(when, b"", schedule=Schedule.after(NEVER, target=target))

    with pytest.raises(WrongLastSequenceError):
        await stream.schedules.cancel_by_publish(
            when, done, b"", expect=Expect(subject=when, last_subject_seq=ack.sequence + 1)
        )
    still = await names(stream)
    held = Expect(subject=when, last_subject_seq=ack.sequence)
    stored = await stream.schedules.cancel_by_publish(when, done, b"early", expect=held)
    with pytest.raises(WrongLastSequenceError):
        await stream.schedules.cancel_by_publish(when, done, b"", expect=held)
    with pytest.raises(ScheduleError):
        await stream.schedules.cancel_by_publish(f"{stream_name}.plain", done, b"")
    with pytest.raises(ConfigError, match="same subject"):
        await stream.schedules.cancel_by_publish(when, when, b"")
    with pytest.raises(SubjectError):
        await stream.schedules.cancel_by_publish(f"{stream_name}.>", done, b"")

    assert still == ["a"]
    assert await names(stream) == []
    message = await stream.get(stored.sequence)
    assert message is not None
    assert message.data == b"early"


@pytest.mark.parametrize(
    "expression", ["0 0 0 31 2 *", "0 0 99 * * *", "0 0 0 * * XXX", "* * * * * * ".strip() + "/0"]
)
async def test_expression_that_only_the_server_can_judge_is_told(
    js: JetStream, stream_name: str, expression: str
) -> None:
    await make(js, stream_name)
    schedule = Schedule.cron(expression, target=f"{stream_name}.do.a")

    with pytest.raises(ScheduleError, match="six fields"):
        await js.publish(f"{stream_name}.when.a", b"", schedule=schedule)


async def test_schedule_that_the_stream_can_not_hold_is_told(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name, allow_msg_ttl=False)
    when, target = f"{stream_name}.when.a", f"{stream_name}.do.a"
    refused = [
        (Schedule.every(9, target="another.stream"), ScheduleError),
        (Schedule.every(9, target=target, source="another.stream"), ScheduleError),
        (Schedule.cron("@daily", target=target, time_zone="Atlantis/City"), ScheduleError),
        (Schedule.every(9, target=target, ttl=5), MessageRuleError),
    ]

    for schedule, error in refused:
        with pytest.raises(error) as caught:
            await js.publish(when, b"", schedule=schedule)
        assert caught.value.hint

    assert (await stream.info()).state.last_seq == 0


async def test_schedules_go_on_after_a_change_of_leaders(
    cluster_js: JetStream, nats_cluster: NatsCluster, stream_name: str
) -> None:
    js = cluster_js
    stream = await make(js, stream_name, replicas=3)
    schedule = Schedule.every(1, target=f"{stream_name}.do.a")
    await js.publish(f"{stream_name}.when.a", b"", schedule=schedule)
    await fired(stream)

    await step_down(js, nats_cluster, stream_name)

    count = len(await fired(stream))
    await fired(stream, count + 1)
    assert await names(stream) == ["a"]
    assert await stream.schedules.cancel(f"{stream_name}.when.a")
    assert await names(stream) == []


@pytest.mark.needs_versions
@pytest.mark.parametrize("version", ["2.11", "2.12"])
async def test_what_an_old_server_would_pass_over_is_not_sent(
    stream_name: str, version: str
) -> None:
    is_new = version == "2.12"
    with NatsServer(binary=server_binary(version)) as old:
        async with connect(old.url) as js:
            fields: dict[str, Any] = {"allow_msg_schedules": True} if is_new else {}
            stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], **fields)
            when, target = f"{stream_name}.when", f"{stream_name}.do"
            young = [
                Schedule.every(9, target=target),
                Schedule.cron("@daily", target=target),
                Schedule.after(9, target=target, source=f"{stream_name}.x"),
                Schedule.after(9, target=target, rollup="subject"),
            ]
            for schedule in young:
                with pytest.raises(UnsupportedServerError, match=r"2\.14"):
                    await js.publish(when, b"", schedule=schedule)
            with pytest.raises(UnsupportedServerError, match=r"2\.14"):
                await stream.schedules.cancel_by_publish(when, target, b"")
            once = Schedule.after(SOON, target=f"{stream_name}.do.a")
            if not is_new:
                with pytest.raises(UnsupportedServerError, match=r"2\.12"):
                    await js.publish(when, b"", schedule=once)
                assert (await stream.info()).state.last_seq == 0
                return
            await js.publish(when, b"", schedule=once)
            assert len(await fired(stream)) == 1
            await js.publish(when, b"", schedule=Schedule.after(NEVER, target=target))
            assert await stream.schedules.cancel(when)


@pytest.mark.parametrize(
    ("text", "ttl"),
    [
        ("90", 90),
        ("90s", 90),
        ("1m30s", 90),
        ("1h2m3.5s", 3723),
        ("1.5h", 5400),
        ("30s1m", 90),
        ("90000ms", 90),
        ("never", "never"),
    ],
)
async def test_life_time_of_another_clients_schedule_is_seconds_and_is_published_again(
    js: JetStream, stream_name: str, text: str, ttl: object
) -> None:
    """nats.go writes `1m30s`, nats.js `90s`; the server reads all that Go reads."""
    stream = await make(js, stream_name)
    when, target = f"{stream_name}.when.a", f"{stream_name}.do.a"
    headers = {
        "Nats-Schedule": "@every 1h0m30s",
        "Nats-Schedule-Target": target,
        "Nats-Schedule-TTL": text,
    }
    await js.publish(when, b"x", headers=headers)
    await js.publish(target, b"x", headers={"Nats-TTL": text})

    theirs = await stream.schedules.get(when)
    assert theirs is not None
    await stream.publish(when, b"x", schedule=theirs.schedule)
    ours = await stream.schedules.get(when)

    assert theirs.schedule.ttl == ttl
    assert ours is not None
    assert ours.schedule == theirs.schedule
    assert ours.sequence > theirs.sequence
    stored = await stream.get(last_by_subject=target)
    assert stored is not None
    assert stored.ttl == (-1 if ttl == "never" else ttl)


@pytest.mark.parametrize("text", ["0", "900ms", "-5", "soon", "1x", "1e3s", ""])
async def test_life_time_that_no_server_takes_is_read_as_none(
    js: JetStream, stream_name: str, text: str
) -> None:
    await make(js, stream_name)

    try:
        await js.publish(f"{stream_name}.do.a", b"x", headers={"Nats-TTL": text})
        is_taken = True
    except NatsStreamError:
        is_taken = False

    stored = await (await js.streams.get(stream_name)).get(last_by_subject=f"{stream_name}.do.a")
    assert parse_life_time(text) is None
    assert stored is None or stored.ttl is None
    assert is_taken == (not text)  # To the server an empty one asks for nothing.
