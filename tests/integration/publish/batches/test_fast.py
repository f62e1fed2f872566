"""Fast ingests on one server: what is stored, refused and told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, IngestSpan, PublishMessage, connect
from natsstream.errors import (
    BatchBrokenError,
    BatchDisabledError,
    ConfigError,
    MessageTooLargeError,
    NoRespondersError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SubjectError,
    UnsupportedServerError,
    UsageError,
    WrongLastSequenceError,
    WrongStreamError,
)
from natsstream.testing import NatsServer
from natsstream.testing.versions import server_binary
from tests.support.ingests import other_waits

if TYPE_CHECKING:
    from natsstream import FastIngest, JetStream, Stream

pytestmark = pytest.mark.asyncio


async def send_until_refused(
    fast: FastIngest, subject: str, data: bytes = b"0", *, refused: int = -1
) -> None:
    """Send until an error comes; one message expects what does not hold."""
    for n in range(5_000):
        expect = Expect(last_seq=99_999) if n == refused else None
        await fast.send(subject, data, expect=expect)


async def payloads(stream: Stream) -> list[int]:
    info = await stream.info()
    if not info.state.messages:
        return []
    return [int(message.data) async for message in stream.read(first_seq=1)]


@pytest.mark.proves("1b", "fast batch / ingest (ADR-50)")
async def test_messages_are_stored_in_order_and_the_report_says_so(stream: Stream) -> None:
    await stream.publish(f"{stream.name}.before", b"0")
    async with stream.ingest() as fast:
        for n in range(1, 3_001):
            assert await fast.send(f"{stream.name}.{n % 3}", b"%d" % n) == n
        report = await fast.close()

    assert (report.sent, report.stored, report.is_complete) == (3_000, 3_000, True)
    assert (report.first_seq, report.last_seq) == (2, 3_001)
    assert (report.gaps, report.unknown, report.batches) == ((), (), 1)
    assert await payloads(stream) == list(range(3_001))
    assert await fast.close() == report


async def test_send_many_takes_pairs_and_messages(stream: Stream) -> None:
    many: list[PublishMessage | tuple[str, bytes]] = [
        (f"{stream.name}.a", b"%d" % n) for n in range(2_500)
    ]
    many[1_200] = PublishMessage(f"{stream.name}.b", b"1200", headers={"Tag": "x"}, msg_id="m")
    async with stream.ingest() as fast:
        assert await fast.send_many(many) == 2_500
        assert await fast.send_many([]) == 2_500
        report = await fast.close()

    labelled = await stream.get(1_201)
    assert labelled is not None
    assert (labelled.headers["Tag"], labelled.headers["Nats-Msg-Id"]) == ("x", "m")
    assert report.is_complete
    assert await payloads(stream) == list(range(2_500))


async def test_leaving_the_block_waits_for_everything(stream: Stream) -> None:
    async with stream.ingest(ack_every=7, max_outstanding_acks=1) as fast:
        for n in range(100):
            await fast.send(f"{stream.name}.a", b"%d" % n)

    assert fast.report.is_complete
    assert await payloads(stream) == list(range(100))


async def test_an_ingest_of_nothing_is_complete(stream: Stream) -> None:
    async with stream.ingest() as fast:
        pass

    report = fast.report
    assert (report.sent, report.stored, report.is_complete, report.batches) == (0, 0, True, 0)
    assert (report.first_seq, report.last_seq) == (None, None)


async def test_several_ingest_at_once_and_nothing_is_mixed_up(stream: Stream) -> None:
    async def ingest(name: str) -> None:
        async with stream.ingest() as fast:
            await fast.send_many((f"{stream.name}.{name}", b"%d" % n) for n in range(1_500))
            assert (await fast.close()).is_complete

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(ingest(name))

    for name in ("a", "b", "c"):
        messages = stream.read(first_seq=1, filters=[f"{stream.name}.{name}"])
        assert [int(m.data) async for m in messages] == list(range(1_500))


async def test_tasks_may_send_into_one_ingest(stream: Stream) -> None:
    async with stream.ingest(ack_every=10) as fast:
        async with asyncio.TaskGroup() as group:
            for n in range(300):
                group.create_task(fast.send(f"{stream.name}.a", b"%d" % n))
        report = await fast.close()

    assert report.is_complete
    assert sorted(await payloads(stream)) == list(range(300))


async def test_a_refused_message_ends_the_batch_and_what_is_stored_is_a_run(
    stream: Stream,
) -> None:
    subject = f"{stream.name}.a"
    async with stream.ingest() as fast:
        with pytest.raises(BatchBrokenError) as caught:
            await send_until_refused(fast, subject, refused=50)

    report = fast.report
    assert isinstance(caught.value.__cause__, WrongLastSequenceError)
    assert (caught.value.index, caught.value.err_code) == (50, 10071)
    assert (report.stored, report.unknown) == (50, ())
    assert report.gaps == (IngestSpan(51, report.sent),)
    assert [refusal.number for refusal in report.refused] == [51]
    assert await payloads(stream) == 50 * [0]


async def test_a_refusal_of_the_last_message_is_told_at_the_end(stream: Stream) -> None:
    with pytest.raises(BatchBrokenError) as caught:
        await ingest_two(stream)

    assert caught.value.index == 1
    assert await payloads(stream) == [0]


async def test_a_close_that_raises_nothing_logs_what_is_missing(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    for on_gap in ("fail", "ok"):
        async with stream.ingest(on_gap=on_gap) as fast:
            await fast.send(f"{stream.name}.a", b"0")
            await fast.send(f"{stream.name}.a", b"1", expect=Expect(last_seq=99))
            report, _ = await asyncio.gather(fast.close(), fast.close())
        assert (report.stored, report.is_complete) == (1, False)
    [line] = [each.getMessage() for each in caplog.records if each.name == "natsstream.publisher"]
    assert line.startswith(f"fast batch into {stream.name}: 1 of 2 messages are stored")
    assert "last sequence" in line


async def ingest_two(stream: Stream) -> None:
    async with stream.ingest() as fast:
        await fast.send(f"{stream.name}.a", b"0")
        await fast.send(f"{stream.name}.a", b"1", expect=Expect(last_seq=99))


async def test_a_refusal_of_the_first_message_leaves_nothing(stream: Stream) -> None:
    async with stream.ingest() as fast:
        with pytest.raises(BatchBrokenError) as caught:
            await send_until_refused(fast, f"{stream.name}.a", refused=0)
        report = await fast.close()

    assert isinstance(caught.value.__cause__, WrongLastSequenceError)
    assert (report.stored, report.unknown) == (0, ())
    assert await payloads(stream) == []


@pytest.mark.proves("1b", "fast batch / ingest (ADR-50)")
async def test_gaps_that_are_allowed_are_told_in_the_report(stream: Stream) -> None:
    async with stream.ingest(on_gap="ok") as fast:
        for n in range(2_000):
            expect = Expect(last_seq=99_999) if n in (7, 8, 1_500) else None
            await fast.send(f"{stream.name}.a", b"%d" % n, expect=expect)
        report = await fast.close()

    assert (report.sent, report.stored, report.refused_count) == (2_000, 1_997, 3)
    assert report.gaps == (IngestSpan(8, 9), IngestSpan(1_501, 1_501))
    assert report.unknown == ()
    assert await payloads(stream) == [n for n in range(2_000) if n not in (7, 8, 1_500)]


@pytest.mark.parametrize("on_gap", ["fail", "ok"])
async def test_a_subject_of_no_stream_is_a_gap(stream: Stream, on_gap: str) -> None:
    # One of the two choices.
    fast = stream.ingest(on_gap=on_gap)  # pyright: ignore[reportArgumentType]
    async with fast:
        await fast.send(f"{stream.name}.a", b"0")
        await fast.send("nobody.has.this", b"1")
        await fast.send(f"{stream.name}.a", b"2")
        report = await fast.close()

    stored = [0] if on_gap == "fail" else [0, 2]
    assert await payloads(stream) == stored
    assert (report.stored, report.unknown) == (len(stored), ())
    assert [type(refusal.error) for refusal in report.refused] == [NoRespondersError]


async def test_ingest_that_was_closed_says_so(stream: Stream) -> None:
    fast = stream.ingest()
    with pytest.raises(UsageError, match="not open"):
        await fast.resume()
    async with fast:
        await fast.close()
        for call in (fast.send(f"{stream.name}.a", b"1"), fast.resume()):
            with pytest.raises(UsageError, match="is closed") as caught:
                await call
            assert "stream.ingest()" in caught.value.hint


async def test_the_first_message_to_a_subject_of_no_stream_raises(stream: Stream) -> None:
    async with stream.ingest() as fast:
        with pytest.raises(BatchBrokenError) as caught:
            await fast.send("nobody.has.this", b"1")
        await fast.resume()
        await fast.send(f"{stream.name}.a", b"2")
        report = await fast.close()

    assert isinstance(caught.value.__cause__, NoRespondersError)
    assert (report.sent, report.stored, report.gaps) == (2, 1, (IngestSpan(1, 1),))


async def test_a_subject_of_another_stream_is_named(js: JetStream, stream: Stream) -> None:
    name = f"{stream.name}_other"
    other = await js.streams.ensure(name, subjects=[f"{name}.>"], allow_batched=True)
    async with stream.ingest() as fast:
        for number in range(3):
            await fast.send(f"{stream.name}.a", b"%d" % number)
            with pytest.raises(WrongStreamError, match=f"stream {name} captures"):
                await fast.send(f"{name}.a", b"x")

    assert (fast.report.sent, fast.report.stored) == (3, 3)
    assert (await other.info()).state.messages == 0


async def test_a_subject_that_another_stream_takes_over_meanwhile_is_named(
    js: JetStream, stream: Stream
) -> None:
    mine, moved = f"{stream.name}.a", f"{stream.name}.b"

    async def move() -> Stream:
        await js.streams.update(stream.name, subjects=[mine])
        return await js.streams.ensure(f"{stream.name}_o", subjects=[moved], allow_batched=True)

    async with stream.ingest(on_gap="ok") as fast, stream.ingest() as lost:
        await fast.send(mine, b"0")
        await fast.send(moved, b"1")
        await lost.send(moved, b"1")
        other = await move()
        await fast.send(moved, b"2")
        await fast.send(mine, b"3")
        report = await fast.close()
        with pytest.raises(BatchBrokenError):
            await send_until_refused(lost, moved)

    # The other stream's refusal may come behind this one's end; the gap is told in any case.
    assert all(isinstance(refusal.error, WrongStreamError) for refusal in report.refused)
    assert (report.stored, report.gaps) == (3, (IngestSpan(3, 3),))
    assert (await other.info()).state.messages == 0


async def test_a_batch_whose_subjects_were_taken_over_at_once_is_not_told_as_stored(
    js: JetStream, stream: Stream
) -> None:
    async with stream.ingest() as fast:
        await js.streams.update(stream.name, subjects=[f"{stream.name}.a"])
        other = await js.streams.ensure(
            f"{stream.name}_o", subjects=[f"{stream.name}.b"], allow_batched=True
        )
        await fast.send(f"{stream.name}.b", b"1")
        await fast.send(f"{stream.name}.b", b"2")
        report = await fast.close()

    assert (report.sent, report.stored) == (2, 0)
    assert (await other.info()).state.messages == 2


async def test_duplicates_are_skipped_also_where_one_comes_first(stream: Stream) -> None:
    for _ in range(2):
        async with stream.ingest() as fast:
            for n in range(20):
                await fast.send(f"{stream.name}.a", b"%d" % n, msg_id=f"m{n}")
            report = await fast.close()

        assert (report.sent, report.stored, report.unknown) == (20, 20, ())
    assert await payloads(stream) == list(range(20))


async def test_a_message_beyond_the_streams_limit_is_refused(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name, max_msg_size=200, allow_batched=True)
    async with stream.ingest() as fast:
        await fast.send(stream_name, b"0")
        with pytest.raises(BatchBrokenError) as caught:
            await send_until_refused(fast, stream_name, b"1".ljust(300))
        report = await fast.close()

    assert isinstance(caught.value.__cause__, MessageTooLargeError)
    assert (report.stored, report.unknown) == (1, ())


async def test_after_a_break_it_goes_on_only_when_asked(stream: Stream) -> None:
    async with stream.ingest() as fast:
        await fast.send(f"{stream.name}.a", b"0")
        await fast.send(f"{stream.name}.a", b"1", expect=Expect(last_seq=99))
        for _ in range(2):
            with pytest.raises(BatchBrokenError):
                await fast.send_many([(f"{stream.name}.a", b"2")] * 5_000)
        broken = fast.report.sent
        await fast.resume()
        assert await fast.send(f"{stream.name}.a", b"3") == broken + 1
        report = await fast.close()

    assert (report.stored, report.batches, report.unknown) == (2, 2, ())
    assert report.gaps == (IngestSpan(2, broken),)
    assert await payloads(stream) == [0, 3]


async def test_wrong_arguments_are_refused_and_the_ingest_goes_on(stream: Stream) -> None:
    subject = f"{stream.name}.a"
    largest = stream._api.client.max_payload_bytes  # pyright: ignore[reportPrivateUsage]
    async with stream.ingest() as fast:
        await fast.send(subject, b"0")
        for each in ({"headers": "x"}, {"expect": {"last_seq": 1}}, {"ttl": "soon"}):
            with pytest.raises(ConfigError):
                # The wrong types are the test.
                await fast.send(subject, b"x", **each)  # pyright: ignore[reportArgumentType]
        with pytest.raises(PayloadTooLargeError):
            await fast.send(subject, bytes(largest + 1))
        for wrong in (None, "a b", "a.*", ["a"], ""):
            with pytest.raises(SubjectError):
                await fast.send(wrong, b"x")  # pyright: ignore[reportArgumentType]
        for one in ((subject,), None, 7, (subject, "text"), (None, b"x")):
            with pytest.raises((ConfigError, SubjectError)):
                await fast.send_many([one])  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigError):
            await fast.send_many(7)  # pyright: ignore[reportArgumentType]
        await fast.send(subject, bytearray(b"1"))
        report = await fast.close()

    assert (report.sent, report.is_complete) == (2, True)


async def test_options_that_can_not_work_are_refused(stream: Stream) -> None:
    for each in (
        {"on_gap": "fial"},
        {"ack_every": 0},
        {"max_outstanding_acks": 0},
        {"ack_timeout": 0},
        {"idle_timeout": 0},
    ):
        with pytest.raises(UsageError):
            stream.ingest(**each)  # pyright: ignore[reportArgumentType]


async def test_an_ingest_that_is_not_open_refuses(stream: Stream) -> None:
    fast = stream.ingest()
    for said in ("not open", "is closed"):
        with pytest.raises(UsageError, match=said):
            await fast.send(f"{stream.name}.a")
        with pytest.raises(UsageError, match=said):
            await fast.send_many([])
        async with fast:
            with pytest.raises(UsageError, match="open already"):
                async with fast:
                    pass


async def test_an_error_in_the_block_sends_nothing_more(stream: Stream) -> None:
    fast = stream.ingest()
    with pytest.raises(ZeroDivisionError):
        await fail_in_block(stream, fast)

    report = fast.report
    known = report.stored + sum(s.size for s in (*report.gaps, *report.unknown))
    assert known == report.sent == 3


async def fail_in_block(stream: Stream, fast: FastIngest) -> None:
    async with fast:
        for n in range(3):
            await fast.send(f"{stream.name}.a", b"%d" % n)
        raise ZeroDivisionError


async def test_streams_that_take_no_fast_batches_are_refused(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name)
    with pytest.raises(BatchDisabledError, match="allow_batched=True"):
        async with stream.ingest():
            pass
    await js.streams.update(stream_name, allow_batched=True, no_ack=True)
    with pytest.raises(ConfigError, match="no_ack"):
        async with stream.ingest():
            pass


async def test_answers_that_somebody_forges_change_nothing(js: JetStream, stream: Stream) -> None:
    async with stream.ingest(ack_timeout=30) as fast:
        await fast.send(f"{stream.name}.a", b"0")
        sender = fast._sender  # pyright: ignore[reportPrivateUsage]
        assert sender is not None
        prefix = sender._prefix  # pyright: ignore[reportPrivateUsage]
        for forged in (b"", b"garbage", b"[]", b'{"type":"ack","seq":-4,"msgs":1}'):
            await js.core.publish(f"{prefix}1.1.$FI", forged)
        await js.core.publish(f"{prefix}nonsense.1.$FI", b"{}")
        await js.core.publish(prefix + "x", b"{}")
        await fast.send(f"{stream.name}.a", b"1")
        report = await fast.close()

    assert report.is_complete


@pytest.mark.needs_versions
async def test_older_servers_are_refused_before_anything_is_sent(stream_name: str) -> None:
    with NatsServer(binary=server_binary("2.12")) as server:
        async with connect(server.url) as js:
            stream = await js.streams.ensure(stream_name)
            with pytest.raises(UnsupportedServerError, match="fast batches"):
                async with stream.ingest():
                    pass


async def test_a_stream_that_is_deleted_in_the_middle_is_told(
    js: JetStream, stream: Stream
) -> None:
    async with stream.ingest(ack_timeout=30) as fast:
        await fast.send(f"{stream.name}.a", b"0")
        await js.streams.delete(stream.name)
        # Nobody is there to answer, so there is nothing to wait for.
        with other_waits(fast, ack_timeout_s=0.2, ping_after_s=0.1):
            with pytest.raises((BatchBrokenError, RequestTimeoutError)):
                await send_until_refused(fast, f"{stream.name}.a")
            report = await fast.close()

    assert not report.is_complete
