"""Writers of chains: they go on where they were, also after lost acks, one process at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import (
    ChainBrokenError,
    ChainForkedError,
    ConfigError,
    HeaderError,
    NatsStreamError,
    TransportError,
)
from natsstream.streams.chain import writer
from tests.support.chains import KEY, chain_of, copied
from tests.support.eventually import eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream, PubAck, StreamInfo
    from natsstream.api.requests import Api
    from natsstream.publish.outgoing import Prepared
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_writer_goes_on_behind_its_last_link(js: JetStream, stream_name: str) -> None:
    stream = await chain_of(js, stream_name, 3)
    await fill(js, stream_name, 1_500)  # So the last link is not in the first look back.

    async with stream.chained(writer="w1", key=KEY) as chain:
        assert (chain.head.count, chain.head.sequence) == (3, 3)
        await chain.send(f"{stream_name}.0", b"next")
        head = chain.head
    async with stream.chained(writer="w1", key=KEY, resume=head) as chain:
        await chain.send(f"{stream_name}.0", b"and next")

    report = await stream.verify_chain(key=KEY)
    assert (report.links, report.unchained, report.heads["w1"].count) == (5, 1_500, 5)


@pytest.mark.proves("1a", 'seal, deny_delete, deny_purge ("immutable sets")')
async def test_second_process_with_the_same_writer_id_is_refused(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    async with (
        stream.chained(writer="w1", key=KEY) as one,
        stream.chained(writer="w1", key=KEY) as two,
    ):
        await one.send(f"{stream_name}.0", b"mine")
        with pytest.raises(ChainForkedError) as caught:
            await two.send(f"{stream_name}.0", b"theirs")

        assert caught.value.sequence == 1
        await one.send(f"{stream_name}.0", b"mine again")
    assert (await stream.verify_chain(key=KEY)).links == 2


async def test_second_process_is_noticed_after_the_duplicate_window(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(
        stream_name, subjects=[f"{stream_name}.>"], duplicate_window=0.1
    )
    async with stream.chained(writer="w1", key=KEY) as one:
        async with stream.chained(writer="w1", key=KEY) as two:
            await two.send(f"{stream_name}.0", b"theirs")
            await js.publish(f"{stream_name}.0", b"plain", msg_id="later")
        # The server forgets message ids by time alone, one after another.
        await eventually_async(lambda: is_forgotten(js, f"{stream_name}.0", "later"))
        with pytest.raises(ChainForkedError):
            await one.send(f"{stream_name}.0", b"mine")

    assert (await stream.verify_chain(key=KEY)).links == 1


async def is_forgotten(js: JetStream, subject: str, msg_id: str) -> bool:
    """Return True if the server stores a message of an id as a new one."""
    return not (await js.publish(subject, b"plain", msg_id=msg_id)).duplicate


async def test_exclusive_writer_is_stopped_by_the_server(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    async with stream.chained(writer="w1", key=KEY, exclusive=True) as chain:
        await chain.send(f"{stream_name}.0", b"1")
        await chain.send(f"{stream_name}.1", b"2")
        await js.publish(f"{stream_name}.1", b"foreign")
        with pytest.raises(ChainForkedError):
            await chain.send(f"{stream_name}.0", b"3")

    assert (await stream.verify_chain(key=KEY)).links == 2


async def test_link_whose_ack_was_lost_is_sent_again_and_stored_once(
    fresh_server: NatsServer, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = writer.publish
    tries: list[float] = []
    is_second = asyncio.Event()

    async def impatient(
        api: Api, message: Prepared, *, stream: StreamInfo, timeout: float | None
    ) -> PubAck:
        """Give up the first try only."""
        assert timeout is None
        tries.append(0.1 if not tries else 30)
        if len(tries) == 2:
            is_second.set()
        return await publish(api, message, stream=stream, timeout=tries[-1])

    async with connect(fresh_server.url, request_timeout=30) as js:
        stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        async with stream.chained(writer="w1", key=KEY) as chain:
            await chain.send(f"{stream_name}.0", b"1")
            fresh_server.pause()
            with monkeypatch.context() as patched:
                patched.setattr(writer, "publish", impatient)
                task = asyncio.create_task(chain.send(f"{stream_name}.0", b"2"))
                await is_second.wait()
                fresh_server.resume()
                await task
            await chain.send(f"{stream_name}.0", b"3")

        report = await stream.verify_chain(key=KEY)
        assert (report.links, (await stream.info()).state.messages) == (3, 3)


async def test_link_that_nobody_knows_of_is_looked_up_before_the_next_one(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url, request_timeout=30) as js:
        stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        async with stream.chained(writer="w1", key=KEY) as chain:
            await chain.send(f"{stream_name}.0", b"1")
            fresh_server.pause()
            with pytest.raises(TransportError):
                await chain.send(f"{stream_name}.0", b"2", timeout=0.1)
            task = asyncio.create_task(chain.send(f"{stream_name}.0", b"3"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            fresh_server.resume()
            await js.core.flush()
            await chain.send(f"{stream_name}.0", b"4")

        report = await stream.verify_chain(key=KEY)
        held = [each.data async for each in stream.read()]
        assert report.links == len(held)
        assert held == [b"1", b"2", b"4"]


async def test_link_that_comes_late_is_taken_up_and_not_called_foreign(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url, request_timeout=30) as js:
        stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        async with stream.chained(writer="w1", key=KEY) as chain:
            await chain.send(f"{stream_name}.0", b"1")
            fresh_server.pause()
            with pytest.raises(TransportError):
                await chain.send(f"{stream_name}.0", b"2", timeout=0.1)
            # As if a read of a replicated stream misses a message in flight.
            chain._is_sure = True  # pyright: ignore[reportPrivateUsage]
            task = asyncio.create_task(chain.send(f"{stream_name}.0", b"3"))
            await asyncio.sleep(0)
            fresh_server.resume()
            await task

        assert (await stream.verify_chain(key=KEY)).links == 3
        assert [each.data async for each in stream.read()] == [b"1", b"2", b"3"]


async def test_foreign_junk_in_the_stream_does_not_stop_a_writer(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name, 2)
    for headers in ({"Chain-Writer": "w1"}, {"Chain-Hash": "x"}, {"Chain-Count": ["1", "2"]}):
        await js.publish(f"{stream_name}.0", b"", headers=headers)

    async with stream.chained(writer="w1", key=KEY) as chain:
        await chain.send(f"{stream_name}.0", b"next")
        assert chain.head.count == 3


async def test_refused_message_leaves_the_chain_whole(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], max_msg_size=2_000)
    async with stream.chained(writer="w1") as chain:
        await chain.send(f"{stream_name}.0", b"1")
        with pytest.raises(NatsStreamError):
            await chain.send(f"{stream_name}.0", b"x" * 3_000)
        await chain.send(f"{stream_name}.0", b"2")

    assert (await stream.verify_chain()).links == 2


async def test_copy_of_an_old_link_is_not_taken_for_the_last_one(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name, 3)
    old = await stream.get(2)
    assert old is not None
    subject, headers, data = copied(old)
    # The chain's own headers tell nothing of a message id that is another.
    await js.publish(subject, data, headers={**headers, "Nats-Msg-Id": ["again"]})

    async with stream.chained(writer="w1", key=KEY) as chain:
        assert (chain.head.count, chain.head.sequence) == (3, 3)


async def test_kept_head_is_looked_for_before_anything_is_written(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name, 3)
    head = (await stream.verify_chain(key=KEY)).heads["w1"]
    await stream.delete()
    # Made anew: shorter, and then as long, by somebody with the key.
    for count, kind in ((2, "tail"), (4, "head")):
        other = await chain_of(js, f"{stream_name}_{count}", count)
        with pytest.raises(ChainBrokenError) as caught:
            await other.chained(writer="w1", key=KEY, resume=head).open()
        assert caught.value.kind == kind


async def test_exclusive_writer_is_stopped_by_the_server_also_right_behind_a_kept_head(
    js: JetStream, stream_name: str
) -> None:
    stream = await chain_of(js, stream_name, 1)
    head = (await stream.verify_chain(key=KEY)).heads["w1"]
    await js.publish(f"{stream_name}.0", b"foreign")

    async with stream.chained(writer="w1", key=KEY, exclusive=True, resume=head) as chain:
        with pytest.raises(ChainForkedError):
            await chain.send(f"{stream_name}.1", b"2")


@pytest.mark.parametrize("name", ["Nats-Rollup", "Nats-TTL", "Nats-Expected-Stream"])
async def test_headers_that_would_take_links_out_are_refused(
    js: JetStream, stream_name: str, name: str
) -> None:
    stream = await js.streams.ensure(
        stream_name, subjects=[f"{stream_name}.>"], allow_rollup_hdrs=True, allow_msg_ttl=True
    )
    async with stream.chained(writer="w1") as chain:
        await chain.send(f"{stream_name}.0", b"1")
        with pytest.raises(HeaderError):
            await chain.send(f"{stream_name}.0", b"2", headers={name: "all"})

    assert (await stream.verify_chain()).links == 1


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
async def test_streams_that_drop_what_was_read_take_no_chain(
    js: JetStream, stream_name: str, retention: Any
) -> None:
    stream = await js.streams.ensure(
        stream_name, subjects=[f"{stream_name}.>"], retention=retention
    )

    with pytest.raises(ConfigError, match=retention):
        await stream.chained(writer="w1").open()
