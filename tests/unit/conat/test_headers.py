"""The headers of a core stream's messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.headers import encode_headers
from natsstream.conat.headers import (
    HEADER_BYTES_MAX,
    TOMBSTONE_HEADERS,
    Blob,
    RecordHeaders,
    decode_record,
    header_values,
    is_tombstone,
    ttl_ms_of,
)
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import Encoding, encode_value
from natsstream.errors import CodecError, ConfigError, HeaderError

_BLOB = Blob("b1", 3, 300_000, bytes(range(32)))
_TEXT = st.text(max_size=8)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(_TEXT, each, max_size=3),
    max_leaves=8,
)
_BLOBS = st.builds(
    Blob, st.text("abc", min_size=1), st.integers(0, 9), st.integers(0, 2**53), st.binary()
)


def _block(*lines: str) -> bytes:
    return "\r\n".join(("NATS/1.0", *lines, "", "")).encode()


@given(
    encoding=st.sampled_from(Encoding),
    headers=st.none() | st.dictionaries(_TEXT, _VALUES, max_size=4),
    key=st.none() | _TEXT,
    ttl_ms=st.none() | st.integers(0, 10**12),
    blob=st.none() | _BLOBS,
)
def test_headers_come_back_and_are_ascii(
    encoding: Encoding,
    headers: dict[str, object] | None,
    key: str | None,
    ttl_ms: int | None,
    blob: Blob | None,
) -> None:
    values = header_values(encoding, headers=headers, key=key, ttl_ms=ttl_ms, blob=blob)
    block = encode_headers({**values, "Nats-TTL": "1"})
    read = RecordHeaders.parse(block)

    assert block.isascii()
    assert (read.encoding, read.user, read.key, read.blob) == (encoding, headers, key, blob)
    assert ttl_ms_of(block) == (1_000 if ttl_ms is None else ttl_ms)
    assert not is_tombstone(block)


def test_headers_of_a_message_on_the_wire() -> None:
    values = header_values(
        Encoding.JSON, headers={"foo": {"10": "é"}}, key="a\n", ttl_ms=25, blob=_BLOB
    )

    assert values == {
        "CN-Enc": "1",
        "CN-Hdr": '{"foo":{"10":"\\u00e9"}}',
        "CN-Key": '"a\\n"',
        "CN-TTL": "25",
        "CN-Blob": '{"id":"b1","n":3,"size":300000,"sha256":"' + bytes(range(32)).hex() + '"}',
    }


@pytest.mark.parametrize("more", [{}, {"a": 1}])
def test_a_tombstone_has_a_header_of_its_own_and_is_seen_in_the_users(more: dict[str, int]) -> None:
    values = header_values(Encoding.MSGPACK, headers={**TOMBSTONE_HEADERS, **more}, key="k")
    block = encode_headers(values)

    assert values["CN-Tombstone"] == "1"
    assert ("CN-Hdr" in values) == bool(more)
    assert is_tombstone(block)
    assert RecordHeaders.parse(block).user == {"CN-Tombstone": True, **more}
    assert decode_record(block, b"\xc0") is None


def test_a_header_that_only_speaks_of_tombstones_is_none() -> None:
    user = {"CN-Tombstone": False, "x": "\r\nCN-Tombstone: 1\r\nKV-Operation: DEL"}
    block = encode_headers(header_values(Encoding.MSGPACK, headers=user))

    assert not is_tombstone(block)
    assert RecordHeaders.parse(block).user == user


def test_undefined_headers_are_dropped() -> None:
    values = header_values(Encoding.MSGPACK, headers={"a": UNDEFINED, "b": [UNDEFINED]})

    assert values["CN-Hdr"] == '{"b":[null]}'


def test_headers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError):
        header_values(Encoding.MSGPACK, headers={"a": b"x"})


def test_headers_at_the_limit_are_taken_and_above_it_refused() -> None:
    values = header_values(Encoding.MSGPACK, headers={"a": ""})
    room = HEADER_BYTES_MAX - len(encode_headers(values))

    full = header_values(Encoding.MSGPACK, headers={"a": "x" * room})
    assert len(encode_headers(full)) == HEADER_BYTES_MAX
    with pytest.raises(HeaderError, match="64,511 is the limit"):
        header_values(Encoding.MSGPACK, headers={"a": "x" * (room + 1)})


def test_equal_plain_blocks_share_one_object() -> None:
    block = encode_headers(header_values(Encoding.MSGPACK))
    read = RecordHeaders.parse(block)

    assert RecordHeaders.parse(bytes(bytearray(block)), stream="CN_x", sequence=9) is read
    assert (read.encoding, read.user, read.key, read.blob) == (Encoding.MSGPACK, None, None, None)


@pytest.mark.parametrize("block", [b"", _block(), _block("X: y"), b"junk"])
def test_a_message_of_another_program_is_its_bytes(block: bytes) -> None:
    read = RecordHeaders.parse(block)

    assert (read.encoding, read.user, read.key, read.blob) == (None, None, None, None)
    assert decode_record(block, b"\xff") == b"\xff"
    assert not is_tombstone(block)
    assert ttl_ms_of(block) is None


@pytest.mark.parametrize(
    "line",
    [
        "KV-Operation: DEL", "KV-Operation: PURGE", "Nats-Marker-Reason: MaxAge",
        "Nats-Marker-Reason: Purge", "Nats-Marker-Reason: Remove", "CN-Tombstone: 1",
        "CN-Tombstone:1",
    ],
)  # fmt: skip
def test_markers_of_other_programs_delete(line: str) -> None:
    block = _block(line)

    assert is_tombstone(block)
    assert RecordHeaders.parse(block).is_tombstone
    assert decode_record(block, b"") is None


@pytest.mark.parametrize(
    "line", ["KV-Operation: PUT", "Nats-Marker-Reason: New", "X: KV-Operation"]
)
def test_other_operations_are_values(line: str) -> None:
    assert not is_tombstone(_block(line))


@pytest.mark.parametrize(
    ("lines", "ttl_ms"),
    [
        (("CN-TTL: 25", "Nats-TTL: 1"), 25),
        (("CN-TTL: 0", "Nats-TTL: 1"), 0),
        (("CN-TTL: 25",), None),
        (("Nats-TTL: 2",), 2_000),
        (("Nats-TTL: 1m",), 60_000),
        (("Nats-TTL: never",), None),
        (("Nats-TTL: what",), None),
        (("CN-TTL: what", "Nats-TTL: 2"), 2_000),
        (("CN-TTL: ²", "Nats-TTL: 2"), 2_000),
        ((f"CN-TTL: {'9' * 15}", "Nats-TTL: 2"), 2_000),
    ],
)
def test_a_message_lives_as_long_as_both_sides_say(
    lines: tuple[str, ...], ttl_ms: int | None
) -> None:
    assert ttl_ms_of(_block(*lines)) == ttl_ms


_READERS: Mapping[str, Callable[[RecordHeaders], object]] = {
    "CN-Enc": lambda read: read.encoding,
    "CN-Hdr": lambda read: read.user,
    "CN-Key": lambda read: read.key,
    "CN-Blob": lambda read: read.blob,
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CN-Enc", ""), ("CN-Enc", "2"), ("CN-Enc", "x"),
        ("CN-Hdr", ""), ("CN-Hdr", "{"), ("CN-Hdr", "[]"), ("CN-Hdr", "[" * 50_000),
        ("CN-Key", "a"), ("CN-Key", "1"), ("CN-Key", "null"),
        ("CN-Blob", "1"), ("CN-Blob", "{"), ("CN-Blob", "{}"),
        ("CN-Blob", '{"id":"b","n":-1,"size":1,"sha256":""}'),
        ("CN-Blob", '{"id":"b","n":1,"size":1,"sha256":"x"}'),
    ],
)  # fmt: skip
def test_a_broken_header_names_the_message_and_spoils_no_other(name: str, text: str) -> None:
    good = {
        "CN-Enc": "0",
        "CN-Hdr": "{}",
        "CN-Key": '"k"',
        **header_values(Encoding.JSON, blob=_BLOB),
    }
    block = _block(*(f"{each}: {value}" for each, value in {**good, name: text}.items()))
    read = RecordHeaders.parse(block, stream="CN_x", sequence=7)

    with pytest.raises(CodecError, match="message 7 of stream CN_x") as caught:
        _READERS[name](read)
    assert caught.value.revision == 7
    others = [reader(read) for each, reader in _READERS.items() if each not in (name, "CN-Enc")]
    assert None not in others


@given(st.binary(max_size=80), st.sampled_from(["CN-Enc", "CN-Hdr", "CN-Key", "CN-Blob", "CN-TTL"]))
def test_any_bytes_in_a_header_are_read_or_a_codec_error(data: bytes, name: str) -> None:
    block = b"NATS/1.0\r\nNats-TTL: 1\r\n" + name.encode() + b": " + data + b"\r\n\r\n"
    read = RecordHeaders.parse(block)
    ttl_ms_of(block)
    is_tombstone(block)
    for reader in _READERS.values():
        try:
            reader(read)
        except CodecError:
            continue


def test_values_are_decoded_by_their_encoding() -> None:
    for encoding in Encoding:
        for key in (None, "a"):
            block = encode_headers(header_values(encoding, key=key))
            assert decode_record(block, encode_value([1, "x"], encoding)) == [1, "x"]


@pytest.mark.parametrize("line", ["CN-Enc: 0", "CN-Enc: 1", "CN-Enc: 7"])
def test_a_value_that_cannot_be_decoded_names_its_message(line: str) -> None:
    with pytest.raises(CodecError, match="message 7 of stream CN_x") as caught:
        decode_record(_block(line), b"\xc1", stream="CN_x", sequence=7)
    assert caught.value.revision == 7


def test_the_message_id_is_a_header_of_jetstream() -> None:
    assert RecordHeaders.parse(_block("CN-Enc: 0", "Nats-Msg-Id: m-1")).msg_id == "m-1"
    assert RecordHeaders.parse(_block("CN-Enc: 0")).msg_id is None


def test_a_blob_is_a_value_in_chunks() -> None:
    value = _BLOB.under("cn.b.x.b1")

    assert (value.subject, value.size, value.chunks) == ("cn.b.x.b1", 300_000, 3)
    assert value.digest == bytes(range(32))
