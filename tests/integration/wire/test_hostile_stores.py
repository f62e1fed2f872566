"""Stored text of a hostile client, and its readers: typed errors, and no wrong command.

The messages are written by a plain socket, so no library has looked at them.
"""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import natsstream as ns
from tests.support.hostile import HOSTILE, INJECTION, check_sent
from tests.support.raw_nats import request
from tests.support.strict import StrictProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(240)]

WAIT_S = 2.0
NAMES = [text for text in HOSTILE if text != "\ud800"]


async def store(port: int, subject: str, payload: bytes = b"", headers: bytes = b"") -> bool:
    """Store a message; False where the server takes no such subject or headers."""
    with suppress(OSError):
        answer = await asyncio.to_thread(
            request, port, subject, payload, headers=headers, timeout_s=0.5
        )
        return "error" not in answer
    return False


async def drive(proxy: StrictProxy, what: str, call: Callable[[], Any]) -> None:
    """Do what a user does; an error of another type, or a wait without an end, is the test's."""
    with suppress(ns.NatsStreamError):
        try:
            async with asyncio.timeout(20):
                await use(call())
        except TimeoutError as error:
            raise AssertionError(f"{what} hangs") from error
    check_sent(proxy, what)


async def use(made: Any) -> None:
    if hasattr(made, "__aenter__"):
        async with made as inside:
            if hasattr(inside, "initial"):
                await use(inside.initial())
            else:
                await use(inside.read())
    elif hasattr(made, "__aiter__"):
        async for _ in made:
            pass
    else:
        await made


def meta(**fields: Any) -> bytes:
    said = {"name": "o", "bucket": "O", "nuid": "N", "size": 3, "chunks": 1}
    return json.dumps({**said, **fields}).encode()


def metas() -> Iterator[tuple[str, bytes]]:
    """Yield names and what is stored of them."""
    for text in HOSTILE:
        yield "o", meta(nuid=text)
        yield "o", meta(name=text, bucket=text, digest=text)
        yield "o", meta(options={"link": {"bucket": text, "name": "o"}})
        yield "o", meta(options={"link": {"bucket": "O", "name": text}})
        yield "o", meta(options={"link": {"bucket": text}})
        yield "o", meta(headers={text: [text]}, metadata={text: text}, description=text)
    wrongs: list[object] = [5, [[]], "x", -1]
    for wrong in wrongs:
        for field in ("nuid", "size", "chunks", "digest", "options", "headers", "mtime", "deleted"):
            yield "o", meta(**{field: wrong})
        yield "o", meta(options={"link": wrong, "max_chunk_size": wrong})
    for body in (b"", b"null", b"5", b"\xff", b"[" * 50_000, b'{"size": ' + b"9" * 6_000 + b"}"):
        yield "o", body
    for name in NAMES:
        yield name, meta(name=name)


def calls_of(box: ns.ObjectStore, name: str) -> dict[str, Callable[[], Any]]:
    return {
        "info": lambda: box.info(name),
        "get": lambda: box.get(name),
        "open": lambda: box.open(name),
        "range": lambda: box.open(name, offset=1, length=1),
        "list": box.list,
        "names": box.names,
        "watch": box.watch,
        "link": lambda: box.link("linked", name),
        "update": lambda: box.update(name, description="d"),
        "sweep": lambda: box.sweep(older_than=0),
        "rename": lambda: box.rename(name, "renamed"),
        "delete": lambda: box.delete(name),
        "put": lambda: box.put(name, b"new"),
    }


@pytest.mark.sampled
async def test_no_object_that_another_has_stored_writes_a_command(
    fresh_server: NatsServer,
) -> None:
    port = fresh_server.port
    async with StrictProxy(port) as proxy, ns.connect(proxy.url, request_timeout=WAIT_S) as js:
        box = await js.objects.ensure("O")
        await box.put("kept", b"kept")
        for name, body in metas():
            subject = f"$O.O.M.{base64.urlsafe_b64encode(name.encode()).decode()}"
            for what in calls_of(box, name):
                if what in {"info", "rename", "delete", "put"}:  # Each changes what is stored.
                    await store(port, subject, body)
                await drive(proxy, f"{what} of {body[:200]!r}", calls_of(box, name)[what])
        # Subjects that no client writes.
        for token in ("_", "a*", "*", ">", "=", "AA==.b", "x" * 3_000):
            await store(port, f"$O.O.M.{token}", meta())
        for what in ("list", "names", "watch", "sweep"):
            await drive(proxy, what, calls_of(box, "o")[what])
        assert await box.get("kept") == b"kept"


