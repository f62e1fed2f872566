"""The stream of a core stream on a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.conat.configuration import Configuration, check_stream
from natsstream.conat.names import StreamNames
from natsstream.errors import NoRespondersError

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_servers_keep_the_configuration_of_a_core_stream(
    js: JetStream, stream_name: str
) -> None:
    names = StreamNames(f"hub/{stream_name}")
    config = Configuration(max_msgs=3, max_age=50, max_bytes=9, max_msg_size=100, desc={"a": "é"})
    stream = await js.streams.create(config.to_stream(names, ephemeral=True))
    try:
        held = (await stream.info()).config
        check_stream(names, held)
        assert Configuration.from_stream(held) == config
        changed = config.merged({"max_msgs": -1, "max_age": 0, "discard_policy": "new"})
        await js.streams.update(changed.to_stream(names, ephemeral=True, metadata=held.metadata))
        assert Configuration.from_stream((await stream.info()).config) == changed
    finally:
        await js.streams.delete(names.stream)


async def test_stored_messages_are_copied_to_the_feed_and_never_to_control(
    js: JetStream, stream_name: str
) -> None:
    names = StreamNames(f"hub/{stream_name}")
    await js.streams.create(Configuration().to_stream(names, ephemeral=True))
    try:
        async with js.core.subscribe(names.feed_filter) as feed:
            for key in (None, "a", "x" * 500):
                await js.publish(names.subject_of(key), b"1")
                message = await feed.next(timeout=5)
                assert message is not None
                assert names.data_of(message.subject) == names.subject_of(key)
            with pytest.raises(NoRespondersError):
                await js.publish(names.control.replace(".f.", ".d."), b"1")
    finally:
        await js.streams.delete(names.stream)


async def test_native_limits_of_an_operator_stay_when_the_configuration_changes(
    js: JetStream, stream_name: str
) -> None:
    async with await js.core_stream(stream_name) as stream:
        names = StreamNames(f"hub/{stream_name}")
        await js.streams.update(names.stream, max_bytes=1_000_000)
        changed = await stream.config({"max_msgs": 5})
        held = (await (await js.streams.get(names.stream)).info()).config

        assert (changed.max_msgs, held.max_msgs, held.max_bytes) == (5, 5, 1_000_000)
