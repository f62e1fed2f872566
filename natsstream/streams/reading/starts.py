"""Where a read begins, and the consumer for it; pure rules.

Law: a server moves a start that lies behind its last message to the next one that it stores, so
what comes before the start is for the reader to leave out.
Source: nats-server's consumer.go, selectStartingSeqNo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from natsstream.errors import ConfigError
from natsstream.streams.names import check_filter
from natsstream.units import format_rfc3339

DeliverPolicy: TypeAlias = Literal["all", "last", "last_per_subject", "new"]
"""Which messages of a stream come first; the words are those of NATS."""


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
            moment = format_rfc3339(self.time_ns)
            return {"deliver_policy": "by_start_time", "opt_start_time": moment}
        return {"deliver_policy": "last_per_subject"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedSpec:
    """What an ordered consumer reads; see `Stream.ordered` for the meaning of each field.

    Raises:
        ConfigError: Two starts, an unknown word, or a value that can not work.
        SubjectError: A filter is not a legal subject.
    """

    stream: str
    filters: Sequence[str] = ()
    first: int | None = None
    start_time_ns: int | None = None
    deliver_policy: DeliverPolicy = "all"
    headers_only: bool = False
    created_ns: int | None = None
    on_loss: Literal["raise", "report"] = "raise"

    def __post_init__(self) -> None:
        if isinstance(self.filters, str):
            raise ConfigError(
                "filters is one string", hint=f"give a list: filters=[{self.filters!r}]"
            )
        object.__setattr__(self, "filters", tuple(check_filter(each) for each in self.filters))
        _check_word("deliver_policy", self.deliver_policy, get_args(DeliverPolicy))
        _check_word("on_loss", self.on_loss, ("raise", "report"))
        if self.first is not None and self.first < 1:
            raise ConfigError(f"sequences begin at 1, got first={self.first}")
        starts = {
            "first": self.first is not None,
            "start_time": self.start_time_ns is not None,
            f'deliver_policy="{self.deliver_policy}"': self.deliver_policy != "all",
        }
        given = [name for name, is_given in starts.items() if is_given]
        if len(given) > 1:
            raise ConfigError(
                f"{' and '.join(given)} are two starts", hint="give one of them, or none for all"
            )
        if self.start_time_ns is not None:
            format_rfc3339(self.start_time_ns)  # Refuses what no server could read.


def _check_word(name: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise ConfigError(f"{name} is {word!r}", hint=f"it is one of {', '.join(words)}")
