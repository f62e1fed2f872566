"""Subjects of dead letters: those that a dead-letter stream captures, and one for each letter.

```
$DLQ.<dead-letter stream>.<stream>.<consumer>.<sequence>.<time ns>       written by our workers
$DLQ.<dead-letter stream>.<stream>.<consumer>.<sequence>.<time ns>.replay   while it is sent again
$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.<stream>.<consumer>           captured from the server
$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.<stream>.<consumer>           captured from the server
```

Law: one message of one consumer has one subject, so that the stream itself can refuse a second
copy, at any time. The time at which the original was stored is a part of it, because a stream that
is deleted and made again gives the same sequences to other messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from natsstream._wire import subjects
from natsstream.api.names import covers, is_name

_ROOT = "$DLQ"
_TOKENS = 6


@dataclass(frozen=True, slots=True)
class LetterKey:
    """Which message a letter is about.

    Attributes:
        stream: The stream that the message was in.
        consumer: The consumer that could not handle it.
        sequence: Its sequence in that stream.
        time_ns: When that stream stored it, in Unix nanoseconds; the message's identity where a
            stream was made again.
    """

    stream: str
    consumer: str
    sequence: int
    time_ns: int

    @property
    def triple(self) -> tuple[str, str, int]:
        """Stream, consumer and sequence: all that an advisory tells."""
        return self.stream, self.consumer, self.sequence


def letters_filter(queue: str) -> str:
    """Return the subject of all letters of a dead-letter stream."""
    return f"{_ROOT}.{queue}.>"


def letter_subject(queue: str, key: LetterKey) -> str:
    """Return the subject of one letter."""
    return f"{_ROOT}.{queue}.{key.stream}.{key.consumer}.{key.sequence}.{key.time_ns}"


def read_letter_subject(subject: str) -> LetterKey | None:
    """Return which message a letter is about; None when the subject is no letter's.

    Servers store subjects with wildcards in them. A letter of stream `*` would be dropped together
    with the notes of all others.
    """
    tokens = subject.split(".")
    if len(tokens) != _TOKENS or tokens[0] != _ROOT:
        return None
    stream, consumer, sequence, time_ns = tokens[2:]
    if not _is_number(sequence) or not _is_number(time_ns):
        return None
    if not is_name(stream) or not is_name(consumer):
        return None
    return LetterKey(stream, consumer, int(sequence), int(time_ns))


def note_subject(queue: str, key: LetterKey) -> str:
    """Return the subject of the note that a letter is being sent again; it is no letter's."""
    return f"{letter_subject(queue, key)}.replay"


def replay_id(queue: str, key: LetterKey) -> str:
    """Return the message id of a letter that is sent again: the same in every attempt."""
    return f"dlq-{queue}-{key.stream}-{key.consumer}-{key.sequence}-{key.time_ns}"


def advisory_subjects(stream: str, consumer: str = "*") -> tuple[str, ...]:
    """Return what a dead-letter stream captures for workers that are not ours."""
    return (
        subjects.advisory_max_deliveries(stream, consumer),
        subjects.advisory_terminated(stream, consumer),
    )


def with_captured(held: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the subjects of a dead-letter stream, and those that it lacks.

    A wider one of those that are wanted takes the place of the narrower ones that it covers: the
    server refuses a stream whose own subjects overlap.
    """
    new = [each for each in wanted if not any(covers(other, each) for other in held)]
    kept = [each for each in held if not any(covers(other, each) for other in new)]
    return [*kept, *new]


def _is_number(token: str) -> bool:
    # A uint64 has at most 20 digits; int() would refuse 4,300.
    return token.isascii() and token.isdigit() and len(token) <= 20
