"""What a new user does wrong: each mistake is told by a typed error that says what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream import errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


class Shop:
    """Two streams and two consumers to do something wrong with."""

    def __init__(self, js: ns.JetStream, orders: ns.Stream, pull: ns.Consumer) -> None:
        # Type checkers would refuse most of what is done here.
        self.js: Any = js
        self.orders: Any = orders
        self.pull: Any = pull

    async def push(self) -> Any:
        """Make a push consumer."""
        subject = f"deliver.{self.orders.name}"
        return await self.orders.consumers.ensure(
            "push", deliver_subject=subject, ack_policy="none"
        )

    async def enter(self, what: Any) -> None:
        """Enter a block and leave it."""
        async with what:
            pass

    async def second_worker(self) -> None:
        """Give a work queue a second consumer."""
        queue = f"{self.orders.name}_WORK"
        stream = await self.js.streams.ensure(queue, retention="workqueue")
        await stream.consumers.ensure("one")
        await stream.consumers.ensure("two")

    async def ack_twice(self) -> None:
        """Settle a message two times."""
        await self.js.publish(f"{self.orders.name}.a")
        message = await self.pull.next()
        await message.ack()
        await message.ack()

    async def batch(self) -> None:
        """Begin a batch on a stream without it."""
        async with self.orders.batch() as tx:
            await tx.add(f"{self.orders.name}.a")


MISTAKES: dict[str, tuple[type[errors.NatsStreamError], Callable[[Shop], Awaitable[object]]]] = {
    "stream-misspelt": (errors.StreamNotFoundError, lambda it: it.js.streams.get("ORDER")),
    "stream-name-empty": (errors.StreamNameError, lambda it: it.js.streams.get("")),
    "consumer-misspelt": (errors.ConsumerNotFoundError, lambda it: it.orders.consumers.get("x")),
    "field-misspelt": (errors.ConfigError, lambda it: it.js.streams.ensure("A", subject=["a"])),
    "choice-misspelt": (errors.ConfigError, lambda it: it.js.streams.ensure("A", retention="work")),
    "subjects-one-text": (errors.ConfigError, lambda it: it.js.streams.ensure("A", subjects="a")),
    "retention-changed": (
        errors.InvalidConfigError,
        lambda it: it.js.streams.ensure(it.orders.name, retention="workqueue"),
    ),
    "publish-without-a-stream": (errors.NoRespondersError, lambda it: it.js.publish("no.stream")),
    "publish-text": (errors.ConfigError, lambda it: it.js.publish("no.stream", "text")),
    "publish-to-a-wildcard": (errors.SubjectError, lambda it: it.js.publish("a.*")),
    "publish-to-nothing": (errors.SubjectError, lambda it: it.js.publish("")),
    "life-time-not-allowed": (
        errors.MessageRuleError,
        lambda it: it.js.publish(f"{it.orders.name}.a", ttl=5),
    ),
    "batch-not-allowed": (errors.BatchDisabledError, lambda it: it.batch()),
    "direct-not-allowed": (errors.ConfigError, lambda it: it.orders.direct.get(1)),
    "ack-twice": (errors.MessageSettledError, lambda it: it.ack_twice()),
    "second-consumer-on-a-work-queue": (errors.InvalidConfigError, lambda it: it.second_worker()),
    "subscribe-to-a-pull-consumer": (
        errors.UsageError,
        lambda it: it.enter(it.pull.subscribe()),
    ),
    "fetch-less-than-nothing": (errors.ConfigError, lambda it: it.pull.fetch(1, timeout=-1)),
    "handler-without-async": (errors.ConfigError, lambda it: it.pull.run(print)),
    "flow-without-a-block": (errors.UsageError, lambda it: anext(aiter(it.pull.consume()))),
    "publisher-without-a-block": (errors.UsageError, lambda it: it.js.publisher().send("a")),
    "dead-letters-misspelt": (errors.StreamNotFoundError, lambda it: it.js.dead_letters.open("D")),
    "step-down-without-a-cluster": (errors.ServerError, lambda it: it.orders.step_down()),
    "backup-onto-something": (errors.ConfigError, lambda it: it.orders.backup("/")),
}


@pytest_asyncio.fixture
async def shop(server: NatsServer, stream_name: str) -> AsyncIterator[Shop]:
    """A stream with a pull consumer."""
    async with ns.connect(server.url) as js:
        orders = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        yield Shop(js, orders, await orders.consumers.ensure("pull"))


@pytest.mark.sampled_variants
@pytest.mark.parametrize(("expected", "mistake"), MISTAKES.values(), ids=list(MISTAKES))
async def test_mistake_is_told_with_what_to_do_next(
    shop: Shop,
    expected: type[errors.NatsStreamError],
    mistake: Callable[[Shop], Awaitable[object]],
) -> None:
    with pytest.raises(expected) as told:
        await mistake(shop)

    assert told.value.hint
    assert told.value.hint in str(told.value)


@pytest.mark.parametrize("way", ["next", "fetch", "consume"])
async def test_pull_from_a_push_consumer_is_told_of_subscribe(shop: Shop, way: str) -> None:
    push = await shop.push()
    calls = {
        "next": push.next,
        "fetch": lambda: push.fetch(1),
        "consume": lambda: shop.enter(push.consume()),
    }

    with pytest.raises(errors.UsageError) as told:
        await cast("Awaitable[object]", calls[way]())

    assert "consumer.subscribe()" in told.value.hint


async def test_delay_that_can_not_be_is_named(shop: Shop) -> None:
    await shop.js.publish(f"{shop.orders.name}.a")
    message = await shop.pull.next()

    with pytest.raises(errors.ConfigError, match="delay: duration '5'"):
        await message.nak(delay="5")
    with pytest.raises(errors.ConfigError, match="delay: duration -1 is negative"):
        ns.Retry(delay=-1)

    await message.ack()


async def test_shown_objects_are_short_and_name_what_they_are_of(shop: Shop) -> None:
    name = f"{shop.orders.name}_LATER"
    later = await shop.js.streams.ensure(
        name, subjects=[f"{name}.>"], allow_msg_schedules=True, allow_msg_ttl=True
    )
    schedule = ns.Schedule.every(3600, target=f"{name}.do")
    await later.publish(f"{name}.when", b"x" * 10_000, schedule=schedule)

    (found,) = [each async for each in later.schedules.list()]

    assert repr(found) == (
        f"<ScheduledMessage 1 '{name}.when' '@every 3600s' to '{name}.do', 10000 bytes>"
    )
    assert repr(shop.js.streams.list()) == "<Listing of streams>"
    assert repr(shop.js.streams.list(subject="a.*")) == "<Listing of streams that capture a.*>"
