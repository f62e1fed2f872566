"""The logical size of a message, which a core stream's limits count; pure rules.

Law: it is Conat's: the headers as JSON, the value, and the key; text counts UTF-16 code units.
Source: Conat persist/storage.ts `set`; core-stream.md section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from natsstream.conat.values import json_text


def logical_size(headers: Mapping[str, object] | None, value_bytes: int, key: str | None) -> int:
    """Return the logical size of a message.

    Args:
        headers: The user's headers, a tombstone's too; None if there are none.
        value_bytes: Bytes of the encoded value, in whichever stream they are.
        key: The key; None for a message without.

    Raises:
        ConfigError: JSON cannot write the headers.
    """
    size = value_bytes
    if headers is not None:
        size += utf16_units(json_text(headers))
    return size if key is None else size + utf16_units(key)


def utf16_units(text: str) -> int:
    """Return the length of a text as JavaScript counts it."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
