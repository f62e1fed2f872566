"""Control records: the subjects in a stream that hold no data; pure rules.

```
orders.$ctl.k3j9x2q7              the prefix, in the stream's metadata as `natsstream.control`
orders.$ctl.k3j9x2q7.p.<token>    the state of one producer
orders.$ctl.k3j9x2q7.p.<token>~   the mark in front of its last batch, where it needs one
orders.$ctl.k3j9x2q7.eof          the end of the stream
```

Law: every stream has a prefix of its own. Its last token is random, so a producer of a stream that
was deleted finds nothing in a new one of the same name, also where the sequences are equal.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from natsstream.api.names import check_subject, collide, covers, is_name
from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError, NatsStreamError, SubjectError
from natsstream.fields import Fields

CONTROL_KEY = "natsstream.control"
"""The key in the stream's metadata whose value is the prefix."""

PAST_KEY = "at"
"""The key in a state record whose value is the sequences of the records that it has replaced."""

_MARK = "$ctl"
# Most of a producer's records follow data, and their sequences are no neighbours. Those at both
# ends are kept: a stream's first ones, and the newest.
_PAST_KEPT_EACH = 4
_NONCE_CHARS = 8
_WILDCARDS = ("*", ">")


@dataclass(frozen=True, slots=True)
class Control:
    """The subjects of a stream's control records.

    Attributes:
        prefix: All of them begin with it and a dot.

    Raises:
        SubjectError: The prefix is no subject, or has a wildcard.
    """

    prefix: str

    def __post_init__(self) -> None:
        check_subject(self.prefix)

    @property
    def filter(self) -> str:
        """The filter that matches all control records and nothing else."""
        return f"{self.prefix}.>"

    @property
    def area(self) -> str:
        """The filter of all subjects that are kept for control: `<base>.$ctl.>`, or `filter`."""
        base = self.prefix.rpartition(".")[0]
        return f"{base}.>" if base.endswith(f".{_MARK}") else self.filter

    @property
    def end(self) -> str:
        """The subject of the record that ends the stream."""
        return f"{self.prefix}.eof"

    def state(self, token: str) -> str:
        """Return the subject of one producer's state.

        Args:
            token: The producer's id as one token.
        """
        return f"{self.prefix}.p.{token}"

    def mark(self, token: str) -> str:
        """Return the subject of the mark in front of one producer's last batch.

        Args:
            token: The producer's id as one token, which has no tilde.
        """
        return f"{self.state(token)}~"

    @property
    def start(self) -> bytes:
        """The first bytes of all control subjects, and of no other one."""
        return f"{self.prefix}.".encode()

    def has(self, subject: str) -> bool:
        """Return True if a subject is that of a control record."""
        return subject.startswith(f"{self.prefix}.")

    def is_hidden(self, filters: Sequence[str]) -> bool:
        """Return True if a reader of data has to leave out records that its filters match.

        False where they match none, which the server sees to, and where a filter names the control
        subjects: `<prefix>.>` or `<base>.$ctl.>`, and what they cover.

        Args:
            filters: Subject filters; empty for all.
        """
        if any(covers(self.area, each) for each in filters):
            return False
        return not filters or any(collide(each, self.filter) for each in filters)


def named_control(config: StreamConfig) -> Control | None:
    """Return the control subjects that a stream's metadata names, also if it captures them no more.

    Raises:
        ConfigError: The metadata names no legal prefix.
    """
    prefix = (config.metadata or {}).get(CONTROL_KEY)
    if prefix is None:
        return None
    try:
        return Control(prefix)
    except SubjectError as error:
        raise ConfigError(
            f"stream {config.name}: {CONTROL_KEY} in its metadata is no subject",
            detail=error.message,
            hint="name a subject without wildcards that the stream captures; until then "
            "control=True reads all",
        ) from error


def control_of(config: StreamConfig) -> Control | None:
    """Return a stream's control subjects; None where its metadata names none.

    Raises:
        ConfigError: The metadata names no legal prefix, or one that the stream does not capture.
    """
    control = named_control(config)
    if control is None:
        return None
    # A stream that copies another one holds subjects that it does not capture itself.
    is_copy = config.mirror is not None or bool(config.sources)
    if not is_copy and _missing(_subjects(config), control):
        raise ConfigError(
            f"stream {config.name}: it does not capture {control.filter}, which {CONTROL_KEY} in "
            "its metadata names",
            hint=f"add {control.filter!r} to its subjects",
        )
    return control


def expected_control(config: StreamConfig, created_ns: int) -> Control:
    """Return the control subjects that whoever prepares a stream for producers chooses.

    Args:
        config: The stream; its metadata names none.
        created_ns: The stream's identity, by which all choose the same.

    Raises:
        SubjectError: The prefix is longer than a subject may be.
    """
    digest = hashlib.sha256(f"{config.name} {created_ns}".encode()).digest()
    return new_control(config, base64.b32encode(digest)[:_NONCE_CHARS].decode().lower())