BLOCKS = [
    b"NATS/1.0\r\nKV-Operation: " + each + b"\r\n\r\n"
    for each in (b"", b"del", b"DEL\0", b"PURGE DEL", b"\xff\xfe", b"x" * 5_000, b"DEL\nPUB y 0")
] + [
    b"NATS/1.0\r\nNats-Msg-Id: \xff\x00\t a\nb\r\n\r\n",
    b"NATS/1.0\r\nNats-Marker-Reason: \xff\r\nNats-TTL: x\r\n\r\n",
    b"NATS/1.0\r\nNats-Schedule-Target: " + INJECTION.split("\r\n")[0].encode() + b"\r\n\r\n",
    b"NATS/1.0\r\nNats-Scheduler: a b\r\nNats-Schedule-Next: \xff\r\n\r\n",
    b"NATS/1.0\r\nNats-Subject: a b\r\nNats-Stream: a.>.b\r\nNats-Sequence: x\r\n\r\n",
    b"NATS/1.0\r\nNats-Time-Stamp: 9\r\nNats-Num-Pending: -1\r\nNats-Last-Sequence: 1e9\r\n\r\n",
    b"NATS/1.0\r\nDead-Letter-Subject: a b\r\nDead-Letter-Stream: a.>.b\r\n\r\n",
    b"NATS/1.0\r\nDead-Letter-Headers: " + base64.b64encode(b"NATS/1.0\r\nA: b") + b"\r\n\r\n",
    b"NATS/1.0\r\nDead-Letter-Subject: orders.*\r\nDead-Letter-Time: x\r\n\r\n",
    b"NATS/1.0\r\nObject-Renamed-To: x\r\nObject-Renamed-From: \xff\r\n\r\n",
    b"NATS/1.0\r\nChain-Count: x\r\nChain-Hash: \xff\r\nChain-Writer: a b\r\n\r\n",
    b"NATS/1.0 503\r\n\r\n",
    b"NATS/1.0 100 x\r\nNats-Consumer-Stalled: a b\r\n\r\n",
    b"NATS/1.0\r\n: x\r\nno colon\r\n a: b\r\nA:\r\n\r\n",
    b"NATS/1.0\r\nA: b\nc\rd\r\n\r\n",
    b"NATS/1.0\r\nA: b",
    b"NATS/1.0\r\nA: b\r\n\r\nB: c\r\n\r\n",
    b"HTTP/1.1\r\nA: b\r\n\r\n",
    b"\r\n\r\n",
]
TOKENS = ["a", "*", ">", "a.*", "a*", "\u20ac", "\x01", "\x7f", "\\", "x" * 3_000]


async def fail(_: object) -> None:
    raise RuntimeError(INJECTION)


def is_busy(info: ns.ConsumerInfo) -> bool:
    return bool(info.num_pending or info.num_ack_pending)


async def work(stream: ns.Stream, *, dead_letter: str) -> None:
    """Let every message die into the dead letters."""
    consumer = await stream.consumers.ensure("dying", max_deliver=1, ack_wait=30)
    working = asyncio.ensure_future(consumer.run(fail, dead_letter=dead_letter))
    with suppress(TimeoutError):
        async with asyncio.timeout(10):
            while not working.done() and is_busy(await consumer.info()):
                await asyncio.sleep(0.02)
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def of_each(items: AsyncIterator[Any], act: Callable[[Any], Awaitable[object]]) -> None:
    async for item in items:
        with suppress(ns.NatsStreamError):
            await act(item)


async def republish(stream: ns.Stream, js: ns.JetStream) -> None:
    """Send each message again, with its headers, under another subject and under its own."""
    async for message in stream.read():
        for subject in ("again.a", f"again.{message.subject}"):
            with suppress(ns.NatsStreamError):
                await js.publish(subject, message.data, headers=message.headers)


