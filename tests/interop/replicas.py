"""Reading a replicated stream with clients that ask whichever replica answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from natsstream.testing.monitoring import fetch_page
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from natsstream.testing import NatsNode

LIMIT_S = 30.0
PAUSE_S = 0.1


async def holds(check: Callable[[], Awaitable[None]], *, replicas: int) -> None:
    """Check once; on a cluster until it holds, since a replica may be a little behind its leader.

    Raises:
        AssertionError: What the check says, on a cluster after 30 s.
    """
    deadline = asyncio.get_running_loop().time() + LIMIT_S
    while replicas > 1 and asyncio.get_running_loop().time() < deadline:
        try:
            await check()
        except AssertionError:
            await asyncio.sleep(PAUSE_S)
        else:
            return
    await check()


async def settled(servers: Sequence[NatsNode], stream: str) -> None:
    """Wait until all servers hold the same of a stream that nobody changes.

    Some clients decide what they write by what any replica answers: one that lags behind lets them
    leave chunks behind, or take a deleted key for one that exists.
    """

    async def are_alike() -> bool:
        pages = [await asyncio.to_thread(_state, each.monitor_url, stream) for each in servers]
        return bool(pages[0]) and all(page == pages[0] for page in pages)

    assert await eventually_async(are_alike, within_s=LIMIT_S)


def _state(monitor_url: str, stream: str) -> object:
    """Return what a server's own replica of a stream holds; None when it has none."""
    page = fetch_page(monitor_url, "/jsz", acc="$G", streams="true")
    if page is None:
        return None
    for account in cast("list[dict[str, list[dict[str, object]]]]", page[1]["account_details"]):
        for found in account.get("stream_detail") or []:
            if found["name"] == stream:
                state = cast("dict[str, object]", found["state"])
                return [state[name] for name in ("messages", "bytes", "first_seq", "last_seq")]
    return None
