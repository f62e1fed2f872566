"""A log has its messages in the order in which they were pushed, whatever fails meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.conat.names import StreamNames
from natsstream.errors import BatchDuplicateError, RequestTimeoutError, TooManyBatchesError
from natsstream.publish.batches.atomic import AtomicBatch
from natsstream.streams.stream import Stream
from natsstream.testing import FaultProxy, NatsServer, server_binary
from tests.support.conat_layers import heard, new_name, opened, until

if TYPE_CHECKING:
    from natsstream import DStream, JetStream, NatsStreamError
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

MANY = 10_000
"""More than a publisher has in flight at once."""


def stream_of(log: DStream) -> str:
    return StreamNames(f"hub/{log.name}").stream


async def test_connection_that_is_cut_while_many_are_saved(fresh_server: NatsServer) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with (
            connect(proxy.url, reconnect_timeout=60) as js,
            await js.dstream(new_name()) as log,
        ):
            changes = heard(log)
            log.push(*range(MANY))
            await until(lambda: len(changes) > MANY // 10)
            proxy.cut()
            proxy.heal()
            await log.save()
            assert log.core.get_all() == list(range(MANY))


@pytest.mark.parametrize("refusal", [BatchDuplicateError, TooManyBatchesError])
async def test_batch_that_the_server_refuses_goes_one_by_one(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch, refusal: type[NatsStreamError]
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise refusal("no")

    monkeypatch.setattr(AtomicBatch, "commit", refuse)
    async with opened("dstream", server, no_autosave=True) as [log]:
        log.push(*range(5))
        await log.save()
        assert log.core.get_all() == list(range(5))


async def test_nothing_is_stored_behind_a_message_that_has_failed(
    js: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, failures = new_name(), [RequestTimeoutError("no answer", retryable=True)]
    async with await js.dstream(name, no_autosave=True) as log:
        await js.streams.update(stream_of(log), allow_atomic=False)
    async with await js.dstream(name, no_autosave=True) as log:
        publish = Stream.publish

        async def fail_once(stream: Stream, subject: str, data: bytes, **options: Any) -> object:
            if data.endswith(b"c") and failures:
                raise failures.pop()
            return await publish(stream, subject, data, **options)

        monkeypatch.setattr(Stream, "publish", fail_once)
        log.push(*"abcde")
        await log.save()
        assert log.core.get_all() == ["a", "b"]
        assert log.unsaved_changes() == ["c", "d", "e"]
        await log.save()
        assert log.core.get_all() == [*"abcde"]


async def test_message_that_is_refused_holds_no_other_back(js: JetStream) -> None:
    async with await js.dstream(new_name(), no_autosave=True) as log:
        rejected: list[object] = []
        log.on("reject", lambda each: rejected.append(each.mesg))
        # The client does not know of it, so that the server refuses the batch.
        await js.streams.update(stream_of(log), max_msg_size=500)
        log.push("a", "b" * 1_000, "c")
        await log.save()
        assert log.core.get_all() == ["a", "c"]
        assert rejected == ["b" * 1_000]


@pytest.mark.needs_versions
async def test_server_without_batches_has_the_order_too() -> None:
    with NatsServer(binary=server_binary("2.11")) as old:
        async with connect(old.url) as js, await js.dstream(new_name()) as log:
            log.push(*range(50))
            await log.save()
            assert log.core.get_all() == list(range(50))
