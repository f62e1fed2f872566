"""The page on permissions: each task runs with the rights of its row, and needs each of them."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import natsstream as ns
from natsstream.events import PermissionDenied
from natsstream.testing import NatsServer
from tests.docs.test_snippets import DOCS
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    Task = Callable[[ns.JetStream, Path], Coroutine[Any, Any, object]]

PAGE = DOCS / "guides" / "permissions.md"
BEFORE = "the rights of the row before"
LISTENS = "and subscribe to "
PASSWORD = "x"  # noqa: S105 - of the test.
FILE = bytes(300_000)


def rows() -> dict[str, list[str]]:
    """Return the rights of each task; those to subscribe begin with `LISTENS`."""
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for task, rights in re.findall(r"^\| ([`v].*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE):
        named = re.findall(rf"((?:{LISTENS})?)`([^`]+)`", rights)
        given = ["".join(each) for each in named]
        last = found[task] = [*last, *given] if BEFORE in rights else given
    return found


async def drain(messages: AsyncIterator[object]) -> None:
    """Read to the end."""
    async for _ in messages:
        pass


async def publish(js: ns.JetStream, _: Path) -> None:
    await js.publish("orders.new", b"x")
    async with js.publisher() as publisher:
        await publisher.send("orders.new", b"x")


async def publish_through_crashes(js: ns.JetStream, _: Path) -> None:
    async with js.publisher(retry_for=5) as publisher:
        await publisher.send("orders.new", b"x")


async def produce(js: ns.JetStream, _: Path) -> None:
    for _again in range(2):
        async with await js.producer("ORDERS", "import", subject="orders.new") as producer:
            producer.append(b"x")


async def close_producer(js: ns.JetStream, _: Path) -> None:
    async with await js.producer("ORDERS", "import", subject="orders.new") as producer:
        producer.append(b"x")
        await producer.close()


async def read(js: ns.JetStream, _: Path) -> None:
    stream = await js.streams.get("ORDERS")
    await drain(aiter(stream.read()))
    for filters in ([], ["orders.new"], ["orders.new", "orders.old"]):
        async with stream.ordered(filters=filters) as messages:
            await drain(messages.initial())
        async with stream.latest(filters=filters) as latest:
            await drain(latest.initial())


async def read_filtered(js: ns.JetStream, path: Path) -> None:
    await read(js, path)
    stream = await js.streams.get("ORDERS")
    for filters in (["orders.new"], ["orders.old"], ["orders.new", "orders.old"]):
        await drain(aiter(stream.read(filters=filters)))
        await drain(aiter(stream.read(newest=2, filters=filters)))
    async with aclosing(aiter(stream.read(until_closed=True))) as messages:
        await anext(messages)


async def read_times(js: ns.JetStream, path: Path) -> None:
    await read_filtered(js, path)
    stream, past = await js.streams.get("ORDERS"), datetime(2020, 1, 1, tzinfo=UTC)
    await drain(aiter(stream.read(start_time=past)))
    await drain(aiter(stream.read(end_time=past)))


async def get(js: ns.JetStream, _: Path) -> None:
    assert await (await js.streams.get("ORDERS")).get(1)


async def get_directly(js: ns.JetStream, _: Path) -> None:
    stream = await js.streams.get("ORDERS")
    assert await stream.direct.get(1)
    assert await stream.direct.get(last_by_subject="orders.new")


async def consume(js: ns.JetStream, _: Path) -> None:
    consumer = await (await js.streams.get("ORDERS")).consumers.get("billing")
    message = await consumer.next(timeout=5)
    assert message is not None
    await message.ack()

    async def handle(message: ns.DeliveredMessage) -> None:
        del message

    await consumer.run(handle, until_empty=True)


async def bury(js: ns.JetStream, _: Path) -> None:
    consumer = await (await js.streams.get("ORDERS")).consumers.get("billing")

    async def handle(message: ns.DeliveredMessage) -> None:
        raise ns.Reject(message.subject)

    async with consumer.worker(handle, dead_letter="ORDERS_DLQ") as worker:

        async def is_done() -> bool:
            report = worker.report
            return not worker.is_running or bool(report.dead_lettered or report.unstored)

        await eventually_async(is_done)


async def make_consumer(js: ns.JetStream, _: Path) -> None:
    await (await js.streams.get("ORDERS")).consumers.ensure("billing", ack_wait=33)


async def make_filtered_consumer(js: ns.JetStream, _: Path) -> None:
    consumers = (await js.streams.get("ORDERS")).consumers
    await consumers.ensure("billing", filters=["orders.new"])


async def write_keys(js: ns.JetStream, _: Path) -> None:
    kv = await js.kv.get("settings")
    revision = await kv.put("a", b"1")
    await kv.update("a", b"2", revision=revision)
    assert await kv.get("a")
    await kv.delete("a")
    await kv.create("a", b"3")


async def watch_keys(js: ns.JetStream, _: Path) -> None:
    kv = await js.kv.get("settings")
    async with kv.watch() as watch:
        await drain(watch.initial())
    async with kv.cached() as mirror:
        mirror.get("there")
    await drain(aiter(kv.keys()))
    await drain(aiter(kv.history("there")))


async def lock(js: ns.JetStream, _: Path) -> None:
    kv = await js.kv.get("locks")
    for _again in range(2):
        async with kv.lock("import", ttl=10):
            pass
    async with ns.connect(js.url, user="admin", password=PASSWORD) as other:
        await wait_for_lock(kv, await other.kv.get("locks"))
    async with kv.election("leader").lead():
        await anext(kv.election("leader").changes())


async def wait_for_lock(kv: ns.KeyValue, others: ns.KeyValue) -> None:
    """Take a lock that another holds until somebody waits for it."""

    async def take() -> None:
        async with kv.lock("busy", timeout=10):
            pass

    async with others.lock("busy", ttl=10):
        taking = asyncio.create_task(take())

        async def is_waiting() -> bool:
            return taking.done() or any([True async for _ in others.stream.consumers.names()])

        await eventually_async(is_waiting)
    await taking


async def get_object(js: ns.JetStream, path: Path) -> None:
    box = await js.objects.get("files")
    assert await box.get("there") == FILE
    await box.get_file("there", path / "out")
    await drain(aiter(box.names()))


async def put_object(js: ns.JetStream, _: Path) -> None:
    box = await js.objects.get("files")
    for _again in range(2):
        await box.put("mine", FILE)
    await box.delete("mine")


async def list_letters(js: ns.JetStream, _: Path) -> None:
    letters = await js.dead_letters.open("ORDERS_DLQ")
    await letters.count()
    await drain(letters.list())


async def replay_letters(js: ns.JetStream, _: Path) -> None:
    letters = await js.dead_letters.open("ORDERS_DLQ")
    found = [each async for each in letters.list()]
    await letters.replay(found[0])
    await letters.drop(found[1])


async def share_a_map(js: ns.JetStream, _: Path) -> None:
    for _again in range(2):  # Nothing is loaded of a map that is new.
        async with await js.dkv("map") as dkv:
            dkv["a"] = dkv.get("a", 0) + 1
            await dkv.save()


async def share_big_values(js: ns.JetStream, _: Path) -> None:
    for letter in "ab":
        async with await js.dkv("map") as dkv:
            dkv["big"] = letter * 2_000_000
            await dkv.save()
    async with await js.dkv("map") as dkv:
        assert dkv["big"]


async def ask(js: ns.JetStream, _: Path) -> None:
    with suppress(ns.errors.NoRespondersError):
        await js.core.request("questions", b"x", timeout=2)


async def respond(js: ns.JetStream, _: Path) -> None:
    async with (
        js.core.subscribe("questions") as questions,
        ns.connect(js.url, user="admin", password=PASSWORD) as asker,
    ):
        asking = asyncio.create_task(asker.core.request("questions", b"x", timeout=2))
        await (await anext(questions)).respond(b"y")
        with suppress(ns.errors.RequestTimeoutError):  # Without the right.
            await asking


async def publish_a_batch(js: ns.JetStream, _: Path) -> None:
    stream = await js.streams.get("ORDERS")
    async with stream.batch() as batch:
        await batch.add("orders.new", b"1")
        await batch.commit("orders.new", b"2")


async def purge(js: ns.JetStream, _: Path) -> None:
    await (await js.streams.get("ORDERS")).purge(subject="orders.none")


async def list_lags(js: ns.JetStream, _: Path) -> None:
    await (await js.streams.get("ORDERS")).consumers.lags()


async def back_up(js: ns.JetStream, path: Path) -> None:
    await (await js.streams.get("ORDERS")).backup(path / "backup")


async def restore(js: ns.JetStream, path: Path) -> None:
    await js.streams.restore(path / "backup")


async def make_stream(js: ns.JetStream, _: Path) -> None:
    await js.streams.ensure("ORDERS", subjects=["orders.>"], description="new")
    # It is there: the right to create is asked for by a name that is not.
    await js.streams.create("ORDERS", subjects=["orders.>"])


TASKS: dict[str, Task] = {
    "`js.publish`, `js.publisher()`": publish,
    "`js.publisher(retry_for=...)`": publish_through_crashes,
    '`js.producer("ORDERS", ...)`': produce,
    "`producer.close()`": close_producer,
    "`stream.read()`, `ordered()`, `latest()`": read,
    "`read(filters=...)`, `read(until_closed=True)`": read_filtered,
    "`read(start_time=)`, `read(end_time=)`": read_times,
    "`stream.get()`": get,
    "`stream.direct.get()`": get_directly,
    "`consumers.get()`, `next`, `fetch`, `consume`, `run`": consume,
    '`run(dead_letter="ORDERS_DLQ")`': bury,
    '`consumers.ensure("billing")`': make_consumer,
    '`consumers.ensure("billing", filters=["orders.new"])`': make_filtered_consumer,
    "`kv.get`, `put`, `create`, `update`, `delete`": write_keys,
    "`kv.watch`, `cached`, `keys`, `history`": watch_keys,
    "`kv.lock`, `kv.election`": lock,
    "`box.get`, `get_file`, `names`": get_object,
    "`box.put`, `put_file`, `delete`": put_object,
    "`dead_letters.open()`, `list`, `count`": list_letters,
    "`replay`, `drop` of letters": replay_letters,
    "`js.core_stream`, `js.dkv`, `js.dstream`": share_a_map,
    "values above `max_payload` in them": share_big_values,
    "`js.core.request`": ask,
    "`js.core.subscribe`, `message.respond`": respond,
    "`stream.batch()`": publish_a_batch,
    "`stream.purge()`": purge,
    "`consumers.lags()`": list_lags,
    "`stream.backup()`": back_up,
    "`js.streams.restore(folder)`": restore,
    '`js.streams.ensure("ORDERS", ...)`': make_stream,
}


def config(users: dict[str, list[str]]) -> str:
    """Return an account with an administrator and these users."""
    lines: list[str] = []
    for user, rights in users.items():
        listens = [each.removeprefix(LISTENS) for each in rights if each.startswith(LISTENS)]
        publishes = [each for each in rights if not each.startswith(LISTENS)]
        allowed = f"{{ publish: {[*publishes, 'other.>']}, subscribe: {[*listens, '_INBOX.>']} }}"
        may = allowed.replace("'", '"')
        lines.append(f"{{ user: {user}, password: {PASSWORD}, permissions: {may} }}")
    admin = f"{{ user: admin, password: {PASSWORD} }}"
    both = "\n".join([admin, *lines])
    return f"accounts {{ A {{ jetstream: enabled, users: [\n{both}\n] }} }}"


async def furnish(js: ns.JetStream) -> None:
    """Make what the page speaks of."""
    await js.streams.ensure(
        "ORDERS",
        subjects=["orders.>"],
        allow_direct=True,
        allow_atomic=True,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        metadata={"natsstream.control": "orders.$ctl.abcdefgh"},
    )
    stream = await js.streams.get("ORDERS")
    for _ in range(3):  # Large enough for a backup in several parts.
        await js.publish("orders.new", os.urandom(500_000))
    await stream.consumers.ensure("billing")
    await js.dead_letters.ensure("ORDERS_DLQ", stream="ORDERS")
    billing = await stream.consumers.get("billing")

    async def reject(message: ns.DeliveredMessage) -> None:
        raise ns.Reject(message.subject)

    await billing.run(reject, until_empty=True, dead_letter="ORDERS_DLQ")
    await js.publish("orders.new", b"x")
    message = await billing.next(timeout=5)
    assert message is not None
    await message.term(confirm=True)  # Its letter is the server's advisory, without a copy.
    for _ in range(3):
        await js.publish("orders.new", b"x")
    kv = await js.kv.ensure("settings", history=5)
    await kv.put("there", b"1")
    await js.kv.ensure("locks", limit_marker_ttl=10)
    with suppress(ns.errors.StreamNotFoundError):
        await js.core_stream.delete("map")
    box = await js.objects.ensure("files")
    await box.put("there", FILE)


def is_allowed_by(right: str, subject: str) -> bool:
    """Return True if a right, which may end in `>`, has a subject."""
    right = right.removeprefix(LISTENS)
    return subject == right or (right.endswith(">") and subject.startswith(right[:-1]))


async def prepare(js: ns.JetStream, task: Task, path: Path) -> None:
    """Make everything as it was."""
    await asyncio.to_thread(path.mkdir)
    for name in ("ORDERS", "ORDERS_DLQ"):
        with suppress(ns.errors.StreamNotFoundError):
            await js.streams.delete(name)
    await furnish(js)
    if task is restore:
        await back_up(js, path)
        await js.streams.delete("ORDERS")


async def denied(url: str, user: str, task: Task, path: Path) -> set[str]:
    """Run a task as a user; return what was denied."""
    found: set[str] = set()
    async with ns.connect(url, user=user, password=PASSWORD, request_timeout=2) as js:

        async def listen() -> None:
            async for event in js.events():
                if isinstance(event, PermissionDenied):
                    found.add(event.subject)

        listening = asyncio.create_task(listen())
        try:
            async with asyncio.timeout(20):
                await task(js, path)
        except ns.errors.NatsStreamError:
            assert user != "whole" or task is make_stream
        await js.core.flush()
        listening.cancel()
    return found


def test_every_task_of_the_page_is_run() -> None:
    assert sorted(rows()) == sorted(TASKS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: TASKS[task].__name__)
@pytest.mark.asyncio
async def test_task_needs_the_rights_of_its_row_and_no_other(task: str, tmp_path: Path) -> None:
    with NatsServer() as server:
        async with ns.connect(server.url) as js, await js.dkv("map"):
            core_id = (await anext(js.streams.names())).removeprefix("CN_")
    rights = [each.replace("<id>", core_id) for each in rows()[task]]
    users = {f"without{index}": [*rights] for index in range(len(rights))}
    for index, few in enumerate(users.values()):
        del few[index]
    with NatsServer(config=config({"whole": rights, **users})) as server:
        async with ns.connect(server.url, user="admin", password=PASSWORD) as js:
            await prepare(js, TASKS[task], tmp_path / "whole")
            assert await denied(server.url, "whole", TASKS[task], tmp_path / "whole") == set()
            for index, user in enumerate(users):
                await prepare(js, TASKS[task], tmp_path / user)
                subjects = await denied(server.url, user, TASKS[task], tmp_path / user)
                assert subjects, rights[index]
                assert any(is_allowed_by(rights[index], each) for each in subjects), subjects
