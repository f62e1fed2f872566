"""Parts of batches that a killed server of a cluster keeps, where the stream has one replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream.errors import ConnectionClosedError, ProducerFailedError, RequestTimeoutError
from natsstream.producer import partial_batches, shared_writer
from tests.support.producers import Place, append_all, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from natsstream import JetStream
    from natsstream.errors import NatsStreamError
    from natsstream.publish.batches.atomic_rules import BatchAck
    from natsstream.publish.outgoing import Prepared
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

LOST = RequestTimeoutError("no answer", retryable=True)
GONE = ConnectionClosedError("the program was killed")


@pytest_asyncio.fixture
async def place(nats_cluster: NatsCluster, cluster_js: JetStream, stream_name: str) -> Place:
    """A stream with one replica in a cluster."""
    made = Place(cluster_js, stream_name, 1, nats_cluster.servers[0].port)
    await made.make()
    return made


class KilledServer:
    """Stores the first messages of the next batch, as a killed server keeps them.

    They are a batch of their own here, so the last of them has a header more.

    Attributes:
        kept: How many are kept of the next batch; None for all.
        error: The error that the producer gets.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: int | None = None
        self.error: NatsStreamError = LOST
        store = shared_writer.store_together

        async def part(
            api: Any, stream: str, messages: Sequence[Prepared], *, timeout: float
        ) -> BatchAck:
            kept, self.kept = self.kept, None
            ack = await store(api, stream, messages[:kept], timeout=timeout)
            if kept is not None:
                raise self.error.with_traceback(None)
            return ack

        monkeypatch.setattr(shared_writer, "store_together", part)


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> KilledServer:
    """Batches that are kept in part."""
    return KilledServer(monkeypatch)


@pytest.mark.parametrize("kept", [2, 3, 6])
async def test_producer_deletes_the_part_before_it_stores_the_batch_again(
    place: Place, killed: KilledServer, kept: int
) -> None:
    """A mark and some of five messages, or all of them, but not the state record."""
    async with await place.open() as producer:
        await producer.append_wait(b"first")
        await place.js.publish(f"{place.name}.d", b"of another")
        killed.kept = kept
        append_all(producer, numbers(5))
        await producer.flush()
    assert await place.data() == [b"first", b"of another", *numbers(5)]
    assert (await place.state())[0].count == 6


async def test_new_instance_deletes_what_is_left_of_an_earlier_one(
    place: Place, killed: KilledServer
) -> None:
    """Also where others have written behind it, and a second server was killed."""
    await lose_twice(place, killed)
    async with await place.open() as heir:
        assert heir.recovered is not None
        assert heir.recovered.count == 0
        append_all(heir, numbers(5))
    assert await place.data() == [b"other 0", b"other 1", *numbers(5)]


async def test_exclusive_instance_deletes_the_part_too(place: Place, killed: KilledServer) -> None:
    await lose_twice(place, killed)
    async with await place.open(mode="exclusive") as heir:
        append_all(heir, numbers(5))
    assert await place.data() == [b"other 0", b"other 1", *numbers(5)]


async def lose_twice(place: Place, killed: KilledServer) -> None:
    """Leave a part of a batch twice, each time with a message of another publisher behind it."""
    for attempt in range(2):
        producer = await place.open(max_batch_messages=5)
        killed.kept, killed.error = 4, GONE
        append_all(producer, numbers(5))
        with pytest.raises(ConnectionClosedError):
            await producer.flush()
        await producer.detach(ignore_errors=True)
        await place.js.publish(f"{place.name}.d", b"other %d" % attempt)
    assert len(await place.data()) == 3 + 2


