"""The messages of a run: each says who wrote it and which it is, in every part; pure rules.

Law: a message is made of its writer and number alone, so a reader can make it again and compare.
"""

from __future__ import annotations

from typing import NamedTuple

SUBJECT_PREFIX = "chaos"
HEADER = "Chaos-Letter"
NUMBER_BITS = 40
SUBJECTS_OF_WRITER = 3
_SIZE_STEP = 37
_SIZE_MAX = 700
# One in so many is larger than what one read of the socket brings.
_LARGE_EVERY = 101
_LARGE_BYTES = 40_000


class Letter(NamedTuple):
    """One message.

    Attributes:
        subject: Where it goes.
        mark: The value of its header.
        data: Its payload.
    """

    subject: str
    mark: str
    data: bytes


class MixedUpError(Exception):
    """A message is not as it was written."""


def make_letter(writer: int, number: int) -> Letter:
    """Return the message with this number, from 1, of the writer with this index."""
    mark = f"{writer}-{number}"
    subject = f"{SUBJECT_PREFIX}.w{writer}.{number % SUBJECTS_OF_WRITER}"
    size = _LARGE_BYTES if number % _LARGE_EVERY == 0 else number * _SIZE_STEP % _SIZE_MAX
    filler = bytes((33 + (writer * 7 + number) % 90,)) * size
    return Letter(subject, mark, f"{mark} ".encode() + filler)


def filter_of(writer: int) -> str:
    """Return the filter for all messages of a writer."""
    return f"{SUBJECT_PREFIX}.w{writer}.*"


def read_letter(subject: str, mark: str | None, data: bytes) -> int:
    """Return a message's identity: its writer and number in one integer above 0.

    Raises:
        MixedUpError: Its parts do not belong together, or are damaged.
    """
    try:
        writer, number = (int(part) for part in data[:40].split(b" ", 1)[0].split(b"-"))
        wanted = make_letter(writer, number)
    except (ValueError, OverflowError) as error:
        raise MixedUpError(f"no payload of ours: {data[:40]!r}") from error
    if wanted != (subject, mark, data):
        raise MixedUpError(
            f"letter {writer}-{number} came as {subject} {mark} with {len(data)} bytes"
        )
    return identity_of(writer, number)


def identity_of(writer: int, number: int) -> int:
    """Return writer and number in one integer."""
    return writer << NUMBER_BITS | number


def split_identity(identity: int) -> tuple[int, int]:
    """Return writer and number."""
    return identity >> NUMBER_BITS, identity & ((1 << NUMBER_BITS) - 1)
