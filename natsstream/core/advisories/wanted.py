"""Which subjects an advisory reader listens to; pure rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from natsstream.advisories import KINDS
from natsstream.api.names import check_filter, check_stream_name
from natsstream.arguments import check_choice, check_int, check_text, check_texts
from natsstream.errors import ConfigError

MAX_PENDING = 10_000

_TOKEN = re.compile(r"[^\s.*>]+")
# Without a choice: everything but `ADVISORY.API`, which servers send for each API call.
_STREAM_EVENTS = ("ADVISORY.STREAM.*",)
_CONSUMER_EVENTS = ("ADVISORY.CONSUMER.*", "METRIC.CONSUMER.*")
_OTHER_EVENTS = ("ADVISORY.DOMAIN.>", "ADVISORY.SERVER.>", "ADVISORY.API.>")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisoryFilter:
    """The selection of advisories.

    Attributes:
        kinds: Names of `AdvisoryKind`; empty for all but `api_audit`.
        stream: Only about this stream; None for all.
        consumer: Only about consumers of this name; None for all.
        domain: Only from this JetStream domain, and where none is told; None for all.
        prefix: Prefix before `.ADVISORY`.
        max_pending: Events that may wait to be read.
    """

    kinds: Sequence[str]
    stream: str | None
    consumer: str | None
    domain: str | None
    prefix: str
    max_pending: int

    def __post_init__(self) -> None:
        for kind in check_texts(self.kinds, "kinds"):
            check_choice(kind, "a kind", tuple(KINDS))
        if self.stream is not None:
            check_stream_name(check_text(self.stream, "stream"))
        if self.consumer is not None and not _TOKEN.fullmatch(
            check_text(self.consumer, "consumer")
        ):
            raise ConfigError(f"consumer {self.consumer!r} is no consumer's name")
        if self.domain is not None:
            check_text(self.domain, "domain")
        if "*" in check_filter(check_text(self.prefix, "prefix")) or ">" in self.prefix:
            raise ConfigError(f"prefix {self.prefix!r} has a wildcard")
        check_int(self.max_pending, "max_pending", minimum=1)

    def subjects(self) -> list[str]:
        """Return what to listen to.

        Raises:
            ConfigError: No event of the kinds is about a stream or a consumer.
        """
        bases = [KINDS[kind] for kind in self.kinds] or [*_STREAM_EVENTS, *_CONSUMER_EVENTS]
        found = [subject for base in bases for subject in self._subjects_of(base)]
        if not self.kinds and self.stream is None and self.consumer is None:
            found += _OTHER_EVENTS
        if not found:
            raise ConfigError(
                f"no event of {', '.join(self.kinds)} is about what is asked for",
                hint="leave out stream or consumer, or choose other kinds",
            )
        return [f"{self.prefix}.{subject}" for subject in dict.fromkeys(found)]

    def _subjects_of(self, base: str) -> list[str]:
        stream, consumer = self.stream or "*", self.consumer or "*"
        if ".CONSUMER." in base:
            return [f"{base}.{stream}.{consumer}"]
        if self.consumer is not None:
            return []
        if ".STREAM." in base:
            return [f"{base}.{stream}"]
        return [] if self.stream is not None else [base]
