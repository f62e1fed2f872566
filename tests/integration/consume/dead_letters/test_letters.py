"""Dead letters: stored once, whatever dies; listed, sent again and dropped."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from natsstream._wire.headers import encode_headers
from natsstream.consume.dead_letters import captured
from natsstream.consume.dead_letters.envelope import FailureRecord
from natsstream.consume.dead_letters.storing import store_letter
from natsstream.consume.delivery.ack_kinds import Reject
from natsstream.errors import (
    ConfigError,
    MessageNotFoundError,
    NoRespondersError,
    PayloadTooLargeError,
    RequestTimeoutError,
    StreamNotFoundError,
    SubjectOverlapError,
)
from tests.support.eventually import eventually_async
from tests.support.streams import change, delete_message
from tests.support.work import api_of, letters_of, make_work

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.consume.dead_letters.letter import DeadLetter
    from natsstream.consume.dead_letters.queue import DeadLetterQueue
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.streams.consumers.consumer import Consumer

pytestmark = pytest.mark.asyncio


async def reject(message: DeliveredMessage) -> None:
    """Handle nothing."""
    raise Reject(f"no {message.data.decode()}")


async def reject_all(consumer: Consumer, queue: str, count: int) -> None:
    """Let a worker of ours reject a number of messages."""
    async with consumer.worker(reject, dead_letter=queue) as worker:

        async def ask() -> bool:
            return worker.report.dead_lettered == count

        await eventually_async(ask)


async def exhaust(consumer: Consumer, queue: DeadLetterQueue, count: int) -> list[DeadLetter]:
    """Return the letters of messages that were taken as often as the consumer allows.

    As a worker does that always crashes. The server tells of a message only when somebody asks for
    it once more.
    """

    async def ask() -> bool:
        with suppress(RequestTimeoutError):
            await consumer.fetch(count, timeout=0.15)
        return await queue.count() >= count

    await eventually_async(ask)
    return await letters_of(queue)


@pytest.mark.smoke
async def test_letter_has_the_message_and_what_was_said_of_it(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 0)
    await js.publish(f"{stream_name}.x", b"five", headers={"A": ["1", "2"]}, msg_id="o-1")
    await reject_all(consumer, f"{stream_name}_DLQ", 1)
    queue = await js.dead_letters.open(f"{stream_name}_DLQ")

    (letter,) = await letters_of(queue)
    original = await (await js.streams.get(stream_name)).get(1)

    assert original is not None
    assert letter.message is not None
    assert (letter.stream, letter.consumer, letter.sequence) == (stream_name, "c", 1)
    assert (letter.reason, letter.error, letter.deliveries) == ("rejected", "no five", 1)
    assert letter.is_copy
    assert letter.message.subject == f"{stream_name}.x"
    assert letter.message.data == b"five"
    assert letter.message.headers == original.headers
    assert (letter.message.sequence, letter.message.time_ns) == (1, original.time_ns)
    assert letter == await queue.get(letter.number)
    assert await queue.get(letter.number + 1_000) is None


async def test_one_message_is_one_letter_also_after_the_duplicate_window(
    js: JetStream, stream_name: str
) -> None:
    queue = await js.dead_letters.ensure(stream_name)
    await js.streams.update(stream_name, duplicate_window=0.1)
    failure = FailureRecord(
        subject="x",
        time_ns=5,
        stream="S",
        consumer="c",
        sequence=1,
        deliveries=1,
        reason="rejected",
    )

    async def store(**fields: Any) -> bool:
        values = {name: getattr(failure, name) for name in failure.__slots__} | fields
        return await store_letter(
            api_of(js), stream_name, FailureRecord(**values), b"", b"x", timeout=30
        )

    assert await store()
    await asyncio.sleep(0.3)
    assert not await store()
    assert await store(sequence=2)
    assert await store(consumer="d")
    # The stream was made again: the same sequence is another message.
    assert await store(time_ns=6)
    assert await queue.count() == 4


@pytest.mark.parametrize("retention", ["limits", "workqueue", "interest"])
async def test_server_tells_of_dead_messages_while_nobody_listens(
    js: JetStream, stream_name: str, retention: str
) -> None:
    consumer = await make_work(js, stream_name, 2, retention=retention, ack_wait=0.1, max_deliver=2)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    letters = await exhaust(consumer, queue, 2)

    assert [each.reason for each in letters] == ["max_deliveries"] * 2
    assert sorted(each.message.data for each in letters if each.message) == [b"0", b"1"]
    assert [(each.deliveries, each.is_copy, each.is_gone) for each in letters] == [
        (2, False, False)
    ] * 2


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
async def test_dropping_lets_go_of_a_message_that_is_stuck(
    js: JetStream, stream_name: str, retention: str
) -> None:
    consumer = await make_work(js, stream_name, 2, retention=retention, ack_wait=0.1, max_deliver=1)
    stream = await js.streams.get(stream_name)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    one, two = await exhaust(consumer, queue, 2)
    assert (await stream.info()).state.messages == 2

    await queue.drop(one)
    ack = await queue.replay(two)

    async def ask() -> bool:
        return (await stream.info()).state.messages == 1

    await eventually_async(ask)
    assert await queue.count() == 0
    again = await consumer.next(timeout=30)
    assert again is not None
    assert (again.sequence, again.delivered) == (ack.sequence, 1)


async def test_interest_of_other_consumers_keeps_the_message(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(
        js, stream_name, 0, retention="interest", max_deliver=1, ack_wait=0.1
    )
    stream = await js.streams.get(stream_name)
    other = await stream.consumers.ensure("other")
    await js.publish(f"{stream_name}.x", b"0")
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    (letter,) = await exhaust(consumer, queue, 1)

    await queue.drop(letter)
    message = await other.next(timeout=30)

    assert message is not None
    assert message.data == b"0"


async def test_work_whose_consumer_is_gone_is_let_go_of(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(
        js, stream_name, 1, retention="workqueue", max_deliver=1, ack_wait=0.1
    )
    stream = await js.streams.get(stream_name)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    (letter,) = await exhaust(consumer, queue, 1)
    await stream.consumers.delete("c")

    await queue.drop(letter.number)

    assert (await stream.info()).state.messages == 0
    assert await queue.count() == 0


async def test_terms_of_other_clients_are_letters_and_ours_are_one(
    js: JetStream, stream_name: str
) -> None:
    consumer = await make_work(js, stream_name, 2)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    theirs = await consumer.next(timeout=30)
    assert theirs is not None
    await theirs.term(reason="no customer", confirm=True)
    await reject_all(consumer, queue.name, 1)

    async def ask() -> bool:
        return (await queue.info()).state.messages == 3  # The letter, and two advisories.

    await eventually_async(ask)
    ours, told = await letters_of(queue)

    assert (ours.reason, ours.sequence) == ("rejected", 2)
    assert (told.reason, told.error, told.sequence) == ("terminated", "no customer", 1)
    assert await queue.count() == 2
    assert await queue.drop_all() == 2
    assert (await queue.info()).state.messages == 0


async def test_letter_whose_message_is_gone_says_so(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 1, max_deliver=1, ack_wait=0.1)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    await exhaust(consumer, queue, 1)
    await delete_message(js, stream_name, 1)

    (letter,) = await letters_of(queue)

    assert letter.is_gone
    with pytest.raises(MessageNotFoundError, match="is gone"):
        await queue.replay(letter)
    assert await queue.replay_all() == 0
    await queue.drop(letter)
    assert await queue.count() == 0


async def test_letters_outlive_their_stream(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 2, max_deliver=1, ack_wait=0.1)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    await exhaust(consumer, queue, 2)
    await js.publish(f"{stream_name}.x", b"2")
    await reject_all(consumer, queue.name, 1)
    await js.streams.delete(stream_name)

    letters = await letters_of(queue)

    assert sorted((each.is_copy, each.is_gone) for each in letters) == [
        (False, True),
        (False, True),
        (True, False),
    ]
    with pytest.raises(NoRespondersError):
        await queue.replay(letters[0], timeout=30)
    other = f"{stream_name}_OTHER"
    await js.streams.create(other, subjects=[f"{other}.>"])
    assert (await queue.replay(letters[0], to=f"{other}.x")).stream == other
    assert await queue.drop_all() == 2


async def test_message_of_a_stream_that_was_made_again_is_not_taken_for_the_dead_one(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = await make_work(
        js, stream_name, 1, retention="workqueue", max_deliver=1, ack_wait=0.1
    )
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    monkeypatch.setattr(captured, "CLOCK_SLACK_NS", 100_000_000)
    await exhaust(consumer, queue, 1)
    await js.streams.delete(stream_name)
    await asyncio.sleep(0.2)  # Longer than the slack for clocks that differ.
    await make_work(js, stream_name, 1, retention="workqueue")

    (letter,) = await letters_of(queue)
    await queue.drop(letter)

    assert letter.is_gone
    assert (await (await js.streams.get(stream_name)).info()).state.messages == 1


async def test_replay_sends_the_message_as_it_was_once(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 0, retention="workqueue")
    stream = await js.streams.update(
        stream_name, allow_rollup_hdrs=True, allow_msg_ttl=True, duplicate_window=60
    )
    await js.publish(
        f"{stream_name}.x",
        b"0",
        headers={"A": ["1", "2"], "Nats-Rollup": "sub"},
        msg_id="o-1",
        ttl=100,
    )
    await reject_all(consumer, f"{stream_name}_DLQ", 1)
    queue = await js.dead_letters.open(f"{stream_name}_DLQ")
    (letter,) = await letters_of(queue)

    first = await queue.replay(letter)
    with pytest.raises(MessageNotFoundError):
        await queue.replay(letter)

    assert not first.duplicate
    assert await queue.count() == 0
    message = await stream.get(first.sequence)
    assert message is not None
    assert (message.subject, message.data) == (f"{stream_name}.x", b"0")
    assert message.headers.all("A") == ("1", "2")
    assert message.headers["Nats-TTL"] == "100"
    assert "Nats-Rollup" not in message.headers
    assert message.headers["Nats-Msg-Id"].startswith(f"dlq-{stream_name}_DLQ-{stream_name}-c-1-")


async def test_replay_of_all_goes_on_where_it_was_refused(js: JetStream, stream_name: str) -> None:
    consumer = await make_work(js, stream_name, 4, retention="workqueue")
    await reject_all(consumer, f"{stream_name}_DLQ", 4)
    queue = await js.dead_letters.open(f"{stream_name}_DLQ")
    stream = await js.streams.get(stream_name)
    await js.streams.update(stream_name, max_msgs=2, discard="new")

    with pytest.raises(Exception, match="maximum messages") as caught:
        await queue.replay_all()
    assert await queue.count() == 2
    await js.streams.update(stream_name, max_msgs=-1)
    assert await queue.replay_all(stream="another") == 0
    unset: Any = None
    for call in (queue.count, queue.replay_all, queue.drop_all):
        for name in ("stream", "consumer"):
            with pytest.raises(ConfigError, match=f"{name} is None") as refused:
                await call(**{name: unset})
            assert '"*"' in refused.value.hint
    assert await queue.replay_all(stream=stream_name, consumer="c") == 2

    assert caught.type.__module__.startswith("natsstream.errors")
    assert (await stream.info()).state.messages == 4


async def test_message_that_only_just_fits_gets_a_letter_without_the_errors_text(
    js: JetStream, stream_name: str
) -> None:
    size = api_of(js).client.max_payload_bytes - 600
    await js.dead_letters.ensure(stream_name)
    failure = FailureRecord(
        subject="x",
        time_ns=5,
        stream="S",
        consumer="c",
        sequence=1,
        deliveries=1,
        reason="attempts",
        error="x" * 900,
    )

    assert await store_letter(api_of(js), stream_name, failure, b"", b"." * size, timeout=20)
    with pytest.raises(PayloadTooLargeError, match="does not fit") as caught:
        await store_letter(api_of(js), stream_name, failure, b"", b"." * (size + 600), timeout=20)

    (letter,) = await letters_of(await js.dead_letters.open(stream_name))
    assert (letter.error, letter.reason) == ("", "attempts")
    assert "max_payload" in caught.value.hint


async def test_dead_letter_stream_takes_in_more_streams(js: JetStream, stream_name: str) -> None:
    name, one, two = f"{stream_name}_DLQ", f"{stream_name}_1", f"{stream_name}_2"
    for each in (one, two):
        await js.streams.create(each, subjects=[f"{each}.>"])

    await js.dead_letters.ensure(name, stream=one, consumer="c", max_age=3600)
    await js.dead_letters.ensure(name, stream=[one, two])
    await js.dead_letters.ensure(name)

    config = (await (await js.dead_letters.open(name)).info()).config
    assert len(config.subjects or ()) == 5
    assert config.max_age == 3600
    with pytest.raises(SubjectOverlapError) as caught:
        await js.dead_letters.ensure(f"{name}_2", stream=one)
    assert "one advisory" in caught.value.hint


async def test_workers_that_begin_together_all_capture_their_consumer(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    name = f"{stream_name}_DLQ"
    consumers = [f"c{number}" for number in range(6)]

    await asyncio.gather(
        *(js.dead_letters.ensure(name, stream=stream_name, consumer=each) for each in consumers)
    )

    config = (await (await js.dead_letters.open(name)).info()).config
    assert len(config.subjects or ()) == 1 + 2 * len(consumers)


async def test_streams_of_another_kind_are_left_alone(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    for wrong in (stream_name,):
        with pytest.raises(ConfigError, match="no dead-letter stream"):
            await js.dead_letters.ensure(wrong)
        with pytest.raises(ConfigError, match="no dead-letter stream"):
            await js.dead_letters.open(wrong)
    for wrong in (None, "", "a.b", b"x"):
        with pytest.raises((ConfigError, ValueError)):
            await js.dead_letters.ensure(wrong)  # pyright: ignore[reportArgumentType] - on purpose.
    with pytest.raises(StreamNotFoundError):
        await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=f"{stream_name}_NONE")
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ")
    with pytest.raises(StreamNotFoundError):  # Also where the letters have a stream.
        await js.dead_letters.ensure(queue.name, stream=f"{stream_name}_NONE")
    await js.dead_letters.ensure(queue.name, stream=f"{stream_name}_LATER", replicas=1)
    with pytest.raises(ConfigError):
        await js.dead_letters.ensure(f"{stream_name}_DLQ", consumer="c")
    with pytest.raises(ConfigError, match="watch itself"):
        await js.dead_letters.ensure(
            f"{stream_name}_DLQ", stream=[stream_name, f"{stream_name}_DLQ"]
        )


def found_gone(stream: str) -> tuple[str, bytes]:
    """Return the report of a server that has found message 1 of a stream gone."""
    told = {"stream": stream, "consumer": "c", "stream_seq": 1, "reason": captured.FOUND_GONE}
    subject = f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{stream}.c"
    return subject, json.dumps(told).encode()


@pytest.mark.parametrize(
    ("fields", "letters"),
    [
        ({"retention": "limits"}, 1),
        ({"retention": "workqueue"}, 0),
        ({"retention": "interest"}, 0),
        ({"retention": "workqueue", "max_msgs": 9, "discard": "new"}, 0),
        ({"retention": "workqueue", "max_msgs": 9}, 1),
        ({"retention": "interest", "max_bytes": 10_000}, 1),
        ({"retention": "workqueue", "max_age": 3600}, 1),
        ({"retention": "workqueue", "max_msgs_per_subject": 1}, 1),
        ({"retention": "workqueue", "allow_rollup_hdrs": True}, 1),
        ({"retention": "workqueue", "allow_msg_ttl": True}, 1),
    ],
)
async def test_message_that_was_found_gone_is_a_letter_where_more_than_acks_deletes(
    js: JetStream, stream_name: str, fields: dict[str, Any], letters: int
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"], **fields)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    await js.core.publish(*found_gone(stream_name))

    async def captured_one() -> bool:
        return (await queue.info()).state.messages == 1

    await eventually_async(captured_one)
    assert await queue.count() == len(await letters_of(queue)) == letters
    assert [each.reason for each in await letters_of(queue)] == ["deleted"] * letters
    assert (await queue.get(1) is not None) == bool(letters)
    assert await queue.drop_all() == letters
    assert (await queue.info()).state.messages == 0


async def test_what_others_write_into_the_queue_breaks_nothing(
    js: JetStream, stream_name: str
) -> None:
    await make_work(js, stream_name, 1)
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ", stream=stream_name)
    told = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{stream_name}.c"
    for payload in (b"", b"{", b"[1]", json.dumps({"stream": "X", "stream_seq": 1}).encode()):
        await js.core.publish(told, payload)
    await js.core.publish(f"$DLQ.{queue.name}.junk", b"x")
    hostile = encode_headers({"Dead-Letter-Subject": "a b", "Dead-Letter-Deliveries": "x"})
    await js.core.publish(f"$DLQ.{queue.name}.S.c.1.1", b"x", headers={"A": "1"})
    await api_of(js).client.request(f"$DLQ.{queue.name}.S.c.2.1", b"x", headers=hostile, timeout=30)

    letters = await letters_of(queue)

    assert [(each.sequence, each.reason) for each in letters] == [(1, "unknown"), (2, "unknown")]
    with pytest.raises(ValueError, match="subject"):
        await queue.replay(letters[1])
    command = {"Dead-Letter-Subject": f"$JS.API.STREAM.DELETE.{stream_name}"}
    await js.publish(f"$DLQ.{queue.name}.S.c.3.1", b"", headers=command)
    with pytest.raises(ConfigError, match="servers act"):
        await queue.replay((await letters_of(queue))[2])
    await js.streams.get(stream_name)
    for wrong in (None, "1", True, 0, 3.5):
        with pytest.raises(ConfigError):
            await queue.drop(wrong)  # pyright: ignore[reportArgumentType] - on purpose.
    assert await queue.get(1) is None
    await change(js, f"STREAM.PURGE.{queue.name}", {})
    assert await letters_of(queue) == []


@pytest.mark.parametrize("consumer_name", ["käse-ö", "a$b:c=d~e", "x" * 200])
async def test_odd_names_have_letters_too(
    js: JetStream, stream_name: str, consumer_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    consumer = await stream.consumers.ensure(consumer_name)
    await js.publish(f"{stream_name}.é", b"0")
    await reject_all(consumer, f"{stream_name}_DLQ", 1)
    queue = await js.dead_letters.open(f"{stream_name}_DLQ")

    (letter,) = await letters_of(queue)
    ack = await queue.replay(letter)

    assert letter.consumer == consumer_name
    message = await stream.get(ack.sequence)
    assert message is not None
    assert message.subject == f"{stream_name}.é"
    assert await queue.count() == 0
