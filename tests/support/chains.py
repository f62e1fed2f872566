"""Chains of messages for integration tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from natsstream import JetStream, Message, Stream

KEY = b"0123456789abcdef0123456789abcdef"
Copy = tuple[str, dict[str, list[str]], bytes]


async def chain_of(
    js: JetStream, name: str, count: int = 6, *, key: bytes | None = KEY, **fields: Any
) -> Stream:
    """Return a stream with a chain of writer w1 on subjects `<name>.0` to `<name>.2`."""
    stream = await js.streams.ensure(name, subjects=[f"{name}.>"], **fields)
    async with stream.chained(writer="w1", key=key) as chain:
        for number in range(count):
            await chain.send(f"{name}.{number % 3}", b"%d" % number, headers={"N": str(number)})
    return stream


def copied(message: Message) -> Copy:
    """Return what another program needs to store a message again."""
    headers = {name: list(message.headers.all(name)) for name in message.headers}
    return message.subject, headers, message.data
