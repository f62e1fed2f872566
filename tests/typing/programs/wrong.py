"""What users write by mistake; a type checker must refuse each line that says so."""

from __future__ import annotations

import natsstream as ns


async def streams(js: ns.JetStream) -> None:
    await js.streams.ensure("O", max_mgs=3)  # wrong: a misspelt field
    await js.streams.ensure("O", subjects="orders.>")  # wrong: a text for a list
    await js.streams.create("O", retention="work_queue")  # wrong: no such word
    await js.streams.update("O", max_age="1h")  # wrong: a text for seconds
    await js.streams.diff("O", replicas="3")  # wrong: a text for a number
    await js.streams.copy("O", "P", subject=["p"])  # wrong: a misspelt field
    await js.counters.ensure("O", allow_counter=True)  # wrong: a misspelt field


async def consumers(stream: ns.Stream) -> None:
    await stream.consumers.ensure("c", ackwait=3)  # wrong: a misspelt field
    await stream.consumers.create("c", filter_subject="a")  # wrong: the server's name
    await stream.consumers.update("c", ack_policy="all_of_them")  # wrong: no such word
    await stream.consumers.diff("c", filters="orders.new")  # wrong: a text for a list


async def views(js: ns.JetStream) -> None:
    await js.kv.ensure("b", histroy=3)  # wrong: a misspelt field
    await js.kv.create("b", ttl="1h")  # wrong: a text for seconds
    await js.objects.ensure("o", history=3)  # wrong: a bucket's field
    bucket = await js.kv.ensure("b")
    await bucket.put("a", "text")  # wrong: a text for bytes
    entry = await bucket.get("a")
    print(entry.value)  # wrong: there may be no entry


async def forgotten(js: ns.JetStream) -> None:
    js.kv.ensure("b").put("a", b"")  # wrong: not awaited
    with ns.connect() as other:  # wrong: needs async with
        print(other)
