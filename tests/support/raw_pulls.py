"""Pulling from consumers with raw requests, beside the library's own way."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream._wire.parser import Frame

_ACK_START = b"$JS.ACK."
# Only a hang takes this long.
_WITHIN_S = 30.0


async def pull(
    js: JetStream,
    stream: str,
    consumer: str,
    *,
    batch: int = 1,
    ack: bool = False,
    group: str = "",
) -> list[tuple[bytes, bytes]]:
    """Return the ack subject and payload of what a consumer has now, at most `batch` messages."""
    client = js._client  # pyright: ignore[reportPrivateUsage] - no other way to write raw requests.
    frames: list[Frame] = []
    done = asyncio.Event()

    def sink(more: list[Frame]) -> None:
        frames.extend(more)
        found = [frame for frame in frames if frame[1].startswith(_ACK_START)]
        if len(found) == batch or len(found) < len(frames):
            done.set()

    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, sink)
    body = {"batch": batch, "no_wait": True} | ({"group": group} if group else {})
    subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
    client.write(client.publish_command(subject, inbox, b"", json.dumps(body).encode()))
    async with asyncio.timeout(_WITHIN_S):
        await done.wait()
    subscription.close()
    found = [(frame[1], frame[3]) for frame in frames if frame[1].startswith(_ACK_START)]
    if ack:
        for reply, _ in found:
            await client.request(reply.decode(), b"+ACK", timeout=_WITHIN_S)
    return found
