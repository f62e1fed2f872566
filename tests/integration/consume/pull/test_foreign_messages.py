"""Messages that are not the server's, on a subject where a pull's answers come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from tests.support.liars import Told, lying
from tests.support.pulling import worker_of

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.mark.sampled_variants
@pytest.mark.parametrize("confirm", [False, True])
@pytest.mark.parametrize("reply", ["{}.forged", "{}." + "x" * 5_000], ids=["forged", "long"])
async def test_what_names_another_place_to_settle_is_not_settled_there(
    server: NatsServer,
    stream_name: str,
    reply: str,
    confirm: bool,  # noqa: FBT001 - a parameter.
) -> None:
    """Anybody may publish to an inbox, and choose the reply: an ack would go there in our name."""
    victim = f"{stream_name}_VICTIM"
    foreign = reply.format(victim).encode()

    def forge(told: Told) -> Told:
        is_second = told.kind == "delivery" and told.reply.split(b".")[5:6] == [b"2"]
        return replace(told, reply=foreign) if is_second else told

    async with connect(server.url) as js, lying(server.port) as liar:
        held = await js.streams.create(victim, subjects=[f"{victim}.>"])
        await worker_of(js, stream_name, 3)
        liar.lie = forge
        async with connect(liar.url) as through:
            worker = await (await through.streams.get(stream_name)).consumers.get("work")
            messages = await worker.fetch(3, timeout=0.5)
            for message in messages:
                await message.ack(confirm=confirm)

            assert through.is_connected
        assert [message.sequence for message in messages] == [1, 3]
        assert (await held.info()).state.messages == 0
