"""Integration tests of pulls without async."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import blocking

if TYPE_CHECKING:
    from natsstream.testing import NatsServer


@pytest.mark.smoke
def test_pulls_and_verdicts_without_async(server: NatsServer, stream_name: str) -> None:
    with blocking.connect(server.url) as js:
        stream = js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        for number in range(20):
            js.publish(f"{stream_name}.0", b"%d" % number)
        worker = stream.consumers.create("work")
        batch = worker.fetch(3)
        for message in batch:
            message.ack()
        one = worker.next()
        assert one is not None
        with one.processing() as same:
            assert same.sequence == 4
        with worker.consume(stop_after=10) as messages:
            found = [(message.sequence, message.ack(confirm=True)) for message in messages]

        assert batch.complete
        assert [sequence for sequence, _ in found] == list(range(5, 15))
        assert worker.next(timeout=2) is not None
        assert worker.info().num_ack_pending == 1
