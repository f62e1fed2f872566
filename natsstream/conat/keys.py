"""Keys of a core stream as tokens of a subject; pure rules.

Law: two keys have two tokens, and a token is short and legal whatever the key. The header `CN-Key`
has the whole key.
Source: core-stream.md section 5.7.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from natsstream.arguments import check_utf8

# As base64 254 characters, so that a token has at most 255, as a file's name.
_PLAIN_BYTES_MAX = 190
_PLAIN, _HASHED = "b", "h"


def token_of(key: str) -> str:
    """Return the token of a key: its base64, or that of its SHA-256 above 190 bytes.

    Raises:
        ConfigError: The key is no text, or UTF-8 cannot encode it.
    """
    data = check_utf8(key, "the key").encode()
    if len(data) <= _PLAIN_BYTES_MAX:
        return _PLAIN + _base64(data)
    return _HASHED + _base64(hashlib.sha256(data).digest())


def key_of_token(token: str) -> str | None:
    """Return the key of a token; None for a long key's hash, and for another program's token."""
    if not token.startswith(_PLAIN):
        return None
    text = token[1:]
    try:
        padded = text + "=" * (-len(text) % 4)
        key = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return key if token_of(key) == token else None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
