"""Every server version and every consumer: made, changed, paused and read, or refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import ConsumerConfig
from natsstream.api.features import CONSUMER_FIELDS
from natsstream.errors import (
    ConsumerExistsError,
    ConsumerNotFoundError,
    UnsupportedServerError,
)
from tests.compat.test_configs import CONSUMER_VALUES, has
from tests.support.pushing import fill_push, make_push, numbers, take_push
from tests.support.streams import change, consumer_count

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream
    from natsstream.streams.consumers.manager import ConsumerManager

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]


@pytest.mark.parametrize("path", CONSUMER_VALUES)
async def test_consumer_field_is_taken_or_refused(
    js: JetStream, line: tuple[int, int], stream_name: str, path: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    config = ConsumerConfig.from_json({"name": "c", **CONSUMER_VALUES[path]})
    needs = CONSUMER_FIELDS[path].needs

    if line >= needs:
        consumer = await stream.consumers.create(config)
        assert has(dict(consumer.cached.raw), path)
        return
    with pytest.raises(UnsupportedServerError, match=path) as caught:
        await stream.consumers.create(config)
    assert caught.value.needs == f"{needs[0]}.{needs[1]}"
    assert await consumer_count(stream) == 0


async def test_update_with_a_young_field_is_done_or_changes_nothing(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    stream = await js.streams.create(stream_name)
    await stream.consumers.create("c", ack_wait=5)
    fields: dict[str, Any] = {"priority_groups": ["g"], "priority_policy": "overflow"}

    if line >= (2, 11):
        consumer = await stream.consumers.update("c", ack_wait=6, **fields)
        assert consumer.cached.config.priority_groups == ("g",)
        return
    with pytest.raises(UnsupportedServerError, match="priority_groups"):
        await stream.consumers.update("c", ack_wait=6, **fields)
    assert (await stream.consumers.get("c")).cached.config.ack_wait == 5


CALLS: dict[str, tuple[tuple[int, int], Callable[[ConsumerManager], Awaitable[object]]]] = {
    "pause": ((2, 11), lambda consumers: consumers.pause("c", duration=60)),
    "resume": ((2, 11), lambda consumers: consumers.resume("c")),
    "unpin": ((2, 11), lambda consumers: consumers.unpin("c", group="g")),
    "reset": ((2, 14), lambda consumers: consumers.reset("c", sequence=1)),
}


@pytest.mark.parametrize("call", CALLS)
async def test_young_call_is_done_or_refused(
    js: JetStream, line: tuple[int, int], stream_name: str, call: str
) -> None:
    stream = await js.streams.create(stream_name)
    needs, ask = CALLS[call]
    young: dict[str, Any] = {"priority_groups": ["g"], "priority_policy": "pinned_client"}
    fields: dict[str, Any] = young if line >= (2, 11) else {}
    await stream.consumers.create("c", **fields)

    if line >= needs:
        await ask(stream.consumers)
        return
    with pytest.raises(UnsupportedServerError) as caught:
        await ask(stream.consumers)
    assert caught.value.needs == f"{needs[0]}.{needs[1]}"


@pytest.mark.proves("1c", "create strict / update strict / create-or-update")
async def test_create_update_and_ensure_keep_apart(js: JetStream, stream_name: str) -> None:
    consumers = (await js.streams.create(stream_name)).consumers

    with pytest.raises(ConsumerNotFoundError):
        await consumers.update("c", ack_wait=5)
    await consumers.create("c", ack_wait=5)
    with pytest.raises(ConsumerExistsError):
        await consumers.create("c", ack_wait=6)
    assert [(await consumers.ensure("c", ack_wait=n)).change.action for n in (5, 6)] == [
        "unchanged",
        "updated",
    ]
    assert [name async for name in consumers.names()] == ["c"]
    assert [info.config.ack_wait async for info in consumers.list()] == [6]
    await consumers.delete("c")


async def test_consumer_field_that_nobody_knows_is_refused(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    """Old servers make the consumer without the field, which is said; newer ones refuse."""
    stream = await js.streams.create(stream_name)

    with pytest.raises(UnsupportedServerError, match="not_yet_invented"):
        await stream.consumers.create("c", extra={"not_yet_invented": 1})

    assert await consumer_count(stream) == (1 if line < (2, 12) else 0)


@pytest.mark.finding(10)
async def test_update_sends_back_every_field_of_the_consumer(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    fields: dict[str, object] = {
        "name": "c",
        "durable_name": "c",
        "ack_policy": "explicit",
        "max_batch": 5,
        "max_expires": 2_000_000_000,
        "max_bytes": 6,
    }
    for path in ("metadata", "priority_timeout"):
        if line >= CONSUMER_FIELDS[path].needs:
            fields |= CONSUMER_VALUES[path]
    await change(
        js,
        f"CONSUMER.CREATE.{stream_name}.c",
        {"stream_name": stream_name, "config": fields, "action": "create"},
    )
    before = cast("dict[str, object]", (await stream.consumers.get("c")).cached.raw["config"])

    after = (await stream.consumers.update("c", description="new")).cached.raw

    assert after["config"] == {**before, "description": "new"}
    assert not fields.keys() - before.keys()


async def test_push_consumer_is_read(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    consumer = await make_push(stream)
    await fill_push(js, stream, 500, size=5_000)

    async with consumer.subscribe() as messages:
        found = await take_push(messages, 500)

    assert numbers(found) == list(range(1, 501))
