"""The base of all configurations of views: a view's fields as those of its stream, and back.

Law: a new stream is nats.go's, field by field, so a create by any client over it is idempotent.
All other fields of a stream are kept in `extra`: a round trip loses none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Literal, Self, cast

from natsstream.api.metadata import user_metadata
from natsstream.api.settings.field_kinds import check_duration, check_extra, check_limit
from natsstream.api.settings.placement import Placement
from natsstream.api.settings.setting import json_names
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_rules import window_ns
from natsstream.arguments import check_bool, given_config
from natsstream.errors import ConfigError, ProtocolError
from natsstream.streams.views.comparing import extra_fields, view_differences
from natsstream.streams.views.kind import Kind
from natsstream.units import NS_PER_SECOND, duration_ns

Duration = float | timedelta

_EXTRA_HINT = "give {field of the stream: value}, with the server's names and JSON's values"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewConfig(ABC):
    """The configuration of a view; each kind has a subclass.

    None in a field means the default in a create, and "leave it" in an update.

    Attributes:
        name: Letters, digits, `-` and `_`.
        description: At most 4 KiB.
        ttl: Seconds after which a record expires; 0, the default, is never.
        max_bytes: Bytes in all, above which writes are refused; -1, the default, is no limit.
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        placement: Cluster and tags.
        compression: True compresses on disk (2.10).
        metadata: Free text by key; `_nats.` keys belong to the server.
        extra: Fields of the stream that differ from every client's, by the server's names.
    """

    name: str
    description: str | None = None
    ttl: Duration | None = None
    max_bytes: int | None = None
    storage: Literal["file", "memory"] | None = None
    replicas: int | None = None
    placement: Placement | None = None
    compression: bool | None = None
    metadata: Mapping[str, str] | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    kind: ClassVar[Kind]

    def __post_init__(self) -> None:
        kind = self.kind
        kind.check_name(self.name)
        of = f"of {kind.noun} {self.name}"
        self._check_own(of)
        if self.max_bytes is not None:
            check_limit(self.max_bytes, f"max_bytes {of}")
        if self.compression is not None:
            check_bool(self.compression, f"compression {of}")
        if self.ttl is not None:
            check_duration(self.ttl, f"ttl {of}")
        _check_extra(kind, self.extra, of)
        # The stream's own rules check the rest, and convert mappings.
        stream = self.to_stream()
        for name in ("placement", "republish"):
            if name in kind.fields:
                object.__setattr__(self, name, getattr(stream, name))

    @classmethod
    def of(cls, config: Self | str, given: dict[str, Any]) -> Self:
        """Return a configuration from itself, or from a name and keywords.

        Raises:
            ConfigError: Both are given, or a field is unknown or has no legal value.
            BucketNameError: The name is not legal in every client.
        """
        return given_config(cls, config, given, cls.kind.noun)

    @abstractmethod
    def to_stream(self) -> StreamConfig:
        """Return the stream of a new view: all fields that nats.go sends.

        Cost: no request.
        """

    def to_changes(self, held: StreamConfig) -> StreamConfig:
        """Return only the given fields, as changes of an existing stream.

        Args:
            held: The stream on the server.

        Cost: no request.
        """
        return self._stream(self._changed(held))

    @classmethod
    def from_stream(cls, config: StreamConfig) -> Self:
        """Return the configuration of an existing view, unchecked.

        Args:
            config: Its stream's configuration.

        Cost: no request.
        """
        kind = cls.kind
        known = {name: getattr(config, theirs) for name, theirs in kind.fields.items()}
        known["name"] = kind.name_of(config.name)
        if config.compression is not None:
            known["compression"] = config.compression != "none"
        known["metadata"] = user_metadata(config.metadata) or None
        known["extra"] = extra_fields(kind, cls._usual(config), config)
        made = object.__new__(cls)
        for name, value in known.items():
            object.__setattr__(made, name, value)
        return made

    def differences(self, held: StreamConfig) -> dict[str, tuple[object, object]]:
        """Return the fields in which an existing stream differs from a new view's.

        Args:
            held: The stream on the server.

        Returns:
            The server's value and the wanted one, by name.
        """
        return view_differences(self.kind, self.to_stream(), held)

    @classmethod
    @abstractmethod
    def _usual(cls, config: StreamConfig) -> dict[str, object]:
        """Return the fields that every client sends beside these, by the server's names."""

    def _check_own(self, of: str) -> None:
        """Check the fields of this kind alone."""
        del of

    def _value(self, name: str, value: object) -> object:
        """Return the stream's value for a field of this kind alone."""
        del name
        return value

    def _given(self, unless: ViewConfig | None = None) -> dict[str, object]:
        """Return the fields set here and not in the other one, by the stream's Python names."""
        given: dict[str, object] = {"name": self.kind.stream_of(self.name)}
        for name, theirs in self.kind.fields.items():
            value = getattr(self, name)
            if value is None or (unless is not None and value == getattr(unless, name)):
                continue
            if name == "compression":
                given[theirs] = "s2" if value else "none"
            else:
                given[theirs] = self._value(name, value)
        return given

    def _changed(self, held: StreamConfig) -> dict[str, object]:
        """Return the fields given here that differ, by the stream's Python names."""
        # A value that means the server's own leaves the stream as it is, whoever created it.
        body = self._given(unless=type(self).from_stream(held))
        # A mirror's window has no effect, but a server that has one compares it with the ttl.
        has_window = held.mirror is None or bool(held.duplicate_window)
        if has_window and "max_age" in body:
            ttl_ns = duration_ns(self.ttl or 0)
            if ttl_ns != duration_ns(held.max_age or 0):
                body["duplicate_window"] = window_ns(ttl_ns) / NS_PER_SECOND
        return body

    def _stream(self, body: Mapping[str, object]) -> StreamConfig:
        config = StreamConfig(**cast("dict[str, Any]", body))
        if not self.extra:
            return config
        try:
            config = config.with_json(self.extra)
        except ProtocolError as error:
            raise ConfigError(
                f"extra of {self.kind.noun} {self.name} has a value of the wrong type",
                detail=str(error),
                hint=_EXTRA_HINT,
            ) from error
        config.check()
        return config


def _check_extra(kind: Kind, extra: object, of: str) -> None:
    for text in check_extra(extra, f"extra {of}"):
        theirs = json_names(StreamConfig).get(text, text)
        if theirs in kind.names or text == "name" or text in kind.derived:
            mine = kind.names.get(theirs)
            way = f"give {mine} instead" if mine else "leave it out"
            raise ConfigError(f"extra {of} has {text}", hint=way)
