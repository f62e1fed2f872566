"""The streams and buckets that are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

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


def checksum_of(stream: str, count: int) -> int:
    """Return the sum that a subject has after it looked at the first messages of a stream.

    Each message counts its sequence, the lengths of its subject and its data, and 1 for its time.
    """
    subjects = sum(len(f"{stream.lower()}.{number % 500}") for number in range(count))
    return count * (count + 1) // 2 + subjects + count * (PAYLOAD_BYTES + 1)


async def make_empty(url: str, stream: str, **fields: Unpack[ns.StreamFields]) -> None:
    """Create an empty stream, with fields of `StreamConfig`; delete an existing one first."""
    async with ns.connect(url) as js:
        if stream in [name async for name in js.streams.names()]:
            await js.streams.delete(stream)
        await js.streams.create(stream, **{"subjects": [f"{stream}.>"], **fields})


def key_of(number: int) -> str:
    """Return a key of a bucket."""
    return f"bench.{number % 100}.{number}"


async def fill_bucket(url: str, bucket: str, *, keys: int, revisions: int = 1) -> None:
    """Make a bucket with `keys` keys and `revisions` revisions of each."""
    async with ns.connect(url) as js:
        await js.kv.ensure(bucket, history=revisions)
        value = b"x" * PAYLOAD_BYTES
        # As a put writes them, with many messages in flight.
        async with js.publisher() as publisher:
            for number in range(keys * revisions):
                await publisher.send(f"$KV.{bucket}.{key_of(number % keys)}", value)
