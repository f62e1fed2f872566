"""What a bucket is, and the stream that holds it: one configuration in two languages.

What lives here: `BucketConfig`, its fields as those of a stream, and back. What must not: asking a
server, and where keys are (`placing.py`).

Law: what is made here is what nats.go makes, field by field, so that anybody's create over it is
idempotent. What a stream has beyond that stays in `extra`: there and back nothing is lost.
Source: ADR-8, ADR-48, ADR-57; nats.go jetstream/kv.go prepareKeyValueConfig.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any, Literal, cast

from natsstream.arguments import check_bool, check_int, check_names, check_text
from natsstream.errors import ConfigError
from natsstream.kv.buckets.conventions import (
    BUCKET_FIELDS,
    DEFAULTS,
    HISTORY_MAX,
    STREAM_FIELDS,
    STREAM_PREFIX,
    beyond,
    check_bucket_name,
    sourced,
    stream_name,
    usual_of,
    window_ns,
    with_prefix,
)
from natsstream.streams.config import StreamConfig, user_metadata
from natsstream.streams.settings.mapping import Republish
from natsstream.streams.settings.placement import Placement
from natsstream.streams.settings.source import StreamSource
from natsstream.units import NS_PER_SECOND, duration_ns

Duration = float | timedelta

_MARKER_S = 1.0
_EXTRA_HINT = "give {field of the stream: value}, with the server's names and JSON's values"


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketConfig:
    """What a bucket keeps, for how long, and where.

    None in a field means the default where a bucket is made, and "as it is" where one is changed.
    Durations are seconds or timedelta. Where a field is a class of its own, a mapping with the
    server's field names is taken as well, and an empty one gives up what there was.

    Attributes:
        name: Letters, digits, `-` and `_`.
        description: At most 4 KiB.
        history: Revisions kept of each key, 1 to 64; default 1.
        ttl: Seconds after which a revision is forgotten; 0, the default, is never.
        max_bytes: Bytes of the whole bucket, beyond which writes are refused; -1, the default, is
            no limit.
        max_value_size: Bytes of one value, headers included; -1, the default, is no limit.
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        placement: Cluster and tags.
        republish: Copies of what is stored to plain NATS.
        compression: True compresses on disk (2.10).
        metadata: Free text by key; `_nats.` keys belong to the server.
        mirror: The bucket that this one is a read replica of; a name alone is taken as well.
            Writes go to that bucket.
        sources: The buckets that this one copies from, its own keys beside; names alone are taken
            as well. Their keys are the same here, unless a source has transforms of its own.
        limit_marker_ttl: Seconds, at least 1, for which a marker tells watches of a key that has
            expired; also what lets single keys have a `ttl` (2.11). None makes a bucket without.
        extra: Fields of the stream, by the server's names, that are other than in the buckets of
            every client, such as `{"allow_direct": False}`.
    """

    name: str
    description: str | None = None
    history: int | None = None
    ttl: Duration | None = None
    max_bytes: int | None = None
    max_value_size: int | None = None
    storage: Literal["file", "memory"] | None = None
    replicas: int | None = None
    placement: Placement | None = None
    republish: Republish | None = None
    compression: bool | None = None
    metadata: Mapping[str, str] | None = None
    mirror: StreamSource | None = None
    sources: Sequence[StreamSource] | None = None
    limit_marker_ttl: Duration | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        check_bucket_name(self.name)
        of = f"of bucket {self.name}"
        if self.history is not None:
            check_int(self.history, f"history {of}", minimum=1, maximum=HISTORY_MAX)
        for name in ("max_bytes", "max_value_size"):
            if getattr(self, name) is not None:
                check_int(getattr(self, name), f"{name} {of}", minimum=-1)
        if self.compression is not None:
            check_bool(self.compression, f"compression {of}")
        if self.mirror is not None:
            object.__setattr__(self, "mirror", _source(self.mirror, f"mirror {of}"))
        if self.sources is not None:
            object.__setattr__(self, "sources", _sources(self.sources, f"sources {of}"))
        if self.mirror is not None and self.sources and self.mirror.to_json():
            raise ConfigError(f"mirror and sources {of} exclude each other", hint="give one")
        if self.mirror is not None and self.mirror.to_json() and self.limit_marker_ttl:
            raise ConfigError(
                f"limit_marker_ttl and mirror {of} exclude each other",
                hint="the markers of the origin come here too",
            )
        _check_extra(self.extra, of)
        for name in ("ttl", "limit_marker_ttl"):
            _check_seconds(getattr(self, name), f"{name} {of}")
        # The stream's own rules find the rest, and make its parts of mappings.
        stream = self.to_stream()
        for name in ("placement", "republish"):
            object.__setattr__(self, name, getattr(stream, name))
        if self.limit_marker_ttl is not None:
            seconds = duration_ns(self.limit_marker_ttl) / NS_PER_SECOND
            if 0 < seconds < _MARKER_S:
                raise ConfigError(
                    f"limit_marker_ttl {of} is {seconds:g} s",
                    hint="servers keep markers for a second at least; 0 is none",
                )

    def to_stream(self) -> StreamConfig:
        """Return the stream of a new bucket: all that nats.go sends.

        Cost: no request.
        """
        given = self._given()
        if not self.limit_marker_ttl:
            given.pop("subject_delete_marker_ttl", None)
        is_mirror = bool(self.mirror and self.mirror.to_json())
        window = window_ns(duration_ns(self.ttl or 0)) / NS_PER_SECOND
        usual = usual_of(self.name, is_mirror=is_mirror, has_markers=bool(self.limit_marker_ttl))
        body = {**DEFAULTS, **usual, "duplicate_window": window, **given}
        return with_json(StreamConfig(**cast("dict[str, Any]", body)), self.extra)

    def to_changes(self, held: StreamConfig) -> StreamConfig:
        """Return only what is given here, as changes of the stream that a bucket has.

        Args:
            held: The stream as it is.

        Raises:
            ConfigError: A mirror shall be given up, and its keys would not be found any more.

        Cost: no request.
        """
        # What is said as the server says it stays, also where no client of buckets made it.
        theirs = BucketConfig.from_stream(held)
        body = self._given(unless=theirs)
        # A mirror's window means nothing, but a server that has one compares it with the ttl.
        has_window = held.mirror is None or bool(held.duplicate_window)
        if has_window and "max_age" in body and _differ(body["max_age"], held.max_age):
            body["duplicate_window"] = window_ns(duration_ns(self.ttl or 0)) / NS_PER_SECOND
        if self.limit_marker_ttl:
            body["allow_msg_ttl"] = True
        if self.mirror is not None and held.mirror is not None and not self.mirror.to_json():
            raise ConfigError(
                f"bucket {self.name} can not give up its mirror: it keeps the keys under the "
                f"subjects of {held.mirror.name}, where no client would look for them",
                hint="make a bucket with sources=[...] to go on with a copy",
            )
        config = StreamConfig(**cast("dict[str, Any]", body))
        return with_json(config, self.extra)

    @classmethod
    def from_stream(cls, config: StreamConfig) -> BucketConfig:
        """Return the configuration of a bucket that exists; nothing is checked.

        Args:
            config: Its stream's.
        """
        known = {name: getattr(config, theirs) for name, theirs in STREAM_FIELDS.items()}
        known["name"] = config.name.removeprefix(STREAM_PREFIX)
        if config.compression is not None:
            known["compression"] = config.compression != "none"
        if not config.subject_delete_marker_ttl:
            known["limit_marker_ttl"] = None
        known["metadata"] = user_metadata(config.metadata or {}) or None
        known["extra"] = beyond(config)
        bucket = object.__new__(cls)
        for name, value in known.items():
            object.__setattr__(bucket, name, value)
        return bucket

    def _given(self, unless: BucketConfig | None = None) -> dict[str, object]:
        """Return what is set here and not in the other one, by the stream's Python names."""
        given: dict[str, object] = {"name": stream_name(self.name)}
        for name, theirs in STREAM_FIELDS.items():
            value = getattr(self, name)
            if value is None or (unless is not None and value == getattr(unless, name)):
                continue
            if name == "compression":
                value = "s2" if value else "none"
            elif name in ("max_bytes", "max_value_size"):
                value = value or -1
            elif name == "sources":
                value = [sourced(each, self.name) for each in cast("Sequence[Any]", value)]
            elif name == "mirror" and value.to_json():
                value = replace(value, name=with_prefix(value.name))
            given[theirs] = value
        return given


