"""Counters: exact totals, of any size, added once, on one server and on a replicated stream."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import (
    ConfigError,
    Counter,
    StreamConfig,
    StreamSource,
    SubjectTransform,
    connect,
)
from natsstream.errors import (
    CounterError,
    InvalidConfigError,
    MessageRuleError,
    NoRespondersError,
    ProtocolError,
    SubjectError,
    UnavailableError,
    UnsupportedServerError,
    WrongStreamError,
)
from natsstream.fields import Fields
from natsstream.streams.counters import counters as module
from natsstream.testing import NatsServer, server_binary
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import Counters, JetStream

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=[1, 3])
def replicas(request: pytest.FixtureRequest) -> int:
    """How many replicas the stream has."""
    return request.param


@pytest.fixture
def any_js(replicas: int, request: pytest.FixtureRequest) -> JetStream:
    """The shared server for one replica, the shared cluster for three."""
    return request.getfixturevalue("js" if replicas == 1 else "cluster_js")


async def make(js: JetStream, name: str, **fields: Any) -> Counters:
    """Make a stream of counters on `<name>.>`."""
    return await js.counters.ensure(name, subjects=[f"{name}.>"], storage="memory", **fields)


async def value_of(counters: Counters, subject: str) -> int | None:
    """Return a counter's total."""
    held = await counters.get(subject)
    return None if held is None else held.value


@pytest.mark.proves("1b", "counters (Nats-Incr, PubAck.val)")
async def test_totals_are_the_servers_and_exact(
    any_js: JetStream, stream_name: str, replicas: int
) -> None:
    counters = await make(any_js, stream_name, replicas=replicas)
    subject = f"{stream_name}.hits"

    totals = [await counters.incr(subject, delta) for delta in (1, 41, -50, 10**40, 0)]

    assert totals == [1, 42, -8, 10**40 - 8, 10**40 - 8]
    held = await counters.get(subject)
    assert isinstance(held, Counter)
    assert (held.subject, held.value, held.sequence, held.last_delta) == (
        subject,
        10**40 - 8,
        5,
        0,
    )
    assert held.time_ns > 0


async def test_added_at_once_by_many_nothing_is_lost(
    any_js: JetStream, stream_name: str, replicas: int
) -> None:
    counters = await make(any_js, stream_name, replicas=replicas)
    subject = f"{stream_name}.hits"

    totals = await asyncio.gather(*(counters.incr(subject, 3) for _ in range(100)))

    assert sorted(totals) == [3 * number for number in range(1, 101)]


@pytest.mark.proves("1b", "counters (Nats-Incr, PubAck.val)")
async def test_same_message_id_adds_once_and_tells_the_true_total(
    any_js: JetStream, stream_name: str, replicas: int
) -> None:
    """The ack of a duplicate has no total."""
    counters = await make(any_js, stream_name, replicas=replicas)
    subject = f"{stream_name}.hits"

    first = await counters.incr(subject, 5, msg_id="a")
    other = await counters.incr(subject, 2)
    again = await counters.incr(subject, 5, msg_id="a")

    assert (first, other, again) == (5, 7, 7)
    assert await value_of(counters, subject) == 7


async def test_duplicate_of_a_counter_that_is_gone_is_told(js: JetStream, stream_name: str) -> None:
    counters = await make(js, stream_name)
    subject = f"{stream_name}.hits"
    await counters.incr(subject, 5, msg_id="a")
    await (await js.streams.get(stream_name)).purge()

    with pytest.raises(CounterError, match="gone since"):
        await counters.incr(subject, 5, msg_id="a")


async def test_numbers_of_ten_thousand_digits_are_exact(js: JetStream, stream_name: str) -> None:
    """Python refuses to turn more than 4,300 digits into a number, or back."""
    counters = await make(js, stream_name)
    subject = f"{stream_name}.atoms"
    huge = 10**10_000 - 7

    assert await counters.incr(subject, huge) == huge
    assert await counters.incr(subject, -2 * huge) == -huge
    held = await counters.get(subject)
    assert held is not None
    assert (held.value, held.last_delta) == (-huge, -2 * huge)


