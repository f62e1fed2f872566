"""Where a read begins, and the consumer for it; pure rules.

Law: a server moves a start that lies behind its last message to the next one that it stores, so
what comes before the start is for the reader to leave out.
Source: nats-server's consumer.go, selectStartingSeqNo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from natsstream.api.names import check_filters
from natsstream.arguments import check_bool, check_choice, check_int
from natsstream.errors import ConfigError
from natsstream.units import format_rfc3339, position_text

DeliverPolicy: TypeAlias = Literal["all", "last", "last_per_subject", "new"]
"""Which messages of a stream come first; the words are those of NATS."""

ON_LOSS = ("raise", "report")
"""The reader's choices for lost messages."""
SEQUENCE_MAX = 2**64 - 1
"""The server keeps sequences in 64 bits."""
TIME_NS_MAX = 2**63 - 1
"""The server keeps moments as signed Unix nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStart:
    """Where one consumer begins: at a sequence, at a moment, or with the last of each subject.

    Attributes:
        sequence: First sequence.
        time_ns: Stored at or after this moment, Unix nanoseconds.
    """

    sequence: int | None = None
    time_ns: int | None = None

    @property
    def is_last_per_subject(self) -> bool:
        """True when it begins with the last message of each subject."""
        return self.sequence is None and self.time_ns is None

    def config(self) -> dict[str, object]:
        """Return the fields of the consumer's configuration."""
        if self.sequence is not None:
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": self.sequence}
        if self.time_ns is not None:
            moment = position_text(self.time_ns)
            return {"deliver_policy": "by_start_time", "opt_start_time": moment}
        return {"deliver_policy": "last_per_subject"}


def check_starts(starts: Mapping[str, bool], *, hint: str) -> None:
    """Refuse more than one start.

    Args:
        starts: The arguments that set one, and whether they are given.
        hint: The way out.

    Raises:
        ConfigError: Two of them are given.
    """
    given = [name for name, is_given in starts.items() if is_given]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} are two starts", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedSpec:
    """Options of an ordered consumer; see `Stream.ordered` for the meaning of each field.

    With `settles` a read counts as caught up only when it has passed, besides what existed, also
    what has replaced some of it meanwhile. With `consistent` a read that begins with the last
    message of each subject chooses them where everything that existed is known.
    `control` hands control records over as well. With `until_closed` the read ends at the record
    that ends the stream.

    Raises:
        ConfigError: Two starts, an unknown word, overlapping filters, or an illegal value.
        SubjectError: A filter is not a legal subject.
    """

    stream: str
    filters: Sequence[str] = ()
    first_seq: int | None = None
    start_time_ns: int | None = None
    newest: int | None = None
    deliver_policy: DeliverPolicy = "all"
    headers_only: bool = False
    created_ns: int | None = None
    on_loss: Literal["raise", "report"] = "raise"
    settles: bool = False
    consistent: bool = False
    control: bool = True
    until_closed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", check_filters(self.filters))
        check_choice(self.deliver_policy, "deliver_policy", get_args(DeliverPolicy))
        check_choice(self.on_loss, "on_loss", ON_LOSS)
        for name in ("headers_only", "control", "until_closed"):
            check_bool(getattr(self, name), name)
        if self.first_seq is not None:
            check_int(self.first_seq, "first_seq", minimum=1, maximum=SEQUENCE_MAX)
        if self.newest is not None:
            check_int(self.newest, "newest", minimum=0)
        if self.created_ns is not None:
            check_int(self.created_ns, "created_ns", minimum=1, maximum=TIME_NS_MAX)
        starts = {
            "first_seq": self.first_seq is not None,
            "start_time": self.start_time_ns is not None,
            "newest": self.newest is not None,
            f'deliver_policy="{self.deliver_policy}"': self.deliver_policy != "all",
        }
        check_starts(starts, hint="give one of them, or none for all")
        if self.start_time_ns is not None:
            format_rfc3339(self.start_time_ns)  # Refuses what no server could read.
