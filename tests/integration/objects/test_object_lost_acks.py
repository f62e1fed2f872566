"""An ack that is lost leaves no doubt: the object is whole, and no chunk is left or missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import pytest

from natsstream import connect
from natsstream.testing import FaultProxy
from tests.support.chunked import held, some_bytes
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream.api.message import Message
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

OLD, NEW = some_bytes(300_001), some_bytes(200_002, seed=2)


@pytest.mark.parametrize("lost", ["ack", "message"])
async def test_a_put_whose_last_message_or_its_ack_is_lost_ends_well(
    server: NatsNode,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    lost: Literal["ack", "message"],
) -> None:
    """The line is cut behind the look at the old object: what follows is the new one's meta."""
    with FaultProxy(server.port) as proxy:
        async with connect(server.url) as direct, connect(proxy.url) as js:
            watched = await direct.objects.create(stream_name, storage="memory")
            await watched.put("a", OLD)
            box = await js.objects.get(stream_name)
            under = box._meta_store.stream  # pyright: ignore[reportPrivateUsage] - To cut at the place.
            look, is_cut = under.get, asyncio.Event()

            async def look_and_cut(
                sequence: int | None = None, *, last_by_subject: str | None = None
            ) -> Message | None:
                found = await look(sequence, last_by_subject=last_by_subject)
                if not is_cut.is_set():
                    if lost == "ack":
                        proxy.stall(direction="to_client")
                    else:
                        proxy.cut()
                    is_cut.set()
                return found

            monkeypatch.setattr(under, "get", look_and_cut)
            task = asyncio.create_task(box.put("a", NEW))
            await is_cut.wait()

            async def has_gone() -> bool:
                return await watched.get("a") == NEW if lost == "ack" else not js.is_connected

            await eventually_async(has_gone)
            assert not task.done()
            proxy.reset()
            proxy.heal()
            info = await task

            assert await watched.get("a") == NEW
            stream = await direct.streams.get(f"OBJ_{stream_name}")
            subjects = [name for name in await held(stream) if ".C." in name]
            assert subjects == [f"$O.{stream_name}.C.{info.nuid}"]
