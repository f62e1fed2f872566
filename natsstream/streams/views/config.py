"""The base of all configurations of views: a view's fields as those of its stream, and back.

Law: a new stream is nats.go's, field by field, so a create by any client over it is idempotent.
All other fields of a stream are kept in `extra`: a round trip loses none. A field that follows from
another one, as the duplicate window from the ttl, is not reported beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, Self

from natsstream.api.change_plan import created, differences
from natsstream.api.diff import ConfigChange, FieldChange
from natsstream.api.metadata import user_metadata
from natsstream.api.settings.field_kinds import DURATION, LIMIT, FieldKind, number
from natsstream.api.settings.placement import Placement
from natsstream.api.settings.setting import Setting, field_kinds, json_names, meaning
from natsstream.api.stream_config import REPLICAS_MAX, StreamConfig
from natsstream.api.stream_rules import STREAM_RULES, stream_defaults, window_ns
from natsstream.arguments import check_bool
from natsstream.constructors import given_config
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.streams.views.kind import Kind
from natsstream.units import duration_ns

Duration = float | timedelta

_NOT_COMPRESSED = "none"


def _read_compression(fields: Fields, name: str) -> bool:
    return fields.text(name) != _NOT_COMPRESSED


def _write_compression(value: object) -> str:
    return "s2" if value else _NOT_COMPRESSED


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ViewConfig(Setting, ABC):
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

    kind: ClassVar[Kind]
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "ttl": DURATION.named("max_age"),
        "max_bytes": LIMIT,
        "replicas": number(1, REPLICAS_MAX).named("num_replicas"),
        "compression": FieldKind(
            check=check_bool, read=_read_compression, write=_write_compression
        ),
    }

    def check(self) -> None:
        """Refuse invalid values; parts given as mappings become their classes.

        Raises:
            ConfigError: A field has an invalid value, also in `extra`.
            BucketNameError: The name is not legal in every client.
        """
        self.kind.check_name(self.name)
        Setting.check(self)
        for text in self.extra:
            mine = json_names(type(self)).get(json_name(text))
            if mine or text in self.kind.derived:
                way = f"give {mine} instead" if mine else "leave it out"
                raise ConfigError(f"{self._what('extra')} has {text}", hint=way)
        self._check_own()
        self.to_stream()  # The stream's own rules check the rest.

    @classmethod
    def from_call(cls, config: Self | str, given: Mapping[str, object]) -> Self:
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
        made = cls.from_json(config.to_json())
        object.__setattr__(made, "name", cls.kind.name_of(config.name))
        object.__setattr__(made, "metadata", user_metadata(config.metadata) or None)
        object.__setattr__(made, "extra", cls._extra_fields(config))
        return made

    def field_json(self, name: str, value: object) -> dict[str, object]:
        """Return the stream's fields, by the server's names, for one field of the view."""
        if name == "name":
            return {"name": self.kind.stream_of(value)}
        return Setting.field_json(self, name, value)

    def differences(self, held: StreamConfig) -> dict[str, tuple[object, object]]:
        """Return the fields in which an existing stream differs from a new view's.

        Args:
            held: The stream on the server.

        Returns:
            The server's value and the wanted one, by name.
        """
        wanted = self.to_stream()
        found = dict(differences(STREAM_RULES, wanted, held.to_json()))
        if "max_age" in found or wanted.mirror is not None:
            # It follows from max_age, and servers drop a mirror's.
            found.pop("duplicate_window", None)
        elif "duplicate_window" in found and wanted.duplicate_window is None:
            usual = stream_defaults(held)["duplicate_window"]
            found["duplicate_window"] = (held.duplicate_window, usual)
        if "subject_delete_marker_ttl" in found:
            found.pop("allow_msg_ttl", None)
        named = (self._as_view(name, *values) for name, values in found.items())
        return {name: (before, after) for name, before, after in named}

    @classmethod
    def renamed(cls, change: ConfigChange) -> ConfigChange:
        """Return a change of a view's stream under the view's names.

        A new view reports those of its own fields that differ from the default.
        """
        is_new = change.action == "created"
        usual = cls._new_values() if is_new else {}
        named = tuple(
            FieldChange(*cls._as_view(each.name, each.before, each.after), each.refusal)
            for each in change.fields
            if not is_new
            or (json_name(each.name) in json_names(cls) and usual.get(each.name) != each.after)
        )
        return ConfigChange(cls.kind.name_of(change.name), change.action, named)

    @classmethod
    def _new_values(cls) -> dict[str, object]:
        """Return the fields of the stream of a view without options, by the stream's names."""
        return {each.name: each.after for each in created(cls(name="new").to_stream()).fields}

    @classmethod
    @abstractmethod
    def _usual(cls, config: StreamConfig) -> dict[str, object]:
        """Return the fields that every client sends beside these, by the server's names."""

    def _check_own(self) -> None:
        """Check what this kind alone asks of several fields."""

    def _changed(self, held: StreamConfig) -> dict[str, object]:
        """Return the fields given here that differ, by the server's names."""
        # A value that means the server's own leaves the stream as it is, whoever created it.
        theirs, body = type(self).from_stream(held), dict(self.extra)
        for name, value in self.values().items():
            if name == "name" or (value is not None and value != getattr(theirs, name)):
                body.update(self.field_json(name, value))
        # A mirror's window has no effect, but a server that has one compares it with the ttl.
        has_window = held.mirror is None or bool(held.duplicate_window)
        if has_window and "max_age" in body:
            ttl_ns = duration_ns(self.ttl or 0)
            if ttl_ns != duration_ns(held.max_age or 0):
                body.setdefault("duplicate_window", window_ns(ttl_ns))
        return body

    def _stream(self, body: Mapping[str, object]) -> StreamConfig:
        """Return the stream with fields by the server's names."""
        fields = Fields(body, f"extra of {self.kind.noun} {self.name}", error=ConfigError)
        config = StreamConfig.from_json(fields)
        config.check()
        return config

    @classmethod
    def _extra_fields(cls, config: StreamConfig) -> dict[str, object]:
        """Return the stream's fields that differ from those of every client's views."""
        own = {*json_names(cls), *cls.kind.derived}
        if config.mirror is not None:
            own.add("duplicate_window")  # Clusters drop it; single servers do when they restart.
        filled_in = StreamConfig(name=config.name, **stream_defaults(config)).to_json()
        held, usual = {**filled_in, **config.to_json()}, {**filled_in, **cls._usual(config)}
        return {
            name: held.get(name, False)
            for name in {**held, **usual}
            if name not in own and meaning(held.get(name)) != meaning(usual.get(name))
        }

    @classmethod
    def _as_view(cls, name: str, before: object, after: object) -> tuple[str, object, object]:
        if name == "compression":
            before, after = (
                None if each is None else each != _NOT_COMPRESSED for each in (before, after)
            )
        return json_names(cls).get(json_name(name), name), before, after

    def _what(self, name: str) -> str:
        return f"{name} of {self.kind.noun} {self.name}"


def json_name(name: str) -> str:
    """Return the server's name of a stream's field; one that it has not stays as it is."""
    kind = field_kinds(StreamConfig).get(name)
    return kind.json_names[0] if kind is not None else name