async def test_instance_that_claims_does_not_write_over_a_part_that_it_has_not_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch, killed: KilledServer
) -> None:
    """The server is killed after the new instance has read, and before it claims."""
    old = await place.open()
    await old.append_wait(b"first")
    read = shared_writer.read_state
    reads = 0

    async def read_late(*args: Any) -> Any:
        nonlocal reads
        found = await read(*args)
        reads += 1
        if reads == 1:
            killed.kept, killed.error = 2, GONE
            append_all(old, numbers(3))
            with pytest.raises(ConnectionClosedError):
                await old.flush()
        return found

    monkeypatch.setattr(shared_writer, "read_state", read_late)
    async with await place.open() as heir:
        assert reads >= 2
        append_all(heir, numbers(3))
    assert await place.data() == [b"first", *numbers(3)]
    await old.detach(ignore_errors=True)


async def test_whole_batch_stays_when_its_record_is_replaced_while_a_new_instance_looks(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await place.open()
    append_all(old, numbers(3))
    await old.flush()
    ask = partial_batches.get_message
    asked = 0

    async def ask_slowly(*args: Any, **options: Any) -> Any:
        nonlocal asked
        found = await ask(*args, **options)
        asked += 1
        if asked == 1:
            await old.append_wait(b"3")
        return found

    monkeypatch.setattr(partial_batches, "get_message", ask_slowly)
    async with await place.open() as heir:
        assert asked > 1
        await heir.append_wait(b"4")
    await old.detach(ignore_errors=True)
    assert await place.data() == numbers(5)


async def test_whole_batch_stays_behind_a_record_without_a_mark(place: Place) -> None:
    """An exclusive instance, and a backup, write records alone."""
    async with await place.open() as producer:
        append_all(producer, numbers(3))
    record, _ = await place.state()
    await place.put_back(record)
    async with await place.open() as heir:
        await heir.append_wait(b"3")
    assert await place.data() == numbers(4)


async def test_end_of_the_stream_without_its_state_is_none(
    place: Place, killed: KilledServer
) -> None:
    producer = await place.open()
    await producer.append_wait(b"first")
    killed.kept, killed.error = 3, GONE  # The mark, one message and the end.
    with pytest.raises(ConnectionClosedError):
        await producer.close(b"last")
    await producer.detach(ignore_errors=True)
    heir = await place.open()
    result = await heir.close(b"last")
    assert await place.data() == [b"first", b"last"]
    assert result.final_offset is not None
    stream = await place.js.streams.get(place.name)
    assert [m.data async for m in stream.read(until_closed=True)] == [b"first", b"last"]


async def test_marks_are_no_data_and_their_end_is_no_loss(place: Place) -> None:
    stream = await place.js.streams.get(place.name)
    async with await place.open() as producer:
        for number in numbers(3):
            await producer.append_wait(number)
        assert [m.data async for m in stream.read()] == numbers(3)
        control = [m async for m in stream.read(control=True)]
        subject = await place.state_subject()
        assert [m.subject for m in control].count(f"{subject}~") == 1
        # All that is gone from the beginning were records and marks.
        from_first = stream.read(first_seq=1, on_loss="raise")
        assert [m.data async for m in from_first] == numbers(3)
    info = await stream.info()
    missing = sorted({*range(1, info.state.last_seq + 1)} - {m.sequence for m in control})
    record, token = await place.state()
    marks = [m.sequence for m in control if m.subject == f"{subject}~"]
    told = [n for first, last in record.past for n in range(first, last + 1)]
    assert missing == sorted({*told} - {token, *marks})
    async with await place.open() as heir:
        await heir.append_wait(b"3")
    record, _ = await place.state()
    spans = [n for span in record.past for n in span]
    assert spans == sorted(spans)
    assert len({*record.past}) == len(record.past)


async def test_part_in_a_stream_that_forbids_to_delete_ends_the_producer(
    place: Place, killed: KilledServer
) -> None:
    await place.js.streams.delete(place.name)
    await place.make(deny_delete=True)
    producer = await place.open()
    killed.kept = 2
    append_all(producer, numbers(3))
    with pytest.raises(ProducerFailedError) as failure:
        await producer.flush()
    assert "deny_delete" in str(failure.value)
    await producer.detach(ignore_errors=True)
    assert await place.data() == numbers(1)