async def test_no_message_that_another_has_stored_writes_a_command(
    fresh_server: NatsServer, tmp_path: Path
) -> None:
    port = fresh_server.port
    async with (
        StrictProxy(port) as proxy,
        ns.connect(proxy.url, request_timeout=WAIT_S) as js,
    ):
        stream = await js.streams.ensure("ORDERS", subjects=["orders.>"], allow_direct=True)
        await js.streams.ensure("AGAIN", subjects=["again.>"], allow_msg_schedules=True)
        bucket = await js.kv.ensure("K", history=3)
        await bucket.put("kept", b"kept")
        letters = await js.dead_letters.ensure("DLQ", stream="ORDERS")
        for root in ("orders.", "$KV.K.", "$DLQ.DLQ.ORDERS.c.1.1.", "$DLQ.DLQ.ORDERS.c.1."):
            for number, block in enumerate(BLOCKS):
                await store(port, f"{root}{number}", b"body", block)
            for token in TOKENS:
                await store(port, f"{root}{token}", b"body")
                await store(port, f"{root}{token}", b"", BLOCKS[1])
        for token in TOKENS:
            await store(port, f"$DLQ.DLQ.{token}.{token}.1.1", b"body", BLOCKS[11])
            told = {"stream": token, "consumer": token, "stream_seq": 1, "deliveries": 1}
            subject = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{token}.{token}"
            await store(port, subject, json.dumps(told).encode())
        calls: dict[str, Callable[[], Any]] = {
            "read": stream.read,
            "direct": lambda: stream.direct.get(1),
            "latest": stream.latest,
            "republish": lambda: republish(stream, js),
            "copy": lambda: js.streams.copy("ORDERS", "COPY", messages=True, subjects=["c.>"]),
            "work": lambda: work(stream, dead_letter="DLQ"),
            "letters": letters.list,
            "replay": lambda: of_each(letters.list(), letters.replay),
            "replay elsewhere": lambda: of_each(
                letters.list(), lambda letter: letters.replay(letter, to="again.a")
            ),
            "drop": lambda: of_each(letters.list(), letters.drop),
            "drop all": letters.drop_all,
            "keys": bucket.keys,
            "entries": bucket.entries,
            "history": bucket.history,
            "watch": bucket.watch,
            "cached": lambda: cached(bucket),
            "purge deletes": lambda: bucket.purge_deletes(older_than=0),
            "purge matching": lambda: bucket.purge_matching("9"),
            "backup": lambda: stream.backup(tmp_path / "backup"),
            "delete": stream.delete,
            "restore": lambda: js.streams.restore(tmp_path / "backup"),
        }
        for what, call in calls.items():
            await drive(proxy, what, call)
        kept = await bucket.get("kept")
        assert kept is not None
        assert kept.value == b"kept"


async def cached(bucket: ns.KeyValue) -> None:
    async with bucket.cached() as held:
        [key async for key in bucket.keys()]
        held.get("kept")


async def test_chunk_under_a_wildcard_takes_no_object_with_it_when_it_is_swept(
    fresh_server: NatsServer,
) -> None:
    """Servers store subjects with wildcards, which as a filter mean all others."""
    async with ns.connect(fresh_server.url) as js:
        box = await js.objects.ensure("O")
        await box.put("kept", b"kept")
        await js.publish("$O.O.C.gone", b"left over")
        for wide in ("*", ">"):
            assert await store(fresh_server.port, f"$O.O.C.{wide}", b"x")

        report = await box.sweep(older_than=0.000_001)

        assert await box.get("kept") == b"kept"
        assert (report.values, report.young) == (1, 0)


async def test_letter_under_a_wildcard_takes_no_note_with_it_when_it_is_dropped(
    fresh_server: NatsServer,
) -> None:
    async with ns.connect(fresh_server.url) as js:
        letters = await js.dead_letters.ensure("DLQ")
        note = "$DLQ.DLQ.ORDERS.c.1.1.replay"
        await js.publish(note, b"orders.a")
        assert await store(fresh_server.port, "$DLQ.DLQ.*.*.1.1", b"x")

        await letters.drop_all()

        queue = await js.streams.get("DLQ")
        assert await queue.get(last_by_subject=note) is not None
