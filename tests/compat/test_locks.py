"""Every server version: locks work where keys can expire one by one, and elsewhere it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError, UnsupportedServerError, WrongRevisionError

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]

LOCKS_SINCE = (2, 11)


async def test_a_lock_is_held_and_its_guarded_writes_are_fenced(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    if line < LOCKS_SINCE:
        kv = await js.kv.create(stream_name)
        with pytest.raises(ConfigError, match="limit_marker_ttl") as refused:
            async with kv.lock("l"):
                pass
        assert "2.11" in refused.value.hint
        with pytest.raises(UnsupportedServerError) as unsupported:
            await kv.put_guarded("k", b"v", guard="l", revision=0)
        assert unsupported.value.needs == "2.11"
        assert await kv.get("k") is None
        return
    kv = await js.kv.create(stream_name, limit_marker_ttl=1)
    async with kv.lock("l", ttl=60) as lock:
        assert await lock.put("k", b"v") > lock.token
        zombie = lock.revision
    async with kv.lock("l", ttl=60, timeout=0) as later:
        assert later.token > lock.token
        with pytest.raises(WrongRevisionError):
            await kv.put_guarded("k", b"late", guard="l", revision=zombie)
    dead = await kv.create("l2", b"a dead holder's", ttl=1)
    async with kv.election("l2").lead(timeout=40) as term:
        assert term.token > dead