def bucket_config(config: BucketConfig | str, given: dict[str, Any]) -> BucketConfig:
    """Return a configuration that was given as itself, or as a name and keywords.

    Raises:
        ConfigError: It was given both ways, or a field is unknown or has no legal value.
        BucketNameError: No client would take the name.
    """
    if isinstance(config, BucketConfig):
        if given:
            raise ConfigError("give a BucketConfig or keywords, not both")
        return config
    known = [item.name for item in fields(BucketConfig) if item.name != "name"]
    hint = "see BucketConfig; other fields of the stream go into extra={...}"
    check_names(given, known, "bucket field", hint=hint)
    return BucketConfig(name=config, **given)


def with_json(config: StreamConfig, body: Mapping[str, object]) -> StreamConfig:
    """Return a stream's configuration with other fields, given by the server's names."""
    return StreamConfig.from_json({**config.to_json(), **body}) if body else config


def _differ(one: object, other: object) -> bool:
    return duration_ns(cast("Duration", one)) != duration_ns(cast("Duration", other or 0))


def _source(value: object, what: str) -> StreamSource:
    if isinstance(value, str):
        return StreamSource(name=value)
    return StreamSource.of(value, what)


def _sources(values: object, what: str) -> tuple[StreamSource, ...]:
    if isinstance(values, Sequence) and not isinstance(values, str):
        items = enumerate(cast("Sequence[object]", values))
        return tuple(_source(each, f"{what}, number {index}") for index, each in items)
    return StreamSource.several(cast("object", values), what)


def _check_seconds(value: Duration | None, what: str) -> None:
    try:
        duration_ns(value or 0)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error.message}", hint=error.hint) from error


def _check_extra(extra: object, of: str) -> None:
    if not isinstance(extra, Mapping):
        raise ConfigError(f"extra {of} is no mapping", hint=_EXTRA_HINT)
    for name in cast("Mapping[object, object]", extra):
        check_text(name, f"a name in extra {of}")
        ours = BUCKET_FIELDS.get("replicas" if name == "num_replicas" else str(name))
        if ours or name == "name":
            raise ConfigError(f"extra {of} has {name}", hint=f"give {ours or 'name'} instead")
    try:
        json.dumps(dict(cast("Mapping[str, object]", extra)), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"extra {of} is no JSON: {error}", hint=_EXTRA_HINT) from error
