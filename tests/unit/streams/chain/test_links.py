"""Links: what their hash covers, and the walk that finds the first broken one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.headers import Headers, encode_headers
from natsstream.api.message import Message
from natsstream.streams.chain.links import (
    CHAIN_HEADERS,
    GENESIS,
    ChainHead,
    ChainLink,
    link_hash,
    read_link,
)
from natsstream.streams.chain.verify import ChainVerifier

KEY = b"k" * 32


def link(
    sequence: int,
    last: ChainHead,
    *,
    data: bytes = b"x",
    extra: dict[str, str] | None = None,
    key: bytes | None = KEY,
) -> tuple[Message, ChainHead]:
    """Return the next link of a writer and the head that it makes."""
    own = dict(extra or {})
    count = last.count + 1
    content = ("s.1", Headers(encode_headers(own)), data)
    mine = link_hash(last.writer, count, last.hash, content, key)
    values = (last.writer, str(count), last.hash, mine)
    own.update(zip((name.value for name in CHAIN_HEADERS), values, strict=True))
    message = Message((b"s.1", b"", encode_headers(own), data), (sequence, 0))
    return message, ChainHead(last.writer, count, mine, sequence)


def chain(count: int, writer: str = "w") -> list[Message]:
    """Return the first links of a writer."""
    head = ChainHead(writer)
    found: list[Message] = []
    for number in range(count):
        message, head = link(number + 1, head, data=b"%d" % number)
        found.append(message)
    return found


def test_hash_is_that_of_the_canonical_bytes() -> None:
    # Written out: another implementation has to come to the same bytes.
    headers = Headers(encode_headers({"B": "2", "A": ["1", "x"], "Nats-Expected-Stream": "S"}))
    parts = [
        b"natsstream-chain-1", b"sha256", b"w", b"1", b"0" * 64, b"s.1",
        b"3", b"A", b"1", b"A", b"x", b"B", b"2", b"payload",
    ]  # fmt: skip
    canonical = b"".join(len(part).to_bytes(8, "big") + part for part in parts)

    found = link_hash("w", 1, GENESIS, ("s.1", headers, b"payload"), None)

    assert found == hashlib.sha256(canonical).hexdigest()


@given(
    one=st.lists(st.binary(max_size=3), min_size=2, max_size=2),
    other=st.lists(st.binary(max_size=3), min_size=2, max_size=2),
)
def test_parts_can_not_flow_into_each_other(one: list[bytes], other: list[bytes]) -> None:
    def hashed(parts: list[bytes]) -> str:
        subject = parts[0].decode("utf-8", "surrogateescape")
        return link_hash("w", 1, GENESIS, (subject, Headers(), parts[1]), None)

    assert (hashed(one) == hashed(other)) == (one == other)


def test_key_changes_the_hash() -> None:
    content = ("s", Headers(), b"x")
    hashes = {link_hash("w", 1, GENESIS, content, key) for key in (None, KEY, b"j" * 32)}

    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"A": "1"}, None),
        ({"Chain-Writer": "w"}, "w"),
        ({"Chain-Hash": "0" * 64}, ""),
        ({"Chain-Writer": ["w", "v"]}, "w"),
        ({"Chain-Writer": "a b", "Chain-Count": "1"}, ""),
    ],
)
def test_headers_that_make_no_link(headers: dict[str, str], expected: str | None) -> None:
    assert read_link(Headers(encode_headers(headers))) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("Chain-Count", v) for v in ("0", "01", "-1", "1.0", "x", "9" * 40, "")]
    + [("Chain-Hash", v) for v in ("", "A" * 64, "0" * 63)]
    + [("Chain-Previous", "z" * 64)],
)
def test_values_that_no_link_has(name: str, value: str) -> None:
    good = {
        "Chain-Writer": "w",
        "Chain-Count": "1",
        "Chain-Previous": GENESIS,
        "Chain-Hash": GENESIS,
    }

    assert isinstance(read_link(Headers(encode_headers(good))), ChainLink)
    assert read_link(Headers(encode_headers({**good, name: value}))) == "w"


@given(st.lists(st.integers(0, 5), max_size=8))
def test_only_the_links_in_their_order_are_intact(order: list[int]) -> None:
    links = chain(6)
    verifier = ChainVerifier(KEY, None, {}, {})
    for place, index in enumerate(order):
        message = links[index]
        frame = (b"s.1", b"", message.headers.source, message.data)
        verifier.add(Message(frame, (place + 1, 0)))

    assert verifier.report().is_intact == (order == list(range(len(order))))


def test_first_break_of_each_writer_is_named_and_no_more() -> None:
    mine, theirs = chain(5), chain(4, "v")
    verifier = ChainVerifier(KEY, None, {}, {})
    for message in (mine[0], mine[1], theirs[0], mine[3], theirs[1], mine[4], theirs[3]):
        verifier.add(message)

    report = verifier.report()

    assert [(each.writer, each.sequence, each.kind) for each in report.breaks] == [
        ("w", 4, "missing"),
        ("v", 4, "missing"),
    ]
    assert {writer: head.count for writer, head in report.heads.items()} == {"w": 2, "v": 2}


def test_link_of_another_branch_is_named() -> None:
    # Two processes had the same writer id and key: each link is right by itself.
    first, head = link(1, ChainHead("w"))
    theirs, _ = link(2, head, data=b"theirs")
    _, mine = link(2, head, data=b"mine")
    after, _ = link(3, mine)
    verifier = ChainVerifier(KEY, None, {}, {})
    for message in (first, theirs, after):
        verifier.add(message)

    (broken,) = verifier.report().breaks
    assert (broken.sequence, broken.kind) == (3, "previous")


def test_message_whose_headers_are_none_belongs_to_no_chain() -> None:
    verifier = ChainVerifier(KEY, None, {}, {})

    assert verifier.add(Message((b"s", b"", b"garbage", b""), (1, 0))) is None
    assert verifier.report().unchained == 1


@pytest.mark.proves("1a", 'seal, deny_delete, deny_purge ("immutable sets")')
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"NATS/1.0\r\n", b"NATS/1.0 503 No funds\r\n"),
        (b"NATS/1.0\r\n", b"NATS/1.0\r\na line without a colon\r\n"),
        (b"NATS/1.0\r\n", b"NATS/1.0\r\n: a value without a name\r\n"),
        (b"\r\n\r\n", b"\r\n\r\nX: behind the end\r\n\r\n"),
        (b"Chain-Count: ", b"Chain-Count:  "),
        (b"NATS/1.0\r\n", b"NATS/1.0\r\nNats-Expected-Evil: 1\r\n"),
        (b"NATS/1.0\r\n", b"NATS/1.0\r\nNats-Stream-Sources: 1\r\n"),
    ],
)
def test_nothing_can_be_hidden_in_a_header_block(old: bytes, new: bytes) -> None:
    first, second, third = chain(3)
    block = second.headers.source
    assert block.count(old) == 1
    forged = Message((b"s.1", b"", block.replace(old, new), second.data), (2, 0))
    verifier = ChainVerifier(KEY, None, {}, {})

    found = [verifier.add(each) for each in (first, forged, third)]

    assert [each.sequence for each in found if each] == [2]


def test_headers_that_servers_change_when_they_copy_do_not_break_a_link() -> None:
    (only,) = chain(1)
    added = b"NATS/1.0\r\nNats-Expected-Stream: S\r\nNats-Stream-Source: S 1 > >\r\n"
    block = only.headers.source.replace(b"NATS/1.0\r\n", added)

    assert (
        ChainVerifier(KEY, None, {}, {}).add(Message((b"s.1", b"", block, only.data), (1, 0)))
        is None
    )
