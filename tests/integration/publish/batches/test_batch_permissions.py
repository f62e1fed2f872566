"""Batches of users who may not do everything."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import BatchBrokenError, PermissionDeniedError, UsageError
from natsstream.publish.batches.whole import store_together
from natsstream.publish.outgoing import prepare
from natsstream.testing import NatsServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from natsstream import BatchAck, JetStream, Stream
    from natsstream.events import ConnectionEvent

pytestmark = pytest.mark.asyncio

CONFIG = """
accounts {
  A {
    jetstream: enabled
    users: [
      { user: all, password: pw }
      { user: narrow, password: pw, permissions: {
          publish: { allow: ["$JS.API.>", "S.open"] }, subscribe: { allow: ["_INBOX.>"] } } }
    ]
  }
}
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[NatsServer]:
    """A server with two users."""
    with NatsServer(config=CONFIG) as server:
        yield server


@asynccontextmanager
async def opened(guarded: NatsServer) -> AsyncGenerator[tuple[JetStream, Stream]]:
    """The narrow user's connection, with an empty stream; it leaves nobody who listens."""
    async with connect(guarded.url, user="all", password="pw") as js:  # noqa: S106 - a test's.
        stream = await js.streams.ensure(
            "S", subjects=["S.>"], allow_atomic=True, allow_batched=True
        )
        await stream.purge()
    async with connect(guarded.url, user="narrow", password="pw") as js:  # noqa: S106 - a test's.
        listeners = set(js._client._state._listeners)  # pyright: ignore[reportPrivateUsage]
        yield js, await js.streams.get("S")
        assert js._client._state._listeners == listeners  # pyright: ignore[reportPrivateUsage]


async def together(js: JetStream, *subjects: str) -> BatchAck:
    messages = [prepare(each, b"x") for each in subjects]
    return await store_together(js._api, "S", messages, timeout=5)  # pyright: ignore[reportPrivateUsage]


async def test_a_first_message_that_is_not_allowed_ends_the_batch(guarded: NatsServer) -> None:
    async with opened(guarded) as (js, stream):
        denied: list[ConnectionEvent] = []
        unlisten = js._client.listen(denied.append)  # pyright: ignore[reportPrivateUsage]
        async with stream.batch() as first:
            with pytest.raises(PermissionDeniedError):
                await first.add("S.closed", b"x")
        await js.core.flush()
        assert len(denied) == 1  # Nobody is asked to forget what nobody took.
        unlisten()


async def test_a_message_that_is_not_allowed_is_named_by_what_ends_the_batch(
    guarded: NatsServer,
) -> None:
    async with opened(guarded) as (js, stream):
        async with stream.batch() as later:
            await later.add("S.open", b"x")
            await later.add("S.closed", b"x")
            with pytest.raises(PermissionDeniedError, match=r"batch into S: .*S\.closed") as told:
                await later.commit()
            assert "publish S.closed" in told.value.hint
            assert told.value.detail == "nothing of the batch is stored"
            with pytest.raises(UsageError) as over:
                await later.add("S.open", b"x")
            assert "S.closed" in over.value.detail
        async with stream.batch() as again:
            await again.add("S.open", b"x")
            await again.add("S.closed", b"x")
            await js.core.flush()
            with pytest.raises(PermissionDeniedError, match=r"S\.closed") as told:
                await again.add("S.closed", b"x")
            assert told.value.index is None
        async with stream.batch() as long:
            for number in range(249):
                await long.add("S.closed" if number == 1 else "S.open", b"x")
            with pytest.raises(PermissionDeniedError, match=r"S\.closed"):
                await long.add("S.open", b"x")  # It asks for an answer.
        with pytest.raises(PermissionDeniedError, match=r"S\.closed"):
            await together(js, "S.open", "S.closed", "S.open")
        assert (await stream.info()).state.messages == 0


async def test_what_is_denied_beside_a_batch_is_no_fault_of_it(guarded: NatsServer) -> None:
    async with opened(guarded) as (js, stream):
        async with stream.batch() as good:
            await good.add("S.open", b"x")
            await js.core.publish("T.closed", b"x")
            await js.core.flush()
            await good.add("S.open", b"x")
            assert (await good.commit()).count == 2
        assert (await together(js, "S.open", "S.open")).count == 2


async def test_a_subject_that_is_not_allowed_ends_an_ingest(guarded: NatsServer) -> None:
    async with opened(guarded) as (_, stream):
        async with stream.ingest() as began:
            with pytest.raises(BatchBrokenError) as caught:
                await began.send("S.closed", b"x")
        async with stream.ingest() as fast:
            await fast.send("S.open", b"1")
            await fast.send("S.closed", b"2")
            report = await fast.close()

    assert isinstance(caught.value.__cause__, PermissionDeniedError)
    assert (report.stored, report.unknown) == (1, ())
