"""Consumers without async: the same calls and the same blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from natsstream.errors import ConsumerNotFoundError
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from natsstream.testing import NatsNode


@pytest.mark.smoke
def test_consumers_are_managed_and_read_without_async(server: NatsNode, stream_name: str) -> None:
    with blocking.connect(server.url) as js:
        stream = js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
        pulled = stream.consumers.ensure("pull", filters=[f"{stream_name}.a"])
        pushed = stream.consumers.ensure(
            "push", deliver_subject=f"deliver.{stream_name}", flow_control=True, idle_heartbeat=1
        )
        js.publish(f"{stream_name}.a", b"x")

        assert sorted(stream.consumers.names()) == ["pull", "push"]
        # A consumer learns of a message a moment after its publisher.
        eventually(
            lambda: {info.name: info.num_pending for info in stream.consumers.list()}["pull"] == 1
        )
        message = pulled.next(timeout=30)
        assert message is not None
        message.ack(confirm=True)
        with pushed.subscribe() as messages:
            for message in messages:
                message.ack(confirm=True)
                break
            assert messages.next(timeout=0.01) is None
        assert pushed.info().ack_floor.stream_seq == 1
        stream.consumers.delete("pull")
        with pytest.raises(ConsumerNotFoundError):
            pulled.info()
