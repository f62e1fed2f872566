"""Runs of messages of one consumer, as a server writes them, for whatever cuts them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from tests.support.frames import ack, headers, hmsg, msg, payloads

SID = b"7"
V1 = b"$JS.ACK.ORDERS.read-0123456789abcdef.1"
V2 = b"$JS.ACK.hub.jWkaCHBa.ORDERS.read-0123456789abcdef.1"
FORMS = [(V1, b""), (V2, b""), (V2, b".x8Hd"), (V2, b".1.2.3"), (b"$JS.ACK.9.9.1", b"")]
TIME_NS = 1_700_000_000_123_456_789

Run: TypeAlias = "tuple[tuple[bytes, bytes], Sequences, list[tuple[int, bytes, bytes, bytes]]]"

# Frames that end a run: another subscription, another consumer, a redelivery, a status, a ping.
STRANGERS = [
    b"PING\r\n",
    b"-ERR 'x'\r\n",
    msg(b"orders.new", b"8", b"x", reply=ack(5, 5)),
    msg(b"orders.new", SID, b"x"),
    msg(b"orders.new", SID, b"x", reply=b"_INBOX.abc.1"),
    msg(b"orders.new", SID, b"x", reply=ack(5, 5, prefix=b"$JS.ACK.ORDERS.other.1")),
    msg(b"orders.new", SID, b"x", reply=ack(5, 5, prefix=V1[:-1] + b"2")),
    msg(b"orders.new", SID, b"x", reply=ack(5, 5, prefix=b"$JS.ACK._.h.O.c.1")),
    hmsg(b"orders.new", SID, b"NATS/1.0 100 Idle Heartbeat\r\n\r\n", b""),
    hmsg(b"orders.new", SID, b"NATS/1.0 409 Batch Completed\r\n\r\n", b""),
]


@dataclass
class Sequences:
    """Numbers messages as a stream and its consumer do.

    Attributes:
        sequence: The last message's sequence in the stream.
        delivery: The last message's delivery.
    """

    sequence: int
    delivery: int

    def frame(
        self, gap: int, form: tuple[bytes, bytes], header: bytes, payload: bytes, subject: bytes
    ) -> bytes:
        """Return the next message's frame; `gap` sequences before it are missing."""
        self.sequence += 1 + gap
        self.delivery += 1
        reply = ack(
            self.sequence,
            self.delivery,
            prefix=form[0],
            suffix=form[1],
            time_ns=TIME_NS + self.sequence,
            pending=max(0, 2_000 - self.delivery),
        )
        if header:
            return hmsg(subject, SID, header, payload, reply=reply)
        return msg(subject, SID, payload, reply=reply)


# Payloads that look like what follows them.
IMPOSTORS = [
    start + msg(b"a", SID, b"x" * size, reply=ack(9, 9, prefix=V1)) + end
    for start in (b"", b"\r\n", b"x\r\n")
    for size in (0, 1, 300)
    for end in (b"", b"\r\n", b"x")
]

parts = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 0, 1, 89]),
        st.one_of(st.just(b""), headers),
        st.one_of(payloads, payloads, st.sampled_from(IMPOSTORS)),
        st.sampled_from([b"orders.new", b"a", b"MSG", b"HMSG", b"\xc3\xa4", b"o" * 90]),
    ),
    min_size=1,
    max_size=30,
)
# Starts just before the number of digits changes, which is where positions shift.
counters = st.builds(
    Sequences,
    st.sampled_from([0, 7, 8, 97, 98, 9_997, 99_998, 10**17 - 2]),
    st.sampled_from([0, 8, 98, 1_998]),
)
blocks = st.tuples(st.sampled_from([*FORMS, FORMS[0]]), counters, parts)


def build(block: Run) -> bytes:
    """Return the bytes of a generated run of messages."""
    form, counter, described = block
    numbers = dataclasses.replace(counter)
    return b"".join(
        numbers.frame(gap, form, header, payload, subject)
        for gap, header, payload, subject in described
    )
