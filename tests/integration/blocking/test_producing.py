"""A producer without async."""

from __future__ import annotations

from typing import TYPE_CHECKING

import natsstream.blocking

if TYPE_CHECKING:
    from natsstream.testing import NatsNode


def test_producer_stores_and_ends(server: NatsNode, stream_name: str) -> None:
    with natsstream.blocking.connect(server.url) as js:
        stream = js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        subject = f"{stream_name}.d"
        with js.producer(stream_name, "p", subject=subject, update_stream=True) as producer:
            for number in range(100):
                producer.append(b"%d" % number, checkpoint=number)
            producer.flush()
            assert (producer.epoch, producer.pending_count) == (0, 0)
        with js.producer(stream_name, "p", subject=subject) as producer:
            assert producer.recovered is not None
            assert producer.recovered.checkpoint == 99
            assert not producer.append_wait(b"100").duplicate
            closed = producer.close(b"101")
            assert closed.final_offset == producer.last_offset
        stored = [message.data for message in stream.read(first_seq=1, filters=[subject])]
        assert stored == [b"%d" % number for number in range(102)]


def test_connection_that_ends_stores_what_was_appended(server: NatsNode, stream_name: str) -> None:
    subject = f"{stream_name}.d"
    with natsstream.blocking.connect(server.url) as js:
        js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        producer = js.producer(stream_name, "p", subject=subject, update_stream=True)
        for number in range(1_000):
            producer.append(b"%d" % number)
    with natsstream.blocking.connect(server.url) as js:
        stored = js.streams.get(stream_name).read(first_seq=1, filters=[subject])
        assert [message.data for message in stored] == [b"%d" % number for number in range(1_000)]
