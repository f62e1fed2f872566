"""What an object store is, and the stream that holds it: one configuration in two languages.

What lives here: `ObjectBucketConfig`, its fields as those of a stream, and back. What must not:
asking a server, and where objects are (`place.py`).

Law: what is made here is what nats.go makes, field by field, so that anybody's create over it is
idempotent. What a stream has beyond that stays in `extra`: there and back nothing is lost.
Source: ADR-20; nats.go jetstream/object.go prepareObjectStoreConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal, cast

from natsstream.arguments import check_bool, check_int, check_names, check_seconds
from natsstream.errors import ConfigError
from natsstream.objects.describing import check_description, check_metadata
from natsstream.objects.names import check_bucket_name
from natsstream.objects.place import STREAM_PREFIX, Place
from natsstream.streams.config import StreamConfig, user_metadata
from natsstream.streams.diff import ConfigChange, FieldChange
from natsstream.streams.settings.placement import Placement
from natsstream.streams.settings.setting import meaning
from natsstream.units import NS_PER_SECOND, duration_ns

Duration = float | timedelta

_WINDOW_S = 120.0

# Python name of a store's field -> that of the stream's field which holds it.
_STREAM_FIELDS = {
    "description": "description",
    "ttl": "max_age",
    "max_bytes": "max_bytes",
    "storage": "storage",
    "replicas": "replicas",
    "placement": "placement",
    "compression": "compression",
    "metadata": "metadata",
}
_STORE_FIELDS = {theirs: name for name, theirs in _STREAM_FIELDS.items()}
_JSON_NAMES = {"replicas": "num_replicas"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectBucketConfig:
    """What an object store keeps, for how long, and where.

    None in a field means the default where a store is made, and "as it is" where one is changed.
    Durations are seconds or timedelta. Where a field is a class of its own, a mapping with the
    server's field names is taken as well, and an empty one gives up what there was.

    Attributes:
        name: Letters, digits, `-` and `_`.
        description: At most 4 KiB.
        ttl: Seconds after which an object is forgotten; 0, the default, is never.
        max_bytes: Bytes of the whole store, beyond which writes are refused; -1, the default, is
            no limit.
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        placement: Cluster and tags.
        compression: True compresses on disk (2.10).
        metadata: Free text by key; `_nats.` keys belong to the server.
        extra: Fields of the stream, by the server's names, that are other than in the stores of
            every client, such as `{"republish": {...}}`.
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

    def __post_init__(self) -> None:
        check_bucket_name(self.name)
        of = f"of object store {self.name}"
        if self.max_bytes is not None:
            check_int(self.max_bytes, f"max_bytes {of}", minimum=-1)
        if self.compression is not None:
            check_bool(self.compression, f"compression {of}")
        if self.ttl is not None and not isinstance(self.ttl, timedelta):
            check_seconds(self.ttl, f"ttl {of}", may_be_zero=True)
        if self.description is not None:
            check_description(self.description)
        if self.metadata is not None:
            check_metadata(self.metadata)
        if self.placement is not None:
            object.__setattr__(self, "placement", Placement.of(self.placement, f"placement {of}"))
        _check_extra(self.extra, of)
        # The stream's own rules find the rest, and speak of the same values.
        self.to_stream()

    def to_stream(self) -> StreamConfig:
        """Return the stream of a new store, as nats.go makes it.

        Cost: no request.
        """
        place = Place(self.name)
        body: dict[str, object] = {
            "subjects": [place.chunk_filter, place.meta_filter],
            "retention": "limits",
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
            "discard": "new",
            "storage": "file",
            "replicas": 1,
            "allow_direct": True,
            "allow_rollup_hdrs": True,
            **self._given(),
        }
        return _with_json(StreamConfig(**cast("dict[str, Any]", body)), self.extra)

    def to_changes(self, held: StreamConfig) -> StreamConfig:
        """Return only what is given here, as changes of the stream that a store has.

        Args:
            held: The stream as it is.

        Cost: no request.
        """
        body = self._given()
        if self.ttl is not None and duration_ns(self.ttl) != duration_ns(held.max_age or 0):
            seconds = duration_ns(self.ttl) / NS_PER_SECOND
            # The server refuses to remember ids for longer than messages.
            body["duplicate_window"] = min(seconds, _WINDOW_S) or _WINDOW_S
        return _with_json(StreamConfig(**cast("dict[str, Any]", body)), self.extra)

    @classmethod
    def from_stream(cls, config: StreamConfig) -> ObjectBucketConfig:
        """Return the configuration of a store that exists; nothing is checked.

        Args:
            config: Its stream's.

        Cost: no request.
        """
        known: dict[str, Any] = dict.fromkeys(item.name for item in fields(cls))
        for name, theirs in _STREAM_FIELDS.items():
            known[name] = getattr(config, theirs)
        known["name"] = config.name.removeprefix(STREAM_PREFIX)
        if config.compression is not None:
            known["compression"] = config.compression != "none"
        known["extra"] = {}
        store = object.__new__(cls)
        for name, value in known.items():
            object.__setattr__(store, name, value)
        object.__setattr__(store, "extra", _beyond(store, config))
        return store

    def _given(self) -> dict[str, object]:
        """Return what is set here, by the stream's Python names."""
        given: dict[str, object] = {"name": Place(self.name).stream}
        for name, theirs in _STREAM_FIELDS.items():
            value = getattr(self, name)
            if value is None:
                continue
            if name == "compression":
                value = "s2" if value else "none"
            elif name == "max_bytes":
                value = value or -1
            given[theirs] = value
        return given


