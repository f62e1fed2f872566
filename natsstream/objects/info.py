"""The info of an object, and the JSON that every client stores of it.

Law: our JSON is nats.go's, byte for byte, and we read any client's: headers with one value that is
no list, any `mtime` or none, missing fields. Unknown fields are written back unchanged. The name
and the time come from the message, not from its JSON.
Source: ADR-20 revision 2; nats.go jetstream/object.go ObjectInfo, publishMeta.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from natsstream.arguments import counted
from natsstream.constructors import answers_arguments
from natsstream.errors import ObjectMetaError, ProtocolError
from natsstream.fields import Fields
from natsstream.foreign_names import answers_names
from natsstream.notebook import NotebookTable
from natsstream.units import time_from_ns

# nats.go writes Go's zero time for no time; its readers fail on "".
_NO_TIME = "0001-01-01T00:00:00Z"
_DIGEST = "SHA-256="
_DIGEST_BYTES = 32
# As Go's encoding/json writes them.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_KNOWN = (
    "name", "description", "headers", "metadata", "options", "bucket", "nuid", "size", "mtime",
    "chunks", "digest", "deleted",
)  # fmt: skip
_KNOWN_OPTIONS = ("link", "max_chunk_size")
# A nuid is one token of a subject that is purged: with a wildcard it would take the whole store.
_NUID = re.compile(r"[^\s.*>\x00-\x1f\x7f\ud800-\udfff]{1,255}")
_NUID_CHARS = string.digits + string.ascii_letters
_NUID_SIZE = 22


@answers_arguments
@dataclass(frozen=True, slots=True)
class ObjectLink:
    """The target of a link.

    Attributes:
        bucket: The store.
        name: The object in it; empty for the whole store.
    """

    bucket: str
    name: str = ""


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOptions:
    """The options of an object.

    Attributes:
        link: The target of a link; None for an object with bytes of its own.
        max_chunk_size: Bytes of each chunk but the last, by its writer; None if not given.
    """

    link: ObjectLink | None = None
    max_chunk_size: int | None = None


@answers_names("object_info", calls=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo(NotebookTable):
    """The info of an object: all that its store knows beside the bytes.

    Attributes:
        name: The object's name.
        bucket: The store's name.
        nuid: The id in the subject of its chunks; each put has a new one.
        size: Bytes of the object.
        chunks: Messages that store them.
        digest: `SHA-256=` and the hash in base64 for URLs; empty for links and deleted objects.
        description: Free text.
        headers: Values by name.
        metadata: Free text by key.
        options: Link and chunk size.
        deleted: True for the marker of a deleted object.
        mtime_ns: When the info was stored, in Unix nanoseconds by the server's clock; in the
            result of a write by this client's, because acks have no time. 0 if it is not stored.
        revision: The sequence of the info's message; 0 if it is not stored yet.
        renamed_from: The old name if natsstream renamed the object with this message, so a follower
            of the store drops that name. Else empty.
        extra: Stored fields that this version does not know.
    """

    name: str
    bucket: str
    nuid: str
    size: int = 0
    chunks: int = 0
    digest: str = ""
    description: str = ""
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    options: ObjectOptions = field(default_factory=ObjectOptions)
    deleted: bool = False
    mtime_ns: int = 0
    revision: int = 0
    renamed_from: str = ""
    extra: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    def __repr__(self) -> str:
        state = counted(self.size, "byte")
        if self.deleted or self.link is not None:
            state = "deleted" if self.deleted else "a link"
        stored = "" if self.mtime is None else f", {self.mtime:%Y-%m-%d %H:%M:%S}Z"
        return f"<ObjectInfo {self.name!r} in {self.bucket}: {state}{stored}>"

    @property
    def mtime(self) -> datetime | None:
        """When the info was stored, in UTC and microseconds; None if it is not stored yet."""
        return time_from_ns(self.mtime_ns) if self.mtime_ns else None

    @property
    def link(self) -> ObjectLink | None:
        """The target of a link; None for an object with bytes of its own."""
        return self.options.link

    def to_json(self) -> bytes:
        """Return the JSON to store, as nats.go writes it."""
        body: dict[str, object] = {"name": self.name}
        if self.description:
            body["description"] = self.description
        if self.headers:
            body["headers"] = {key: list(self.headers[key]) for key in sorted(self.headers)}
        if self.metadata:
            body["metadata"] = {key: self.metadata[key] for key in sorted(self.metadata)}
        options = _options_json(self.options, self.extra)
        if options is not None:
            body["options"] = options
        body |= {"bucket": self.bucket, "nuid": self.nuid, "size": self.size, "mtime": _NO_TIME}
        body["chunks"] = self.chunks
        if self.digest:
            body["digest"] = self.digest
        if self.deleted:
            body["deleted"] = True
        body |= {key: value for key, value in self.extra.items() if key not in _KNOWN}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        # Half of a surrogate pair, from another client's JSON, is written as an escape again.
        return text.translate(_ESCAPES).encode(errors="backslashreplace")

    @classmethod
    def from_json(
        cls,
        data: bytes,
        *,
        bucket: str,
        name: str,
        revision: int,
        mtime_ns: int,
        renamed_from: str = "",
    ) -> ObjectInfo:
        """Return the info in a message.

        Args:
            data: The message's payload.
            bucket: The store of the message.
            name: The object's name, from the message's subject.
            revision: The message's sequence.
            mtime_ns: When it was stored.
            renamed_from: The object's old name, from the message's header.

        Raises:
            ObjectMetaError: It is no info of an object.
        """
        try:
            body = Fields.parse(data, "the stored message")
            options = body.part("options", {})
            link = options.part_or_none("link")
            target = (
                None if link is None else ObjectLink(_text(link, "bucket"), _text(link, "name"))
            )
            unknown = {key: body.raw[key] for key in body.raw if key not in _KNOWN}
            if more := {key: options.raw[key] for key in options.raw if key not in _KNOWN_OPTIONS}:
                unknown["options"] = more
            metadata = body.part("metadata", {})
            return cls(
                name=name,
                bucket=bucket,
                nuid=_nuid(body),
                size=body.count("size"),
                chunks=body.count("chunks"),
                digest=_text(body, "digest"),
                description=_text(body, "description"),
                headers={
                    key: _header_values(value, f"header {key}")
                    for key, value in body.part("headers", {}).raw.items()
                },
                metadata={key: _text(metadata, key) for key in metadata.raw},
                options=ObjectOptions(
                    link=target, max_chunk_size=options.count("max_chunk_size") or None
                ),
                deleted=body.flag("deleted"),
                mtime_ns=mtime_ns,
                revision=revision,
                renamed_from=renamed_from,
                extra=unknown,
            )
        except (ValueError, ProtocolError) as error:
            raise ObjectMetaError(
                f"object {name!r} of store {bucket}: its meta cannot be read",
                name=name,
                revision=revision,
                detail=f"{str(error)[:200]}; stored as message {revision}: {data[:80]!r}",
                hint="put the object again, or delete it",
            ) from error


def new_nuid() -> str:
    """Return a new unique id for the subject of an object's chunks."""
    return "".join(secrets.choice(_NUID_CHARS) for _ in range(_NUID_SIZE))


