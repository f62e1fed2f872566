"""What users write, and every type checker accepts."""

from __future__ import annotations

from datetime import timedelta

import natsstream as ns


async def streams(js: ns.JetStream, subjects: list[str]) -> ns.StreamInfo:
    orders = await js.streams.ensure("ORDERS", subjects=["orders.>"], max_age=timedelta(days=7))
    await js.streams.create("COPY", mirror={"name": "ORDERS"}, storage="memory", subjects=None)
    await js.streams.update(ns.StreamConfig(name="ORDERS", max_msgs=-1))
    change: ns.ConfigChange = await js.streams.diff("ORDERS", subjects=subjects, replicas=3)
    print(change.action)
    await js.streams.copy("ORDERS", "SHIPPED", subjects=("shipped.>",), max_bytes=1)
    await js.counters.ensure("COUNTS", subjects=["counts.>"])
    return await orders.info()


async def consumers(stream: ns.Stream) -> int:
    billing = await stream.consumers.ensure(
        "billing", filters=["orders.new"], ack_wait=30, backoff=[1, timedelta(minutes=1)]
    )
    await stream.consumers.create(deliver_policy="last", inactive_threshold=60)

    async def handle(message: ns.DeliveredMessage) -> None:
        print(message.data.decode(), message.delivered)

    async with billing.worker(handle, dead_letter="DLQ") as worker:
        await worker.drain()
    failure: ns.NatsStreamError | None = worker.report.failure
    print(failure)
    found = await billing.fetch(10)
    return len(found)


async def views(js: ns.JetStream) -> bytes:
    config = await js.kv.ensure("config", history=5, ttl=3600, sources=["other"])
    await js.objects.ensure("files", max_bytes=1 << 30, compression=True)
    await config.put("a", b"1")
    entry: ns.Entry[bytes] | None = await config.get("a")
    return b"" if entry is None else entry.value


async def through(js: ns.JetStream, **fields: object) -> None:
    options: ns.StreamFields = {"max_msgs": 3, "retention": "workqueue"}
    await js.streams.ensure("O", **options)
    async with js.publisher(retry_for=10) as publisher:
        future = await publisher.send("orders.new", b"1", headers={"a": "b"})
    ack: ns.PubAck = await future
    print(ack.sequence, fields)
    async for message in (await js.streams.get("O")).read(newest=10):
        print(message.sequence)
