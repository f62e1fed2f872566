"""Batches without async."""

from __future__ import annotations

import pytest

import natsstream.blocking
from natsstream.testing import NatsNode


@pytest.mark.smoke
def test_both_kinds_of_batches_work_without_async(server: NatsNode, stream_name: str) -> None:
    with natsstream.blocking.connect(server.url) as js:
        stream = js.streams.ensure(stream_name, allow_atomic=True, allow_batched=True)
        with stream.batch() as tx:
            tx.add(stream_name, b"1")
            ack = tx.commit(stream_name, b"2")
        with stream.ingest() as fast:
            fast.send(stream_name, b"3")
            fast.send_many((stream_name, b"%d" % n) for n in range(4, 2_001))
            report = fast.close()

        assert (ack.count, tx.outcome()) == (2, ack)
        assert (report.stored, report.first_seq, report.last_seq) == (1_998, 3, 2_000)
        assert [int(message.data) for message in stream.read(first_seq=1)] == list(range(1, 2_001))
