"""The streams that are read and written."""

from __future__ import annotations

from collections.abc import Mapping

import natsstream as ns

PAYLOAD_BYTES = 256


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
