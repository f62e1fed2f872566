"""The origin of a mirror or a source.

Law: see `setting.py`.
Source: nats-server's stream.go StreamSource; ADR-60 for `consumer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from natsstream._wire import subjects
from natsstream.api.names import check_stream_name
from natsstream.api.settings.field_kinds import (
    FILLED_TEXT,
    FILTER,
    FILTER_OR_EMPTY,
    START_TIME,
    UINT64_MAX,
    FieldKind,
    number,
)
from natsstream.api.settings.mapping import SubjectTransform
from natsstream.api.settings.setting import Setting, parts
from natsstream.arguments import check_text
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError

# A transform filters by its own source.
_EXCLUSIVE = (("start_seq", "start_time"), ("filter", "transforms"), ("domain", "external"))


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExternalStream(Setting):
    """The route to a stream of another domain or account.

    Attributes:
        api: Prefix of its JetStream API, such as `$JS.hub.API` or that of an import.
        deliver: Prefix of the subjects that deliver its messages; None for a domain.
        extra: Fields that the server sent and this version does not know.
    """

    api: str
    deliver: str | None = None

    _noun: ClassVar[str] = "external"
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {"api": FILTER, "deliver": FILTER_OR_EMPTY}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SourceConsumer(Setting):
    """An existing durable consumer of the origin that a stream reads through (2.14, ADR-60).

    It is a push consumer with `ack_policy="flow_control"`. With it, a copy of a work queue or an
    interest stream loses no messages.

    Attributes:
        name: The consumer's name.
        deliver_subject: Its deliver subject.
        extra: Fields that the server sent and this version does not know.
    """

    name: str
    deliver_subject: str

    _noun: ClassVar[str] = "consumer"
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "name": FILLED_TEXT,
        "deliver_subject": FILTER,
    }


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamSource(Setting):
    """The stream that a mirror or a source copies from.

    Attributes:
        name: Its name.
        start_seq: First sequence that is copied; None is the first that it has.
        start_time: Copies from this time on: a datetime with a time zone, or Unix nanoseconds. The
            server's time comes back as nanoseconds if a datetime cannot hold it exactly.
        filter: Copies only these subjects; not with `transforms`.
        transforms: Subject mappings, each with a filter of its own (2.10).
        external: The route to another account or domain.
        domain: Name of another domain, instead of `external`.
        consumer: Reads through this consumer of the origin (2.14).
        extra: Fields that the server sent and this version does not know.
    """

    name: str
    start_seq: int | None = None
    start_time: datetime | int | None = None
    filter: str | None = None
    transforms: Sequence[SubjectTransform] | None = None
    external: ExternalStream | None = None
    domain: str | None = None
    consumer: SourceConsumer | None = None

    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "start_seq": number(1, UINT64_MAX).named("opt_start_seq"),
        "start_time": START_TIME.named("opt_start_time"),
        "filter": FILTER_OR_EMPTY.named("filter_subject"),
        "transforms": parts(SubjectTransform).named("subject_transforms"),
        "domain": FILTER,
    }

    @classmethod
    def of(cls, value: object, what: str) -> Self:
        """Return a source that is given as `Setting.of` says, or by its name alone."""
        if not isinstance(value, str):
            # The class by name: one with slots is made anew by its decorator.
            return super(StreamSource, cls).of(value, what)
        source = cls(name=value)
        source.check()
        return source

    def to_json(self) -> dict[str, object]:
        """Return the JSON object for the server, which has no `domain` field."""
        body = Setting.to_json(self)
        domain = body.pop("domain", None)
        if domain is not None:
            body["external"] = {"api": subjects.api_prefix(str(domain), None)}
        return body

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
            StreamNameError: The name is not legal.
            SubjectError: A filter or prefix is not legal.
        """
        check_stream_name(check_text(self.name, "name of a stream source"))
        Setting.check(self)
        for one, other in _EXCLUSIVE:
            if getattr(self, one) and getattr(self, other) not in (None, ()):
                raise ConfigError(f"source {self.name} has {one} and {other}", hint="give one")
        for part in (self.external, self.consumer):
            if part is not None:  # An empty one as well: it removes nothing here.
                part.check()

    def _what(self, name: str) -> str:
        return f"{name} of source {self.name}"