@pytest.mark.parametrize(
    "delta",
    [
        True,
        False,
        1.0,
        0.5,
        "1",
        None,
        b"1",
        [1],
        float("nan"),
        pytest.param(10**70_000, id="huge"),
    ],
)
async def test_delta_that_is_no_whole_number_is_refused(
    js: JetStream, stream_name: str, delta: Any
) -> None:
    counters = await make(js, stream_name)

    with pytest.raises(ConfigError, match="delta"):
        await counters.incr(f"{stream_name}.hits", delta)

    assert await value_of(counters, f"{stream_name}.hits") is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"subject": None}, SubjectError),
        ({"subject": "a.*"}, SubjectError),
        ({"headers": {"Nats-Incr": "9"}}, ConfigError),
        ({"headers": {"Nats-Expected-Last-Sequence": "0"}}, ConfigError),
        ({"headers": {"Nats-Rollup": "sub"}}, ConfigError),
        ({"headers": "x"}, ConfigError),
        ({"msg_id": ""}, ConfigError),
        ({"timeout": -1}, ConfigError),
    ],
)
async def test_wrong_arguments_are_refused(
    js: JetStream, stream_name: str, arguments: dict[str, Any], error: type[Exception]
) -> None:
    counters = await make(js, stream_name)

    given: dict[str, Any] = {"subject": f"{stream_name}.hits", **arguments}
    with pytest.raises(error):
        await counters.incr(**given)

    assert await value_of(counters, f"{stream_name}.hits") is None


async def test_subject_without_a_stream_hints_at_the_call_that_makes_one_of_counters(
    js: JetStream, stream_name: str
) -> None:
    for asked in (js.counters.incr, js.counters.get):
        with pytest.raises(NoRespondersError) as caught:
            await asked(f"{stream_name}.hits")
        assert caught.value.hint.startswith("create one: await js.counters.ensure(name, subj")
    assert caught.value.message == f"counter {stream_name}.hits: no stream captures the subject"
    assert "(await js.streams.get(name)).counters" in caught.value.hint


async def test_listing_gives_each_counter_once(
    any_js: JetStream, stream_name: str, replicas: int
) -> None:
    """More than are read at once."""
    counters = await make(any_js, stream_name, replicas=replicas)
    async with any_js.publisher() as publisher:
        for number in range(150):
            subject = f"{stream_name}.{number % 2}.{number}"
            await publisher.send(subject, b"", headers={"Nats-Incr": str(number)})
            await publisher.send(subject, b"", headers={"Nats-Incr": "1"})

    found = {held.subject: held.value async for held in counters.list()}
    even = [held.value async for held in any_js.counters.list(f"{stream_name}.0.*")]

    assert found == {f"{stream_name}.{n % 2}.{n}": n + 1 for n in range(150)}
    assert sorted(even) == [n + 1 for n in range(0, 150, 2)]


