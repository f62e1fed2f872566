"""A link of a chain: its headers, and the content of its hash; pure rules.

Law: two links with different writers, numbers, subjects, headers, payloads or predecessors never
have the same canonical bytes: each part is written behind its length.

The hash is SHA-256, or HMAC-SHA256 with a key. Without a key, anyone who can write to the stream
can make a whole new chain; only a head that was kept elsewhere detects it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from natsstream._wire.headers import HeaderName, Headers, encode_headers
from natsstream.api.names import check_filter
from natsstream.arguments import check_text, check_texts, described
from natsstream.errors import ConfigError, HeaderError, SubjectError

GENESIS = "0" * 64
"""The previous hash of the first link."""

CHAIN_HEADERS = (
    HeaderName.CHAIN_WRITER,
    HeaderName.CHAIN_COUNT,
    HeaderName.CHAIN_PREVIOUS,
    HeaderName.CHAIN_HASH,
)
_VERSION = b"natsstream-chain-1"
_WRITER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COUNT = re.compile(r"[1-9][0-9]{0,17}")
_HASH = re.compile(r"[0-9a-f]{64}")
# Headers that servers remove or add when they copy a message into another stream; all others are
# covered, however similar their names.
_NOT_COVERED = frozenset(
    {
        HeaderName.EXPECTED_STREAM,
        HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE,
        HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT,
        HeaderName.STREAM_SOURCE,
    }
)
_LENGTH_BYTES = 8
KEY_BYTES_MIN = 16


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The newest link of a writer; keep it elsewhere to detect a lost end of the chain.

    Attributes:
        writer: The writer's id.
        count: The link's number, from 1; 0 before the first.
        hash: Its hash in hex.
        sequence: Its sequence in the stream; 0 before the first.
    """

    writer: str
    count: int = 0
    hash: str = GENESIS
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A link, as its headers describe it.

    Attributes:
        writer: The writer's id.
        count: Its number, from 1.
        previous: The hash of the writer's link before it.
        hash: Its own hash, unverified.
    """

    writer: str
    count: int
    previous: str
    hash: str


def read_link(headers: Headers) -> ChainLink | str | None:
    """Return the link in a message's headers.

    Returns:
        The link; the writer's id, or an empty text, for headers of a malformed link; None for a
        message without chain headers.
    """
    fields = [headers.all(name) for name in CHAIN_HEADERS]
    if not any(fields):
        return None
    writers = fields[0]
    writer = writers[0] if writers and _WRITER.fullmatch(writers[0]) else ""
    if not writer or any(len(values) != 1 for values in fields):
        return writer
    count, previous, own = (values[0] for values in fields[1:])
    if not _has_only_fields(headers):
        return writer
    if not (_COUNT.fullmatch(count) and _HASH.fullmatch(previous) and _HASH.fullmatch(own)):
        return writer
    return ChainLink(writer, int(count), previous, own)


def link_hash(
    writer: str, count: int, previous: str, message: tuple[str, Headers, bytes], key: bytes | None
) -> str:
    """Return the hash of a link in hex.

    Args:
        writer: The writer's id.
        count: The link's number.
        previous: The hash before it.
        message: Subject, headers and payload; the chain's own headers are skipped.
        key: The key of the HMAC; None for a plain hash.
    """
    subject, headers, data = message
    covered = sorted(
        (pair for pair in headers.items_all() if _is_covered(pair[0])), key=lambda pair: pair[0]
    )
    parts: list[bytes] = [_VERSION, b"sha256" if key is None else b"hmac-sha256"]
    parts += [_bytes(text) for text in (writer, str(count), previous, subject)]
    parts.append(str(len(covered)).encode())
    for name, value in covered:
        parts += [_bytes(name), _bytes(value)]
    parts.append(data)
    canonical = b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in parts)
    if key is None:
        return hashlib.sha256(canonical).hexdigest()
    return hmac.new(key, canonical, hashlib.sha256).hexdigest()


def is_same_hash(one: str, other: str) -> bool:
    """Compare two hashes in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def check_writer(writer: object) -> str:
    """Return a legal writer's id.

    Raises:
        ConfigError: It is not legal.
    """
    if not isinstance(writer, str) or not _WRITER.fullmatch(writer):
        raise ConfigError(
            f"writer is {described(writer)}",
            hint="give 1 to 64 letters, digits, '.', '_' and '-', such as writer='orders-1'",
        )
    return writer


def check_key(key: object) -> bytes | None:
    """Return a legal key; errors do not show it.

    Raises:
        ConfigError: It is no bytes, or too short for a secret.
    """
    if key is None:
        return None
    if not isinstance(key, bytes) or len(key) < KEY_BYTES_MIN:
        raise ConfigError(
            "key is no secret of bytes",
            hint=f"give at least {KEY_BYTES_MIN} random bytes, such as secrets.token_bytes(32)",
        )
    return key


def check_chain_filters(filters: Sequence[str]) -> tuple[str, ...]:
    """Return the subjects in which links are looked for."""
    given = check_texts(filters, "filters", error=SubjectError)
    return tuple(check_filter(check_text(each, "filter")) for each in given)


def check_head(head: object, writer: str) -> ChainHead:
    """Return a writer's head.

    Raises:
        ConfigError: It is no head, or another writer's.
    """
    if not isinstance(head, ChainHead) or head.writer != writer:
        raise ConfigError(
            f"the head of writer {writer!r} is {described(head)}",
            hint="give a ChainHead of this writer, such as publisher.head",
        )
    return head


def _is_covered(name: str) -> bool:
    return name not in CHAIN_HEADERS and name not in _NOT_COVERED


def _has_only_fields(headers: Headers) -> bool:
    """Return True if a header block has only names and values, which the hash covers.

    A status in its first line, a line without a colon and bytes behind its end are not covered.
    """
    try:
        return encode_headers(headers) == headers.source
    except HeaderError:
        return False


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