def likely_control(config: StreamConfig, created_ns: int) -> Control | None:
    """Return the control subjects that a stream has, or gets with its first producer.

    Args:
        config: The stream, maybe as it was a while ago.
        created_ns: The stream's identity.

    Raises:
        ConfigError: The metadata names no legal prefix.
    """
    try:
        return named_control(config) or expected_control(config, created_ns)
    except SubjectError:
        return None  # Its subjects are too long for any.


def new_control(config: StreamConfig, nonce: str) -> Control:
    """Return control subjects for a stream that has none.

    They stand beside the data: the first subject's tokens before its first wildcard, `$ctl` and the
    nonce. A first subject that begins with a wildcard leaves the stream's name instead.

    Args:
        config: The stream.
        nonce: One token, random.

    Raises:
        ConfigError: The nonce is not one token.
        SubjectError: The prefix is longer than a subject may be.
    """
    if not is_name(nonce):
        raise ConfigError(f"nonce {nonce!r} is not one token", hint="give letters and digits")
    base: list[str] = []
    for token in _subjects(config)[0].split("."):
        if token in _WILDCARDS:
            break
        base.append(token)
    return Control(".".join((*(base or (config.name,)), _MARK, nonce)))


Span: TypeAlias = tuple[int, int]
"""First and last sequence, inclusive."""


def with_past(spans: Sequence[Span], sequence: int) -> tuple[Span, ...]:
    """Return the sequences of a producer's earlier records, and one more, which is the newest."""
    if spans and spans[-1][1] == sequence - 1:
        return (*spans[:-1], (spans[-1][0], sequence))
    grown = (*spans, (sequence, sequence))
    if len(grown) <= 2 * _PAST_KEPT_EACH:
        return grown
    return (*grown[:_PAST_KEPT_EACH], *grown[-_PAST_KEPT_EACH:])


def read_past(found: object) -> tuple[Span, ...]:
    """Return the sequences of earlier records, from a record's JSON; none where it has no list."""
    if not isinstance(found, list):
        return ()
    spans: list[Span] = []
    for span in cast("list[object]", found):
        match span:
            case [int(first), int(last)] if 0 < first <= last:
                spans.append((first, last))
            case _:
                return ()
    return tuple(spans)


def past_of(data: bytes) -> tuple[Span, ...]:
    """Return the sequences of the records that a state record has replaced, as far as it tells."""
    try:
        return read_past(Fields.parse(data, "a control record").raw.get(PAST_KEY))
    except NatsStreamError:
        return ()


def data_subjects(config: StreamConfig, control: Control | None) -> list[str]:
    """Return a stream's subjects without those of its control records.

    Args:
        config: The stream.
        control: Its control subjects; None for none.

    Raises:
        ConfigError: The stream copies others, or one subject matches both data and control records.
    """
    if control is None:
        return list(_subjects(config))
    kept = [each for each in _subjects(config) if not covers(control.area, each)]
    both = [each for each in kept if collide(each, control.filter)]
    if both or config.mirror is not None or config.sources:
        why = f"its subject {both[0]!r} matches both" if both else "it copies other streams"
        raise ConfigError(
            f"stream {config.name} has no filters for data without control records: {why}",
            hint="filter by your own subjects; or list these as the stream's subjects, and "
            f"{control.area!r} beside them",
        )
    return kept


def captured(subjects: Sequence[str], control: Control) -> list[str]:
    """Return a stream's subjects, with the control subjects that they lack.

    The widest that overlaps none of the subjects is added: `<base>.$ctl.>`, which a program can
    also declare itself; else `<prefix>.>`; else the single ones.

    Args:
        subjects: Subjects of the stream.
        control: The control subjects.

    Raises:
        ConfigError: Each of them overlaps a subject that does not cover it. Servers refuse that.
    """
    missing = _missing(subjects, control)
    if not missing:
        return list(subjects)
    for added in ([control.area], [control.filter], missing):
        if not any(collide(one, other) for one in added for other in subjects):
            return [*subjects, *added]
    raise ConfigError(
        f"{', '.join(missing)} cannot be added to the subjects {', '.join(subjects)}: they overlap",
        hint="give the stream one subject that ends in '>', such as 'orders.>'",
    )


def _subjects(config: StreamConfig) -> Sequence[str]:
    return config.subjects or (config.name,)


def _missing(subjects: Sequence[str], control: Control) -> list[str]:
    """Return the control subjects that a stream does not capture."""
    wanted = (control.end, control.state("*"))
    return [each for each in wanted if not any(covers(subject, each) for subject in subjects)]
