"""What users without async write, and every type checker accepts."""

from __future__ import annotations

from natsstream import blocking


def main() -> None:
    with blocking.connect("nats://127.0.0.1:4222") as js:
        orders = js.streams.ensure("ORDERS", subjects=["orders.>"], duplicate_window=120)
        billing = orders.consumers.ensure("billing", filters=["orders.new"], max_deliver=5)
        config = js.kv.ensure("config", history=5)
        js.objects.ensure("files", ttl=60)
        js.publish("orders.new", b"1").sequence.bit_length()

        def handle(message: blocking.DeliveredMessage) -> None:
            message.ack()

        with billing.worker(handle) as worker:
            worker.wait()
        entry = config.get("a")
        if entry is not None:
            print(entry.value.decode())
        for message in orders.read(newest=3):
            print(message.data.decode())
