"""Integration tests of reading under faults: servers that go away, streams that change meanwhile.

A stream of 40 MB is more than the 16 MiB that a read may have under way, so that what is done in
the middle of the read meets messages that the server still has.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from natsstream import Gap, connect
from natsstream.errors import (
    ConnectionLostError,
    MessagesLostError,
    StreamNotFoundError,
    StreamRecreatedError,
)
from natsstream.read import session
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.liars import Told, lying
from tests.support.patience import set_patience
from tests.support.streams import (
    by_batches,
    by_messages,
    fill,
    purge,
    read_and_disturb,
    silence,
)

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream, StreamRange

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

COUNT = 40_000
SIZE = 1_024

ALL = list(range(1, COUNT + 1))

Way = Callable[["StreamRange"], AsyncIterator[list[int]]]
ways = pytest.mark.parametrize("way", [by_messages, by_batches])


def restart(server: NatsServer) -> None:
    server.restart()


def crash(server: NatsServer) -> None:
    server.kill()
    server.start()


@ways
@pytest.mark.parametrize("fault", [restart, crash])
async def test_read_goes_on_where_the_server_broke_off(
    fresh_server: NatsServer, fresh_js: JetStream, fault: Callable[[NatsServer], None], way: Way
) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    messages = stream.read()

    found = await read_and_disturb(way(messages), lambda: asyncio.to_thread(fault, fresh_server))

    assert found == ALL
    assert messages.report.resumes >= 1
    assert messages.report.messages == COUNT


@ways
async def test_read_survives_one_break_after_another(
    fresh_server: NatsServer, fresh_js: JetStream, way: Way
) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    found: list[int] = []
    breaks = 0

    async for some in way(stream.read()):
        found.extend(some)
        if len(found) >= (breaks + 1) * 8_000 and breaks < 4:
            breaks += 1
            await asyncio.to_thread(crash, fresh_server)

    assert found == ALL


@ways
async def test_read_goes_on_after_a_pause(
    fresh_server: NatsServer, fresh_js: JetStream, way: Way
) -> None:
    """The server freezes until nothing comes any more: shorter than what breaks a session."""
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    sequences = way(stream.read())
    found = list(await anext(sequences))

    fresh_server.pause()
    waiting = await silence(sequences, found)
    fresh_server.resume()
    found.extend(await waiting)
    async for some in sequences:
        found.extend(some)

    assert found == ALL


@ways
async def test_read_goes_on_after_a_pause_that_breaks_the_session(
    fresh_server: NatsServer, fresh_js: JetStream, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SILENCE_MAX_S", 2.0)
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    messages = stream.read()
    sequences = way(messages)
    found = list(await anext(sequences))

    before = messages.report.resumes
    fresh_server.pause()
    waiting = await silence(sequences, found)

    async def has_given_up() -> bool:
        return messages.report.resumes > before

    await eventually_async(has_given_up)
    fresh_server.resume()
    found.extend(await waiting)
    async for some in sequences:
        found.extend(some)

    assert found == ALL


@ways
async def test_server_that_stays_dead_ends_the_read_with_where_to_go_on(
    fresh_server: NatsServer, way: Way
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await fill(js, "S", COUNT, size=SIZE)
        set_patience(js, reconnect_timeout=2)
        found: list[int] = []

        with pytest.raises(ConnectionLostError) as caught:
            await read_and_disturb(
                way(stream.read()), lambda: asyncio.to_thread(fresh_server.kill), into=found
            )

        assert found == list(range(1, len(found) + 1))
        assert f"read(first_seq={len(found) + 1}, last_seq={COUNT})" in caught.value.hint
        assert caught.value.retryable

        set_patience(js, request_timeout=30, reconnect_timeout=30)
        fresh_server.start()
        async for some in way(stream.read(first_seq=len(found) + 1, last_seq=COUNT)):
            found.extend(some)
        assert found == ALL


@ways
async def test_purge_in_mid_read_counts_as_deleted(fresh_js: JetStream, way: Way) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    messages = stream.read()

    found = await read_and_disturb(way(messages), lambda: purge(fresh_js, "S"))

    assert found == ALL[: len(found)]
    assert len(found) < COUNT
    assert messages.report.gaps == [Gap(len(found) + 1, COUNT, "deleted")]


async def test_purge_of_some_in_mid_read_counts_as_deleted(fresh_js: JetStream) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    messages = stream.read()

    found = await read_and_disturb(by_messages(messages), lambda: purge(fresh_js, "S", keep=10))

    assert found[-10:] == ALL[-10:]
    assert messages.report.messages + messages.report.deleted == COUNT
    assert messages.report.lost == 0


async def test_eviction_before_the_read_is_loss_when_asked(fresh_js: JetStream) -> None:
    stream = await fill(fresh_js, "S", 100, max_msgs=40)

    with pytest.raises(MessagesLostError) as caught:
        await read_and_disturb(
            by_messages(stream.read(first_seq=1, eviction_is_loss=True)), _nothing
        )

    assert (caught.value.first_seq, caught.value.last_seq) == (1, 60)


async def test_eviction_in_mid_read_is_loss_when_asked(fresh_js: JetStream) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    found: list[int] = []

    with pytest.raises(MessagesLostError) as caught:
        await read_and_disturb(
            by_messages(stream.read(eviction_is_loss=True)),
            lambda: purge(fresh_js, "S"),
            into=found,
        )

    assert (caught.value.first_seq, caught.value.last_seq) == (len(found) + 1, COUNT)


async def test_eviction_in_mid_read_before_a_held_tail_is_loss_when_asked(
    fresh_js: JetStream,
) -> None:
    """The consumer goes on with the messages after the hole, without any break."""
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)

    with pytest.raises(MessagesLostError):
        await read_and_disturb(
            by_messages(stream.read(eviction_is_loss=True)),
            lambda: purge(fresh_js, "S", keep=10),
        )


@ways
async def test_eviction_is_counted_as_lost_with_on_loss_report(
    fresh_js: JetStream, way: Way
) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    messages = stream.read(eviction_is_loss=True, on_loss="report")

    found = await read_and_disturb(way(messages), lambda: purge(fresh_js, "S"))

    assert messages.report.gaps == [Gap(len(found) + 1, COUNT, "lost")]
    assert (messages.report.lost, messages.report.deleted) == (COUNT - len(found), 0)


@ways
async def test_stream_deleted_in_mid_read_ends_it(fresh_js: JetStream, way: Way) -> None:
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)

    with pytest.raises(StreamNotFoundError):
        await read_and_disturb(way(stream.read()), lambda: fresh_js.streams.delete("S"))


@pytest.mark.parametrize("is_given", [True, False])
async def test_stream_made_anew_in_mid_read_ends_it(fresh_js: JetStream, is_given: bool) -> None:  # noqa: FBT001
    stream = await fill(fresh_js, "S", COUNT, size=SIZE)
    created_ns = (await stream.info()).created_ns if is_given else None

    async def make_anew() -> None:
        await fresh_js.streams.delete("S")
        await fill(fresh_js, "S", COUNT, size=SIZE)

    with pytest.raises(StreamRecreatedError):
        await read_and_disturb(by_messages(stream.read(created_ns=created_ns)), make_anew)


async def test_stream_made_anew_before_the_read_is_refused(fresh_js: JetStream) -> None:
    stream = await fill(fresh_js, "S", 10)
    created_ns = (await stream.info()).created_ns
    await fresh_js.streams.delete("S")
    stream = await fill(fresh_js, "S", 10)

    with pytest.raises(StreamRecreatedError):
        await read_and_disturb(by_messages(stream.read(created_ns=created_ns)), _nothing)


class OldStore:
    """A server whose store can be set back to an older copy, as a bad restore would."""

    def __init__(self, folder: Path) -> None:
        self.server = NatsServer(store_dir=folder / "server")
        self._store = folder / "server" / "jetstream"
        self._copy = folder / "copy"

    def keep_copy(self) -> None:
        self.server.stop(keep_store=True)
        shutil.copytree(self._store, self._copy)
        self.server.start()

    def set_back(self) -> None:
        self.server.stop(keep_store=True)
        shutil.rmtree(self._store)
        shutil.copytree(self._copy, self._store)
        self.server.start()


@pytest.mark.parametrize("held", [30_000, 500], ids=["ahead_of_the_reader", "behind_the_reader"])
async def test_lost_tail_ends_the_read(tmp_path: Path, held: int) -> None:
    old = OldStore(tmp_path)
    with old.server as server:
        async with connect(server.url) as js:
            await fill(js, "S", held, size=SIZE)
            await asyncio.to_thread(old.keep_copy)
            stream = await fill(js, "S", COUNT - held, size=SIZE, start=held)
            found: list[int] = []

            with pytest.raises(MessagesLostError) as caught:
                await read_and_disturb(
                    by_messages(stream.read()),
                    lambda: asyncio.to_thread(old.set_back),
                    into=found,
                )

            assert found == ALL[: len(found)]
            assert len(found) >= held
            assert (caught.value.first_seq, caught.value.last_seq) == (len(found) + 1, COUNT)


@ways
async def test_lost_tail_is_told_with_on_loss_report(tmp_path: Path, way: Way) -> None:
    old = OldStore(tmp_path)
    with old.server as server:
        async with connect(server.url) as js:
            await fill(js, "S", 30_000, size=SIZE)
            await asyncio.to_thread(old.keep_copy)
            stream = await fill(js, "S", 10_000, size=SIZE, start=30_000)
            messages = stream.read(on_loss="report")

            found = await read_and_disturb(way(messages), lambda: asyncio.to_thread(old.set_back))

            assert found == ALL[:30_000]
            assert messages.report.gaps == [Gap(30_001, COUNT, "lost")]


REFUSED = b'{"error":{"code":503,"err_code":10023,"description":"insufficient resources"}}'


@ways
async def test_cluster_that_sees_no_peer_for_the_consumer_is_asked_again(way: Way) -> None:
    """A meta leader answers so in an election, when it takes the other servers for gone."""
    refusals = 0

    def refuse(told: Told) -> Told:
        nonlocal refusals
        if told.kind != "CONSUMER.CREATE" or refusals == 2:
            return told
        refusals += 1
        return replace(told, payload=REFUSED)

    with NatsServer() as server:
        async with lying(server.port) as liar, connect(liar.url) as js:
            stream = await fill(js, "S", 100, size=8)
            liar.lie = refuse
            messages = stream.read()
            assert [seq async for run in way(messages) for seq in run] == ALL[:100]
            assert refusals == 2
            assert messages.report.resumes == 2


async def _nothing() -> None:
    pass