def is_nuid(text: str) -> bool:
    """Return True if a text can be the last token of a subject, and no wildcard."""
    return _NUID.fullmatch(text) is not None


def write_digest(digest: bytes) -> str:
    """Return the stored form of a SHA-256 hash."""
    return _DIGEST + base64.urlsafe_b64encode(digest).decode()


def read_digest(text: str) -> bytes | None:
    """Return the SHA-256 hash in a stored digest; None if it is none.

    Also legal: base64 with "+" and "/", base64 without padding, and the prefix in any case.
    """
    if text[: len(_DIGEST)].upper() != _DIGEST:
        return None
    encoded = text[len(_DIGEST) :].rstrip("=").replace("+", "-").replace("/", "_")
    try:
        digest = base64.b64decode(
            encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == _DIGEST_BYTES else None


def _options_json(options: ObjectOptions, extra: Mapping[str, object]) -> dict[str, object] | None:
    """Return the options' JSON; None for no options."""
    body: dict[str, object] = {}
    if options.link is not None:
        body["link"] = {"bucket": options.link.bucket}
        if options.link.name:
            body["link"] = {"bucket": options.link.bucket, "name": options.link.name}
    if options.max_chunk_size:
        body["max_chunk_size"] = options.max_chunk_size
    body |= cast("Mapping[str, object]", extra.get("options") or {})
    return body or None


def _nuid(body: Fields) -> str:
    nuid = _text(body, "nuid")
    if nuid and not is_nuid(nuid):
        raise ValueError(f"nuid {nuid!r} is no single token of a subject")
    if not nuid and body.count("chunks"):
        raise ValueError("nuid is missing")
    return nuid


def _header_values(value: object, what: str) -> tuple[str, ...]:
    """Return the values of a header; nats-py writes a text instead of a list."""
    if value is None:
        return ()
    values: Sequence[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = tuple(each for each in values if isinstance(each, str))
    if len(texts) != len(values):
        raise ValueError(f"{what} is no text")
    return texts


def _text(body: Fields, name: str) -> str:
    """Return a text, also one with half of a surrogate pair, which is written back as it was."""
    value = body.raw.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 - Of JSON, not of an argument.
    return value
