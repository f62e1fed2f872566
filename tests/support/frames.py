"""Frames as a NATS server writes them, for tests that feed bytes instead of a socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from natsstream._wire.parser import Frame

# What must not confuse a parser that looks for lines: protocol words, line ends, whole frames.
NASTY = (
    b"",
    b"\r\n",
    b"\n",
    b"\r",
    b"PING\r\n",
    b"MSG x 1 5\r\nhello\r\n",
    b"\r\nMSG x 1 5\r\nhello\r\n\r\n",
    b"HMSG x 1 12 12\r\nNATS/1.0\r\n\r\n\r\n",
    b"-ERR 'Unknown Protocol Operation'\r\n",
    b"MSG x 1 99999999999\r\n",
    b"MSG x 1",
    b"\nMSG \nHMSG \n",
)


def msg(subject: bytes, sid: bytes, payload: bytes, *, reply: bytes = b"") -> bytes:
    """Return a frame without headers."""
    fields = [subject, sid, *([reply] if reply else []), str(len(payload)).encode()]
    return b"MSG " + b" ".join(fields) + b"\r\n" + payload + b"\r\n"


def hmsg(subject: bytes, sid: bytes, header: bytes, payload: bytes, *, reply: bytes = b"") -> bytes:
    """Return a frame with a header block."""
    sizes = [str(len(header)).encode(), str(len(header) + len(payload)).encode()]
    fields = [subject, sid, *([reply] if reply else []), *sizes]
    return b"HMSG " + b" ".join(fields) + b"\r\n" + header + payload + b"\r\n"


def ack(
    sequence: int,
    delivery: int,
    *,
    prefix: bytes = b"$JS.ACK.ORDERS.c1.1",
    time_ns: int = 1_700_000_000_123_456_789,
    pending: int = 0,
    suffix: bytes = b"",
) -> bytes:
    """Return an ack subject; the prefix goes up to the count of deliveries."""
    return b"%b.%d.%d.%d.%d%b" % (prefix, sequence, delivery, time_ns, pending, suffix)


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that a server says.

    Attributes:
        wire: Its bytes.
        sid: The subscription that it is for; empty for none.
        frame: What a sink gets for it; None when it is no message.
    """

    wire: bytes
    sid: bytes = b""
    frame: Frame | None = None


def message(
    subject: bytes, sid: bytes, payload: bytes, *, reply: bytes = b"", header: bytes = b""
) -> Piece:
    """Return a message, with a header block if one is given."""
    if header:
        wire = hmsg(subject, sid, header, payload, reply=reply)
    else:
        wire = msg(subject, sid, payload, reply=reply)
    return Piece(wire, sid, (subject, reply, header, payload))


payloads = st.one_of(
    st.sampled_from(NASTY),
    st.binary(max_size=40),
    st.lists(st.sampled_from(NASTY), max_size=4).map(b"".join),
)
subjects = st.sampled_from([b"a", b"orders.new", b"MSG", b"\xc3\xa4.\xff", b"$JS.x", b"a" * 300])
replies = st.sampled_from([b"", b"_INBOX.x.1", b"$JS.ACK.S.C.1.1.1.1700000000000000000.0"])
headers = st.sampled_from(
    [
        b"NATS/1.0\r\n\r\n",
        b"NATS/1.0\r\nA: b\r\n\r\n",
        b"NATS/1.0 503\r\n\r\n",
        b"NATS/1.0 404 No Messages\r\n\r\n",
        b"NATS/1.0 409 Batch Completed\r\nNats-Pending-Messages: 3\r\n\r\n",
        b"NATS/1.0\r\nMSG x 1 5: HMSG\r\n\r\n",
    ]
)


def messages(sids: st.SearchStrategy[bytes]) -> st.SearchStrategy[Piece]:
    """Return messages of some subscriptions, with and without reply and headers."""
    return st.builds(
        message,
        subjects,
        sids,
        payloads,
        reply=replies,
        header=st.one_of(st.just(b""), headers),
    )


others = st.sampled_from(
    [
        b"PING\r\n",
        b"PONG\r\n",
        b"+OK\r\n",
        b"-ERR 'Permissions Violation for Publish to \"a\"'\r\n",
        b'INFO {"server_id":"x","max_payload":1048576}\r\n',
    ]
).map(Piece)
