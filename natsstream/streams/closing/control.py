"""Control records: the subjects in a stream that hold no data; pure rules.

```
orders.$ctl.k3j9x2q7              the prefix, in the stream's metadata as `natsstream.control`
orders.$ctl.k3j9x2q7.p.<token>    the state of one producer
orders.$ctl.k3j9x2q7.eof          the end of the stream
```

Law: every stream has a prefix of its own. Its last token is random, so a producer of a stream that
was deleted finds nothing in a new one of the same name, also where the sequences are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from natsstream.api.names import check_subject, collide, covers, is_name
from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError, SubjectError

CONTROL_KEY = "natsstream.control"
"""The key in the stream's metadata whose value is the prefix."""

_MARK = "$ctl"
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
    def end(self) -> str:
        """The subject of the record that ends the stream."""
        return f"{self.prefix}.eof"

    def state(self, token: str) -> str:
        """Return the subject of one producer's state.

        Args:
            token: The producer's id as one token.
        """
        return f"{self.prefix}.p.{token}"

    def has(self, subject: str) -> bool:
        """Return True if a subject is that of a control record."""
        return subject.startswith(f"{self.prefix}.")


def control_of(config: StreamConfig) -> Control | None:
    """Return a stream's control subjects; None where its metadata names none.

    Raises:
        ConfigError: The metadata names no legal prefix, or one that the stream does not capture.
    """
    prefix = (config.metadata or {}).get(CONTROL_KEY)
    if prefix is None:
        return None
    try:
        control = Control(prefix)
    except SubjectError as error:
        raise ConfigError(
            f"stream {config.name}: {CONTROL_KEY} in its metadata is no subject",
            detail=error.message,
            hint="name a subject without wildcards that the stream captures",
        ) from error
    # A stream that copies another one holds subjects that it does not capture itself.
    is_copy = config.mirror is not None or bool(config.sources)
    if not is_copy and _missing(_subjects(config), control):
        raise ConfigError(
            f"stream {config.name}: it does not capture {control.filter}, which {CONTROL_KEY} in "
            "its metadata names",
            hint=f"add {control.filter!r} to its subjects",
        )
    return control


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
    base = control.prefix.rpartition(".")[0]
    wide = [f"{base}.>"] if base.endswith(f".{_MARK}") else [control.filter]
    for added in (wide, [control.filter], missing):
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
