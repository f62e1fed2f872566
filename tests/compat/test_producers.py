"""Producers on each server version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError, UnsupportedServerError

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

_TTL = (2, 11)
_ATOMIC = (2, 12)


async def test_exclusive_producer_works_everywhere(
    js: JetStream, nats_name: str, line: tuple[int, int]
) -> None:
    del line
    stream = await js.streams.ensure(nats_name, subjects=[f"{nats_name}.>"])
    for life in range(2):
        options = {"subject": f"{nats_name}.d", "mode": "exclusive", "update_stream": True}
        async with await js.producer(nats_name, "p", **options) as producer:  # pyright: ignore[reportArgumentType]
            for number in range(50):
                producer.append(b"%d" % (50 * life + number), checkpoint=number)
    stored = [m.data async for m in stream.read(first_seq=1, filters=[f"{nats_name}.d"])]
    assert stored == [b"%d" % number for number in range(100)]


async def test_old_server_refuses_shared_mode_naming_the_version(
    js: JetStream, nats_name: str, line: tuple[int, int]
) -> None:
    stream = await js.streams.ensure(nats_name, subjects=[f"{nats_name}.>"])
    opening = js.producer(nats_name, "p", subject=f"{nats_name}.d", update_stream=True)
    if line < _ATOMIC:
        with pytest.raises(UnsupportedServerError, match="exclusive") as caught:
            await opening
        version = f"{line[0]}.{line[1]}."
        assert caught.value.needs == "2.12"
        assert caught.value.version.startswith(version)
        assert version in str(caught.value)
        return
    async with await opening as producer:
        for number in range(100):
            producer.append(b"%d" % number)
    stored = [m.data async for m in stream.read(first_seq=1, filters=[f"{nats_name}.d"])]
    assert stored == [b"%d" % number for number in range(100)]


async def test_stream_whose_max_age_would_remove_the_state_is_refused(
    js: JetStream, nats_name: str, line: tuple[int, int]
) -> None:
    await js.streams.ensure(nats_name, subjects=[f"{nats_name}.>"], max_age=3_600)
    opening = js.producer(nats_name, "p", mode="exclusive", update_stream=True)
    if line < _TTL:
        with pytest.raises(ConfigError, match="max_age"):
            await opening
        return
    async with await opening as producer:
        await producer.append_wait(b"x", subject=f"{nats_name}.d")