def store_config(config: ObjectBucketConfig | str, given: dict[str, Any]) -> ObjectBucketConfig:
    """Return a configuration that was given as itself, or as a name and keywords.

    Raises:
        ConfigError: It was given both ways, or a field is unknown or has no legal value.
        BucketNameError: No client would take the name.
    """
    if isinstance(config, ObjectBucketConfig):
        if given:
            raise ConfigError("give an ObjectBucketConfig or keywords, not both")
        return config
    known = [item.name for item in fields(ObjectBucketConfig) if item.name != "name"]
    hint = "see ObjectBucketConfig; other fields of the stream go into extra={...}"
    check_names(given, known, "object store field", hint=hint)
    return ObjectBucketConfig(name=config, **given)


def store_change(change: ConfigChange) -> ConfigChange:
    """Return what was done to a store's stream, by the store's names."""
    named = tuple(
        FieldChange(*_as_store(each.name, each.before, each.after), each.refusal)
        for each in change.fields
    )
    return ConfigChange(change.name.removeprefix(STREAM_PREFIX), change.action, named)


def differences(wanted: ObjectBucketConfig, held: StreamConfig) -> dict[str, tuple[object, object]]:
    """Return the fields in which a store is other than a new one.

    Args:
        wanted: The new one.
        held: The stream as the server has it.

    Returns:
        Name to the server's value and the wanted one; None where there is none.
    """
    ours = _said(ObjectBucketConfig.from_stream(wanted.to_stream()))
    theirs = _said(ObjectBucketConfig.from_stream(held))
    names = sorted({*ours, *theirs})
    pairs = {name: (theirs.get(name), ours.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def is_store(config: StreamConfig) -> bool:
    """Tell whether a stream is an object store: by its name, and by what it captures."""
    if not config.name.startswith(STREAM_PREFIX):
        return False
    place = Place(config.name.removeprefix(STREAM_PREFIX))
    return {place.chunk_filter, place.meta_filter} <= set(config.subjects or ())


def _said(store: ObjectBucketConfig) -> dict[str, object]:
    """Return what a store's configuration says beyond the defaults, by name."""
    said: dict[str, object] = {name: getattr(store, name) for name in _STREAM_FIELDS}
    if store.placement is not None:
        said["placement"] = store.placement.to_json()
    said["metadata"] = user_metadata(store.metadata or {})
    said |= store.extra
    return {name: value for name, value in said.items() if value or name in store.extra}


def _with_json(config: StreamConfig, body: Mapping[str, object]) -> StreamConfig:
    """Return a stream's configuration with other fields, given by the server's names."""
    return StreamConfig.from_json({**config.to_json(), **body}) if body else config


def _as_store(name: str, before: object, after: object) -> tuple[str, object, object]:
    if name == "compression":
        before, after = (each is not None and each != "none" for each in (before, after))
    return _STORE_FIELDS.get(name, name), before, after


def _check_extra(extra: object, of: str) -> None:
    if not isinstance(extra, Mapping):
        raise ConfigError(f"extra {of} is no mapping", hint="give {field of the stream: value}")
    ours = {_JSON_NAMES.get(theirs, theirs): name for theirs, name in _STORE_FIELDS.items()}
    for name in cast("Mapping[object, object]", extra):
        if name in ours or name in ("name", "subjects"):
            way = f"give {ours[cast('str', name)]} instead" if name in ours else "leave it out"
            raise ConfigError(f"extra {of} has {name}", hint=way)


def _beyond(store: ObjectBucketConfig, config: StreamConfig) -> dict[str, object]:
    """Return the stream's fields that are other than those of a new store."""
    usual, held = store.to_stream().to_json(), config.to_json()
    own = {_JSON_NAMES.get(theirs, theirs) for theirs in _STORE_FIELDS} | {"name", "subjects"}
    # What the server fills in where a new store says nothing.
    usual.setdefault("max_msgs_per_subject", -1)
    usual.setdefault("max_msg_size", -1)
    usual.setdefault("duplicate_window", duration_ns(_window(config)))
    return {
        name: value
        for name, value in held.items()
        if name not in own and value and meaning(value) != meaning(usual.get(name))
    } | {
        name: False
        for name, value in usual.items()
        if isinstance(value, bool) and value and not held.get(name)
    }


def _window(config: StreamConfig) -> float:
    """Return for how long a stream remembers ids where nobody has said it."""
    kept_s = duration_ns(config.max_age or 0) / NS_PER_SECOND
    return min(kept_s, _WINDOW_S) or _WINDOW_S
