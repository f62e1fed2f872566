"""What users without async write by mistake; a type checker must refuse each marked line."""

from __future__ import annotations

from natsstream import blocking


def main(js: blocking.JetStream) -> None:
    js.streams.ensure("O", max_mgs=3)  # wrong: a misspelt field
    orders = js.streams.ensure("O", subjects="orders.>")  # wrong: a text for a list
    orders.consumers.ensure("c", ackwait=3)  # wrong: a misspelt field
    js.kv.ensure("b", histroy=3)  # wrong: a misspelt field
    js.objects.ensure("o", history=3)  # wrong: a bucket's field

    async def handle(message: blocking.DeliveredMessage) -> None:
        print(message)

    orders.consumers.ensure("c").consume(max_messages="3")  # wrong: a text for a number
    print(js.publish("a", b"").seqence, handle)  # wrong: a misspelt attribute
