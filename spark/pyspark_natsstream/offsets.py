"""The offset of a query, as Spark keeps it in its checkpoint.

    {"v":1,"streams":{"ORDERS":{"next":124,"created":"2026-11-21T05:00:00.123456789Z"}}}

Law: Spark compares offsets as text, so equal offsets have equal text: keys in this order, integers
and strings only, nine digits in the time. `created` identifies the stream: after a delete and a
create, the same sequences are other messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

from natsstream.errors import ConfigError, UsageError
from natsstream.units import format_rfc3339, parse_rfc3339

VERSION = 1
# A foreign offset may be anything; its beginning is enough to recognize it.
_DETAIL_CHARS_MAX = 300


class OffsetError(UsageError):
    """The checkpoint holds an offset that this version of the source did not write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """A position in one stream.

    Attributes:
        stream: Name of the stream.
        next_seq: Sequence of the next message to read; all earlier ones were read.
        created_ns: When the stream was created, in Unix nanoseconds.
    """

    stream: str
    next_seq: int
    created_ns: int

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that Spark stores; equal offsets have equal text."""
        place = {"next": self.next_seq, "created": format_rfc3339(self.created_ns)}
        return {"v": VERSION, "streams": {self.stream: place}}

    def to_text(self) -> str:
        """Return the JSON text, without spaces."""
        return json.dumps(self.to_json(), separators=(",", ":"))


def parse_offset(found: object, *, stream: str) -> Offset:
    """Read an offset.

    Args:
        found: The offset as JSON gives it: a dict of str, int and dicts.
        stream: The stream of the options.

    Raises:
        OffsetError: The offset has another version or form, or another stream.
    """
    version = _fields(found).get("v")
    if not _is_whole(version):
        raise _refusal(found, "it has no version")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an unknown"
        raise _refusal(found, f"it has {age} version, {version}; this source reads {VERSION}")
    streams = _fields(_fields(found).get("streams"))
    if list(streams) != [stream]:
        names = ", ".join(sorted(streams)) or "no stream"
        raise _refusal(found, f"it is of {names}, but the option is stream={stream}")
    place = _fields(streams[stream])
    next_seq, created = place.get("next"), place.get("created")
    if not _is_whole(next_seq) or next_seq < 1:
        raise _refusal(found, f'"next" of {stream} must be 1 or more')
    if not isinstance(created, str):
        raise _refusal(found, f'"created" of {stream} must be a time')
    try:
        created_ns = parse_rfc3339(created)
    except ConfigError as error:
        raise _refusal(found, f'"created" of {stream}: {error.message}') from error
    return Offset(stream=stream, next_seq=next_seq, created_ns=created_ns)


def parse_offset_text(text: str, *, stream: str) -> Offset:
    """Read an offset from its JSON text.

    Raises:
        OffsetError: The text is not JSON, or not an offset of this stream and version.
    """
    return parse_offset(_from_text(text), stream=stream)


def offsets_of(text: str | None) -> list[Offset]:
    """Read the offsets of all streams in a JSON text.

    Raises:
        OffsetError: The text is None or not JSON, or not an offset of this version.
    """
    found = _from_text(text or "")
    parts = parts_of(found, list(_fields(_fields(found).get("streams"))))
    return [parse_offset(part, stream=name) for name, part in parts.items()]


def merged(offsets: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """Return the offset of several streams from those of each, in their order."""
    streams: dict[str, object] = {}
    for each in offsets:
        streams |= _fields(each.get("streams"))
    return {"v": VERSION, "streams": streams}


def parts_of(found: object, streams: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the offset of each stream from that of all.

    Raises:
        OffsetError: It is of other streams.
    """
    places = _fields(_fields(found).get("streams"))
    if sorted(places) != sorted(streams):
        names, options = (", ".join(sorted(each)) or "no stream" for each in (places, streams))
        raise _refusal(found, f"it is of {names}, but the option is streams={options}")
    version = _fields(found).get("v")
    return {name: {"v": version, "streams": {name: places[name]}} for name in streams}


def _from_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _refusal(text, "it is not JSON") from error


def _fields(found: object) -> dict[str, object]:
    """Return the members of a JSON object; none for other values."""
    if not isinstance(found, dict):
        return {}
    # isinstance does not narrow the keys; JSON has only strings there.
    return cast("dict[str, object]", found)


def _is_whole(value: object) -> TypeGuard[int]:
    # JSON's true is an int to Python.
    return isinstance(value, int) and not isinstance(value, bool)


def _refusal(found: object, why: str) -> OffsetError:
    return OffsetError(
        f"the offset in the checkpoint cannot be used: {why}",
        detail=f"offset: {found!r}"[:_DETAIL_CHARS_MAX],
        hint="use the checkpoint of this stream, or a new checkpoint folder with startingOffsets",
    )
