"""What a lying server is asked: the public calls that read answers, over one set of things.

The things are made by the truth; the calls change nothing that the others need.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from natsstream.errors import MessageNotFoundError, NatsStreamError, ServerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable
    from pathlib import Path

    from natsstream import JetStream

    Asked = Callable[[JetStream, Path], Awaitable[object]]

S = "LIED"
# Changed on the word of a liar, so nothing else stands on it.
SET = "LIED_SET"
MESSAGES = 6
_fresh = count()


async def make_things(js: JetStream, folder: Path) -> None:
    """Make all that is asked about."""
    stream = await js.streams.create(
        S, subjects=["lied.>"], allow_direct=True, allow_atomic=True, allow_batched=True
    )
    for number in range(MESSAGES):
        await js.publish(f"lied.{number % 3}", b"x" * number, headers={"A": "b"})
    await stream.delete_message(3)
    await stream.consumers.create("pull", ack_wait=30)
    await stream.consumers.create("group", priority_groups=["g"], priority_policy="pinned_client")
    await (await js.streams.create(SET, subjects=["set"])).consumers.create("set", ack_wait=30)
    await stream.consumers.create("push", deliver_subject="lied-push", idle_heartbeat=0.5)
    await js.streams.create("LIED_COUNTS", subjects=["n.>"], allow_msg_counter=True)
    await js.counters.incr("n.a", 5)
    await js.streams.create("LIED_LATER", subjects=["later.>"], allow_msg_schedules=True)
    bucket = await js.kv.ensure("lied", history=5, limit_marker_ttl=60)
    await js.kv.ensure("locks", limit_marker_ttl=60)
    await bucket.put("a", b"1")
    await bucket.put("a", b"2")
    await bucket.delete("b")
    box = await js.objects.ensure("lied")
    await box.put("o", b"z" * 300_000)
    await js.dead_letters.ensure("LIED_DLQ", stream=S)
    await stream.backup(folder / "backup")


async def _all(items: AsyncIterable[object], most: int = 50) -> list[str]:
    found: list[str] = []
    async for item in items:
        found.append(repr(item))
        _look(item)
        if len(found) >= most:
            break
    return found


def _look(item: object) -> None:
    """Read what a message reads when it is asked."""
    for name in ("sequence", "time", "time_ns", "subject", "headers", "ttl", "pending", "meta"):
        getattr(item, name, None)
    for name in ("delivered", "stored_bytes", "marker_reason", "created"):
        getattr(item, name, None)


async def account(js: JetStream, _: Path) -> object:
    return repr(await js.account())


async def stream_get(js: JetStream, _: Path) -> object:
    return repr(await (await js.streams.get(S)).info())


async def stream_details(js: JetStream, _: Path) -> object:
    stream = await js.streams.get(S)
    info = await stream.info(subjects=">", deleted_details=True)
    return [repr(info), await stream.subjects(), await stream.gaps()]


async def stream_lists(js: JetStream, _: Path) -> object:
    return [
        await js.streams.find("lied.1"),
        await _all(js.streams.names()),
        await _all(js.streams.list()),
    ]


async def stream_create(js: JetStream, _: Path) -> object:
    name = f"LIED_NEW_{next(_fresh)}"
    await js.streams.create(name, subjects=[name], description="x")
    return await js.streams.delete(name)


async def stream_ensure(js: JetStream, _: Path) -> object:
    held = await js.streams.ensure(SET, description=str(next(_fresh)), metadata={"a": "b"})
    return [repr(held), str(await js.streams.diff(SET, max_age=5, subjects=["other"]))]


async def stream_copy(js: JetStream, _: Path) -> object:
    return repr(await js.streams.copy(S, f"LIED_COPY_{next(_fresh)}", subjects=["copied"]))


async def stream_messages(js: JetStream, _: Path) -> object:
    stream = await js.streams.get(S)
    found = [await stream.get(1), await stream.get(last_by_subject=">")]
    for message in found:
        _look(message)
    return [*map(repr, found), await stream.purge(subject="lied.none")]


async def stream_delete_message(js: JetStream, _: Path) -> object:
    stream = await js.streams.get(S)
    with suppress(MessageNotFoundError):
        await stream.delete_message(3)
    return None


async def stream_step_down(js: JetStream, _: Path) -> object:
    stream = await js.streams.get(S)
    with suppress(ServerError):  # It stands alone.
        await stream.step_down(timeout=0.3)
    return None


async def direct(js: JetStream, _: Path) -> object:
    reads = (await js.streams.get(S)).direct
    found = [await reads.get(1), await reads.get(last_by_subject="lied.1")]
    for message in (*found, *(await reads.batch(5)).messages, *(await reads.latest()).messages):
        _look(message)
    return found


async def read(js: JetStream, _: Path) -> object:
    return await _all((await js.streams.get(S)).read())


async def read_columns(js: JetStream, _: Path) -> object:
    return (await (await js.streams.get(S)).read().to_arrow()).num_rows


async def ordered(js: JetStream, _: Path) -> object:
    async with (await js.streams.get(S)).ordered() as tail:
        return await _all(tail.initial())


async def latest(js: JetStream, _: Path) -> object:
    async with (await js.streams.get(S)).latest() as held:
        return await _all(held.initial())


async def publish(js: JetStream, _: Path) -> object:
    return await js.publish(f"lied.p.{next(_fresh)}", b"x")


async def publisher(js: JetStream, _: Path) -> object:
    async with js.publisher(ack_timeout=0.3) as sender:
        sent = [await sender.send("lied.p", b"x") for _ in range(3)]
    return [repr(each.exception()) for each in sent if each.done()]


async def retrying_publisher(js: JetStream, _: Path) -> object:
    async with js.publisher(ack_timeout=0.3, retry_for=0.5) as sender:
        sent = [await sender.send("lied.p", b"x") for _ in range(3)]
    return [repr(each.exception()) for each in sent if each.done()]


async def batch(js: JetStream, _: Path) -> object:
    async with (await js.streams.get(S)).batch() as sent:
        await sent.add("lied.b", b"1")
        await sent.add("lied.b", b"2")
        return await sent.commit("lied.b", b"3")


async def ingest(js: JetStream, _: Path) -> object:
    async with (await js.streams.get(S)).ingest(ack_timeout=0.5) as sent:
        for _number in range(5):
            await sent.send("lied.b", b"1")
        return await sent.close()


async def counters(js: JetStream, _: Path) -> object:
    stream = await js.streams.get("LIED_COUNTS")
    await stream.counters.incr("n.b", 1)
    return [await stream.counters.get("n.a"), await _all(js.counters.list("n.*"))]


async def schedules(js: JetStream, _: Path) -> object:
    held = (await js.streams.get("LIED_LATER")).schedules
    return [await held.get("later.a"), await _all(held.list()), await held.cancel("later.a")]


async def consumer_lists(js: JetStream, _: Path) -> object:
    consumers = (await js.streams.get(S)).consumers
    return [await _all(consumers.names()), await _all(consumers.list())]


async def consumer_ensure(js: JetStream, _: Path) -> object:
    consumers = (await js.streams.get(SET)).consumers
    held = await consumers.ensure("set", ack_wait=30, description=str(next(_fresh)))
    diff = await consumers.diff("set", ack_wait=7, filters=["lied.x"], metadata={"a": "b"})
    return [repr(await held.info()), str(diff)]


async def consumer_create(js: JetStream, _: Path) -> object:
    consumers = (await js.streams.get(S)).consumers
    made = await consumers.create(inactive_threshold=5)
    return await consumers.delete(made.name)


async def consumer_state(js: JetStream, _: Path) -> object:
    consumers = (await js.streams.get(S)).consumers
    paused = [await consumers.pause("push", duration=9), await consumers.resume("push")]
    return [*map(repr, paused), await consumers.reset("group")]


async def fetch(js: JetStream, _: Path) -> object:
    worker = await (await js.streams.get(S)).consumers.create(inactive_threshold=5)
    found = [*await worker.fetch(3, timeout=0.4), await worker.next(timeout=0.4)]
    for message in found:
        _look(message)
        if message is not None:
            await message.ack(confirm=True, timeout=0.4)
    return [repr(each) for each in found]


async def fetch_again(js: JetStream, _: Path) -> object:
    worker = await (await js.streams.get(S)).consumers.get("pull")
    found = await worker.fetch(2, timeout=0.4, max_bytes=100, no_wait=True)
    for message in found:
        await message.nak()
    return [repr(each) for each in found]


async def consume(js: JetStream, _: Path) -> object:
    worker = await (await js.streams.get(S)).consumers.create(inactive_threshold=5)
    async with worker.consume(expires=1, heartbeat=0.2) as messages:
        found: list[object] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(0.6):
                async for message in messages:
                    _look(message)
                    found.append(repr(message))
                    await message.ack()
                    if len(found) == MESSAGES - 1:
                        break
        return found


async def work(js: JetStream, _: Path) -> object:
    worker = await (await js.streams.get(S)).consumers.create(inactive_threshold=5)

    async def handle(message: Any) -> None:
        _look(message)

    with suppress(TimeoutError):
        async with asyncio.timeout(0.6):
            await worker.run(handle)
    return None


async def push(js: JetStream, _: Path) -> object:
    worker = await (await js.streams.get(S)).consumers.get("push")
    async with worker.subscribe() as messages:
        found: list[object] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(0.6):
                async for message in messages:
                    _look(message)
                    found.append(repr(message))
                    await message.nak()
                    if len(found) == 3:
                        break
        return found


async def kv_reads(js: JetStream, _: Path) -> object:
    bucket = await js.kv.get("lied")
    found = [await bucket.get("a"), await bucket.get("a", consistent=True), await bucket.get("b")]
    return [found, await _all(bucket.keys()), await _all(bucket.history("a")), bucket.config]


async def kv_writes(js: JetStream, _: Path) -> object:
    bucket = await js.kv.get("lied")
    key = f"k{next(_fresh)}"
    made = await bucket.create(key, b"1")
    return [await bucket.update(key, b"2", revision=made), await bucket.purge(key)]


async def kv_watch(js: JetStream, _: Path) -> object:
    bucket = await js.kv.get("lied")
    async with bucket.watch("a") as changes:
        return await _all(changes.initial())


async def kv_status(js: JetStream, _: Path) -> object:
    bucket = await js.kv.ensure("set", history=5, description=str(next(_fresh)))
    return [repr(await bucket.status()), await _all(js.kv.names()), await _all(js.kv.list())]


async def kv_lock(js: JetStream, _: Path) -> object:
    bucket = await js.kv.get("locks")
    async with bucket.lock(f"lock{next(_fresh)}", ttl=2, timeout=1) as held:
        return repr(held)


async def kv_cached(js: JetStream, _: Path) -> object:
    bucket = await js.kv.get("lied")
    async with bucket.cached("a", timeout=1) as held:
        return repr(held.get("a"))


async def object_reads(js: JetStream, _: Path) -> object:
    box = await js.objects.get("lied")
    async with box.open("o", offset=200_000, length=10) as part:
        some = await part.read()
    return [await box.info("o"), await _all(box.list()), len(await box.get("o") or b""), some]


async def object_writes(js: JetStream, _: Path) -> object:
    box = await js.objects.get("lied")
    name = f"o{next(_fresh)}"
    await box.put(name, b"z" * 200_000)
    await box.update(name, description="x")
    return await box.delete(name)


async def object_status(js: JetStream, _: Path) -> object:
    box = await js.objects.ensure("set", description=str(next(_fresh)))
    return [repr(await box.status()), repr(await box.sweep(dry_run=True))]


async def dead_letters(js: JetStream, _: Path) -> object:
    queue = await js.dead_letters.open("LIED_DLQ")
    return [repr(await queue.info()), await queue.count(), await _all(queue.list())]


async def backup(js: JetStream, folder: Path) -> object:
    return await (await js.streams.get(S)).backup(folder / f"b{next(_fresh)}", timeout=1)


async def restore(js: JetStream, folder: Path) -> object:
    name = f"LIED_BACK_{next(_fresh)}"
    return await js.streams.restore(folder / "backup", name=name, subjects=[name], timeout=1)


async def template(js: JetStream, _: Path) -> object:
    number = next(_fresh)
    made = js.streams.template(f"tmpl{number}.*", storage="memory")
    try:
        return await js.publish(f"tmpl{number}.a", b"x")
    finally:
        made.remove()


async def request(js: JetStream, _: Path) -> object:
    with suppress(NatsStreamError):
        await js.core.request("nobody", b"", timeout=0.2)
    return await js.core.rtt()


ASKED: dict[str, Asked] = {
    each.__name__: each
    for each in (
        *(account, stream_get, stream_details, stream_lists, stream_create, stream_ensure),
        *(stream_copy, stream_messages, stream_delete_message, stream_step_down, direct),
        *(read, read_columns, ordered, latest, publish, publisher, retrying_publisher, batch),
        *(ingest, counters, schedules, consumer_lists, consumer_ensure, consumer_create),
        *(consumer_state, fetch, fetch_again, consume, work, push, kv_reads, kv_writes, kv_watch),
        *(kv_status, kv_lock, kv_cached, object_reads, object_writes, object_status),
        *(dead_letters, backup, restore, template, request),
    )
}
