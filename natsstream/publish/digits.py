"""Whole numbers of any size as decimal text, which counters and their acks hold.

Law: a number that the server can hold is read and written exactly, however many digits it has.

Cost: beyond 4,000 digits the time grows with the square of their number; the server takes no header
above 64 KiB, which is some milliseconds.
"""

from __future__ import annotations

import re

# Below 640, the least limit that `sys.set_int_max_str_digits` lets a program set.
_CHUNK_DIGITS = 600
_CHUNK = 10**_CHUNK_DIGITS
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def read_number(text: str) -> int:
    """Return the number that a decimal text holds.

    Raises:
        ValueError: It is no whole number.
    """
    if len(text) <= _CHUNK_DIGITS:
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"no whole number: {text[:40]!r}")
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"no whole number: {text[:40]!r}...")
    digits = text.lstrip("+-")
    head = len(digits) % _CHUNK_DIGITS
    value = int(digits[:head] or "0")
    for start in range(head, len(digits), _CHUNK_DIGITS):
        value = value * _CHUNK + int(digits[start : start + _CHUNK_DIGITS])
    return -value if text.startswith("-") else value


def write_number(value: int) -> str:
    """Return a number as decimal text."""
    if -_CHUNK < value < _CHUNK:
        return str(int(value))
    chunks: list[str] = []
    rest = abs(value)
    while rest >= _CHUNK:
        rest, low = divmod(rest, _CHUNK)
        chunks.append(str(low).zfill(_CHUNK_DIGITS))
    chunks.append(str(rest))
    return ("-" if value < 0 else "") + "".join(reversed(chunks))
