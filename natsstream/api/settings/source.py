"""The origin of a mirror or a source.

Law: see `setting.py`.
Source: nats-server's stream.go StreamSource; ADR-60 for `consumer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from natsstream._wire import subjects
from natsstream.api.names import check_filter, check_stream_name
from natsstream.api.settings.mapping import SubjectTransform
from natsstream.api.settings.setting import (
    Reader,
    Setting,
    Writer,
    check_time,
    read_time,
    reads_many,
    reads_one,
    write_time,
)
from natsstream.arguments import check_int, check_text
from natsstream.errors import ConfigError
from natsstream.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalStream(Setting):
    """The route to a stream of another domain or account.

    Attributes:
        api: Prefix of its JetStream API, such as `$JS.hub.API` or that of an import.
        deliver: Prefix of the subjects that deliver its messages; None for a domain.
        extra: Fields that the server sent and this version does not know.
    """

    api: str
    deliver: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {"api": "api", "deliver": "deliver"}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
            SubjectError: A prefix is not a legal subject.
        """
        check_filter(check_text(self.api, "external.api"))
        if self.deliver is not None and check_text(self.deliver, "external.deliver"):
            check_filter(self.deliver)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {
        "name": "name",
        "deliver_subject": "deliver_subject",
    }

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
            SubjectError: The subject is not legal.
        """
        if not check_text(self.name, "consumer.name"):
            raise ConfigError("consumer.name of a source is empty")
        check_filter(check_text(self.deliver_subject, "consumer.deliver_subject"))


@dataclass(frozen=True, slots=True, kw_only=True)
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
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {
        "name": "name",
        "opt_start_seq": "start_seq",
        "opt_start_time": "start_time",
        "filter_subject": "filter",
        "subject_transforms": "transforms",
        "external": "external",
        "domain": "domain",
        "consumer": "consumer",
    }
    _readers: ClassVar[Mapping[str, Reader]] = {
        "start_seq": Fields.integer,
        "start_time": read_time,
        "transforms": reads_many(SubjectTransform),
        "external": reads_one(ExternalStream),
        "consumer": reads_one(SourceConsumer),
    }
    _writers: ClassVar[Mapping[str, Writer]] = {"start_time": write_time}

    def __post_init__(self) -> None:
        self.check()

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
        what = f"of source {self.name}"
        if self.start_seq is not None:
            check_int(self.start_seq, f"start_seq {what}", minimum=0)
        if self.start_time is not None:
            if self.start_seq:
                raise ConfigError(f"source {self.name} has start_seq and start_time", hint="one")
            check_time(self.start_time, f"start_time {what}")
        if self.filter is not None and check_text(self.filter, f"filter {what}"):
            check_filter(self.filter)
        if self.filter and self.transforms:
            raise ConfigError(
                f"source {self.name} has a filter and transforms",
                hint="a transform filters by its own source",
            )
        self._check_parts(what)

    def _check_parts(self, what: str) -> None:
        if self.transforms is not None:
            transforms = SubjectTransform.several(self.transforms, f"transforms {what}")
            object.__setattr__(self, "transforms", transforms)
        if self.external is not None:
            external = ExternalStream.of(self.external, f"external {what}")
            object.__setattr__(self, "external", external)
            external.check()
        if self.consumer is not None:
            consumer = SourceConsumer.of(self.consumer, f"consumer {what}")
            object.__setattr__(self, "consumer", consumer)
            consumer.check()
        if self.domain is not None:
            check_filter(check_text(self.domain, f"domain {what}"))
            if self.external is not None:
                raise ConfigError(f"source {self.name} has domain and external", hint="give one")