async def test_streams_that_nobody_can_describe_are_told_at_the_end_of_a_list(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have counters. `streams/test_listing.py` has what servers say of them."""
    counters = await make(js, stream_name)
    await counters.incr(f"{stream_name}.hits")
    read = js.counters._api.read  # pyright: ignore[reportPrivateUsage]

    async def without_one(subject: str, body: Any, *, what: str) -> Fields:
        answer = await read(subject, body, what=what)
        more = {"missing": ["GONE"]} if subject.endswith("STREAM.LIST") else {}
        return Fields({**answer.raw, **more}, what)

    monkeypatch.setattr(js.counters._api, "read", without_one)  # pyright: ignore[reportPrivateUsage]
    listing = js.counters.list(f"{stream_name}.*")

    assert (await anext(listing)).value == 1
    with pytest.raises(UnavailableError, match="GONE"):
        await anext(listing)


@pytest.mark.proves("1b", "counters (Nats-Incr, PubAck.val)")
async def test_sources_of_a_counter_are_told_one_by_one(js: JetStream, stream_name: str) -> None:
    one, two, all_ = (f"{stream_name}-{each}" for each in ("1", "2", "all"))
    first, second = await make(js, one), await make(js, two)
    merged = await js.counters.ensure(
        StreamConfig(
            name=all_,
            subjects=[f"{all_}.>"],
            storage="memory",
            sources=[
                StreamSource(
                    name=each,
                    transforms=[SubjectTransform(source=f"{each}.>", destination=f"{all_}.>")],
                )
                for each in (one, two)
            ],
        )
    )
    await first.incr(f"{one}.hits", 5)
    await second.incr(f"{two}.hits", 7)
    await first.incr(f"{one}.hits", 10)

    async def has_all() -> bool:
        return await value_of(merged, f"{all_}.hits") == 22

    await eventually_async(has_all)
    assert await merged.sources(f"{all_}.hits") == {
        one: {f"{one}.hits": 15},
        two: {f"{two}.hits": 7},
    }
    assert await first.sources(f"{one}.hits") == {}
    assert await merged.sources(f"{all_}.nothing") == {}


async def test_counters_of_a_stream_that_only_sources_others_are_found(
    js: JetStream, stream_name: str
) -> None:
    """It captures no subject, so that no subject leads to it."""
    one, all_ = f"{stream_name}-1", f"{stream_name}-all"
    first = await make(js, one)
    merged = await js.counters.ensure(
        all_, subjects=[], storage="memory", sources=[StreamSource(name=one)]
    )
    await first.incr(f"{one}.hits", 5)

    async def has_all() -> bool:
        return await value_of(merged, f"{one}.hits") == 5

    await eventually_async(has_all)
    assert [held.value async for held in merged.list()] == [5]
    assert [held.value async for held in js.counters.list(f"{one}.*")] == [5, 5]
    with pytest.raises(WrongStreamError):
        await merged.incr(f"{one}.hits")


async def test_stream_that_counts_nothing_is_told(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    misspelt: dict[str, Any] = {"subject": [stream_name]}

    with pytest.raises(CounterError, match="allow_msg_counter"):
        await js.counters.incr(stream_name)
    with pytest.raises(CounterError, match="allow_msg_counter"):
        await js.counters.get(stream_name)
    with pytest.raises(CounterError, match="allow_msg_counter"):
        _ = [each async for each in stream.counters.list()]
    with pytest.raises(InvalidConfigError):
        await js.counters.ensure(stream_name)
    with pytest.raises(ConfigError):
        await js.counters.ensure(stream_name, allow_msg_counter=False)
    with pytest.raises(ConfigError, match="did you mean"):
        await js.counters.ensure(stream_name, **misspelt)
    with pytest.raises(NoRespondersError):
        await js.counters.incr("nobody.counts")
    assert (await stream.info()).state.last_seq == 0


async def test_counters_of_a_stream_add_nothing_to_another_one(
    js: JetStream, stream_name: str
) -> None:
    mine, other = f"{stream_name}-1", f"{stream_name}-2"
    counters, others = await make(js, mine), await make(js, other)

    with pytest.raises(WrongStreamError):
        await counters.incr(f"{other}.hits")

    assert await value_of(others, f"{other}.hits") is None
    assert await (await js.streams.get(mine)).counters.incr(f"{mine}.hits") == 1


async def test_counter_that_moves_to_another_stream_is_told_and_found_there(
    js: JetStream, stream_name: str
) -> None:
    """A counter's message cannot name its stream, so the ack shows it."""
    mine, other = f"{stream_name}-1", f"{stream_name}-2"
    moving = f"{stream_name}.hits"
    counters = await js.counters.ensure(mine, subjects=[moving], storage="memory")
    await counters.incr(moving)
    await js.streams.update(mine, subjects=[f"{mine}.>"])
    others = await js.counters.ensure(other, subjects=[moving], storage="memory")

    with pytest.raises(WrongStreamError, match="has added"):
        await counters.incr(moving, 5)
    with pytest.raises(WrongStreamError, match="is not one of"):
        await counters.incr(moving, 5)

    assert await value_of(others, moving) == 5
    assert await value_of(js.counters, moving) == 5
    await js.streams.delete(other)
    await js.counters.ensure(f"{other}-anew", subjects=[moving], storage="memory")
    assert await value_of(js.counters, moving) is None


async def test_plain_messages_and_increments_do_not_mix(js: JetStream, stream_name: str) -> None:
    await make(js, stream_name)
    stream = await js.streams.get(stream_name)

    with pytest.raises(CounterError, match="incr"):
        await stream.publish(f"{stream_name}.a", b"")
    with pytest.raises(CounterError):
        await js.publish(f"{stream_name}.a", b"x", headers={"Nats-Incr": "1"})
    with pytest.raises(CounterError):
        await js.publish(f"{stream_name}.a", b"", headers={"Nats-Incr": "one"})
    ack = await stream.publish(f"{stream_name}.a", b"", headers={"Nats-Incr": "1"})
    with pytest.raises(MessageRuleError):
        await stream.publish(f"{stream_name}.a", b"", headers={"Nats-Incr": "1"}, ttl=5)

    assert ack.value == 1


async def test_stored_message_is_what_other_clients_read(js: JetStream, stream_name: str) -> None:
    counters = await make(js, stream_name)
    await counters.incr(f"{stream_name}.a", 5, headers={"Why": "test"})
    await counters.incr(f"{stream_name}.a", -7)

    stream = await js.streams.get(stream_name)
    first, second = [message async for message in stream.read()]
    assert [json.loads(first.data), json.loads(second.data)] == [{"val": "5"}, {"val": "-2"}]
    assert first.headers["Nats-Incr"].lstrip("+") == "5"
    assert first.headers["Why"] == "test"
    assert second.headers["Nats-Incr"] == "-7"
    assert stream.cached.config.allow_direct


async def test_answer_that_is_no_counter_is_never_a_number(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream cannot lose allow_msg_counter, so the check of it is skipped."""
    stream = await js.streams.create(stream_name, subjects=[stream_name], storage="memory")
    await js.publish(stream_name, b'{"val":"x"}')
    counters = stream.counters
    monkeypatch.setattr(module, "_check_counts", print)

    with pytest.raises(ProtocolError, match="no counter"):
        await counters.get(stream_name)


async def test_error_in_a_list_leaves_the_caller_his_time_out(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.*"], storage="memory")
    for name in ("a", "b"):
        await js.publish(f"{stream_name}.{name}", b'{"val":"x"}')
    monkeypatch.setattr(module, "_check_counts", print)

    async def list_and_wait() -> None:
        async with asyncio.timeout(None) as limit:
            with pytest.raises(ProtocolError, match="no counter"):
                _ = [each async for each in stream.counters.list()]
            limit.reschedule(0)
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await list_and_wait()


@pytest.mark.needs_versions
async def test_old_server_is_refused_before_it_stores_a_plain_message(stream_name: str) -> None:
    with NatsServer(binary=server_binary("2.11")) as old:
        async with connect(old.url) as js:
            stream = await js.streams.create(stream_name, subjects=[stream_name])
            with pytest.raises(UnsupportedServerError, match=r"2\.12"):
                await js.counters.incr(stream_name)
            with pytest.raises(UnsupportedServerError, match=r"2\.12"):
                await js.publish(stream_name, b"", headers={"Nats-Incr": "1"})
            with pytest.raises(UnsupportedServerError, match=r"2\.12"):
                await js.counters.ensure(f"{stream_name}-2")
            assert (await stream.info()).state.last_seq == 0
