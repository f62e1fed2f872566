"""The streams and buckets that are read and written."""

from __future__ import annotations

from collections.abc import Mapping

import natsstream as ns

PAYLOAD_BYTES = 256
KEYS = 1_000
"""Keys that are read and written one after the other; nats_js_kv.mjs has the same."""


async def fill(url: str, stream: str, count: int, headers: Mapping[str, str]) -> None:
    """Make a stream with messages of 256 bytes on 500 subjects."""
    async with ns.connect(url) as js:
        await js.streams.ensure(stream, subjects=[f"{stream.lower()}.>"])
        async with js.publisher() as publisher:
            for number in range(count):
                text = f'{{"id":{number:08d},"text":"'
                data = (text + "x" * (PAYLOAD_BYTES - len(text) - 2) + '"}').encode()
                subject = f"{stream.lower()}.{number % 500}"
                await publisher.send(subject, data, headers=headers)


async def make_empty(url: str, stream: str, **allowed: bool) -> None:
    """Make a stream anew, without messages, with what `allowed` names of `StreamConfig`."""
    async with ns.connect(url) as js:
        if stream in [name async for name in js.streams.names()]:
            await js.streams.delete(stream)
        await js.streams.create(stream, subjects=[f"{stream}.>"], **allowed)


def key_of(number: int) -> str:
    """Return a key of a bucket."""
    return f"bench.{number % 100}.{number}"


async def fill_bucket(url: str, bucket: str, *, keys: int, revisions: int = 1) -> None:
    """Make a bucket with so many keys, and so many revisions of each."""
    async with ns.connect(url) as js:
        await js.kv.ensure(bucket, history=revisions)
        value = b"x" * PAYLOAD_BYTES
        # As a put writes them, with many acks under way.
        async with js.publisher() as publisher:
            for number in range(keys * revisions):
                await publisher.send(f"$KV.{bucket}.{key_of(number % keys)}", value)
