"""The request of a read of the newest messages; pure rules.

Law: filters may repeat or cover each other here: what a wider one covers is left out, and each
message comes once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from natsstream.api.names import check_filter, drop_covered
from natsstream.arguments import check_bool, check_int, check_texts
from natsstream.errors import ConfigError, SubjectError
from natsstream.read.start_position import (
    SEQUENCE_MAX,
    DeliverPolicy,
    OrderedSpec,
    check_starts,
)

FILTERS_MAX = 1_000
"""nats-server 2.15 compares each filter with each: 60 ms for these, 25 s for 20,000."""
EVERYTHING = ">"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRequest:
    """The request; see `Stream.latest` for the meaning of each field.

    Raises:
        ConfigError: Two starts, too many filters, or an illegal value.
        SubjectError: A filter is not a legal subject.
    """

    stream: str
    filters: Sequence[str] = ()
    include_history: bool = False
    updates_only: bool = False
    headers_only: bool = False
    consistent: bool = False
    first_seq: int | None = None
    created_ns: int | None = None
    control: bool = True

    def __post_init__(self) -> None:
        texts = check_texts(self.filters, "filters", error=SubjectError)
        if len(texts) > FILTERS_MAX:
            raise ConfigError(
                f"{len(texts)} filters are more than {FILTERS_MAX}",
                hint="use wildcards, or several reads; the server's time grows with their square",
            )
        object.__setattr__(self, "filters", drop_covered(check_filter(each) for each in texts))
        for name in ("include_history", "updates_only", "headers_only", "consistent", "control"):
            check_bool(getattr(self, name), name)
        if self.first_seq is not None:
            check_int(self.first_seq, "first_seq", minimum=1, maximum=SEQUENCE_MAX)
        starts = {
            "include_history": self.include_history,
            "updates_only": self.updates_only,
            "first_seq": self.first_seq is not None,
        }
        check_starts(starts, hint="give one of them, or none for the newest of each")

    def ordered(self) -> OrderedSpec:
        """Return the ordered read for it."""
        policy: DeliverPolicy = "last_per_subject"
        if self.include_history or self.first_seq is not None:
            policy = "all"
        elif self.updates_only:
            policy = "new"
        return OrderedSpec(
            stream=self.stream,
            # With a filter nobody asks why sequences are missing: here most of them were replaced.
            filters=self.filters or (EVERYTHING,),
            first_seq=self.first_seq,
            deliver_policy=policy,
            headers_only=self.headers_only,
            created_ns=self.created_ns,
            settles=not self.updates_only,
            consistent=self.consistent,
            control=self.control,
        )
