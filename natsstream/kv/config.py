"""A bucket's configuration, and that of its stream.

Law: a new bucket is the one of nats.go, field by field, so that every client's create over it is
idempotent. Other fields of the stream stay in `extra`: nothing is lost in either direction.
Source: ADR-8, ADR-48, ADR-57; nats.go jetstream/kv.go prepareKeyValueConfig.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from natsstream.api.settings.field_kinds import DURATION, LIMIT, FieldKind, number
from natsstream.api.settings.mapping import Republish
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_rules import window_ns
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError
from natsstream.kv.conventions import (
    BUCKET,
    DEFAULTS,
    HISTORY_MAX,
    sourced,
    usual_of,
    with_prefix,
)
from natsstream.streams.views.config import Duration, ViewConfig
from natsstream.streams.views.kind import Kind
from natsstream.units import NS_PER_SECOND, duration_ns

_MARKER_S = 1.0


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BucketConfig(ViewConfig):
    """A bucket's configuration.

    None in a field means the default in a new bucket, and no change in an existing one. Durations
    are seconds or timedelta. In place of a field's class, a mapping with the server's field names
    is accepted too; an empty one removes the field's value.

    Attributes:
        name: Letters, digits, `-` and `_`.
        description: At most 4 KiB.
        history: Revisions kept of each key, 1 to 64; default 1.
        ttl: Seconds after which a revision expires; 0, the default, is never.
        max_bytes: Bytes of the whole bucket, beyond which writes are refused; -1, the default, is
            no limit.
        max_value_size: Bytes of one value, headers included; -1, the default, is no limit.
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        placement: Cluster and tags.
        republish: Copies of what is stored to plain NATS.
        compression: True compresses on disk (2.10).
        metadata: Free text by key. Keys of the server (`_nats.`) and of this library stay.
        mirror: The bucket that this one is a read replica of, or its name. Writes go to that
            bucket.
        sources: The buckets that this one copies from, or their names, beside its own keys. Their
            keys are the same here, unless a source has transforms of its own. A source's `filter`
            selects keys, as `eu.>`.
        limit_marker_ttl: Seconds, at least 1, that the marker of an expired key stays for watches
            to see. It also allows a `ttl` of single keys (2.11). None makes a bucket without.
        extra: Fields of the stream, by the server's names, that differ from the usual ones of
            buckets, such as `{"allow_direct": False}`.
    """

    history: int | None = None
    max_value_size: int | None = None
    republish: Republish | None = None
    mirror: StreamSource | None = None
    sources: Sequence[StreamSource] | None = None
    limit_marker_ttl: Duration | None = None

    kind: ClassVar[Kind] = BUCKET
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        **ViewConfig.special_kinds,
        "history": number(1, HISTORY_MAX).named("max_msgs_per_subject"),
        "max_value_size": LIMIT.named("max_msg_size"),
        "limit_marker_ttl": DURATION.named("subject_delete_marker_ttl"),
    }

    def _check_own(self) -> None:
        of = f"of bucket {self.name}"
        is_mirror = self.mirror is not None and bool(self.mirror.to_json())
        if is_mirror and self.sources:
            raise ConfigError(f"mirror and sources {of} exclude each other", hint="give one")
        if is_mirror and self.limit_marker_ttl:
            raise ConfigError(
                f"limit_marker_ttl and mirror {of} exclude each other",
                hint="the markers of the origin are mirrored too",
            )
        seconds = duration_ns(self.limit_marker_ttl or 0) / NS_PER_SECOND
        if 0 < seconds < _MARKER_S:
            raise ConfigError(
                f"limit_marker_ttl {of} is {seconds:g} s",
                hint="servers keep markers for a second at least; 0 is none",
            )

    def to_stream(self) -> StreamConfig:
        """Return the stream of a new bucket, with every field that nats.go sends.

        Cost: no request.
        """
        given = self.to_json()
        if not self.limit_marker_ttl:
            given.pop("subject_delete_marker_ttl", None)
        is_mirror = bool(self.mirror and self.mirror.to_json())
        usual = usual_of(self.name, is_mirror=is_mirror, has_markers=bool(self.limit_marker_ttl))
        window = {"duplicate_window": window_ns(duration_ns(self.ttl or 0))}
        return self._stream({**DEFAULTS, **usual, **window, **given})

    def to_changes(self, held: StreamConfig) -> StreamConfig:
        """Return the given fields alone, as changes of a bucket's stream.

        Args:
            held: The present stream.

        Raises:
            ConfigError: The change would end a mirror, whose keys no client would find then.

        Cost: no request.
        """
        body = self._changed(held)
        if self.limit_marker_ttl:
            body.setdefault("allow_msg_ttl", True)
        if self.mirror is not None and held.mirror is not None and not self.mirror.to_json():
            raise ConfigError(
                f"bucket {self.name} cannot stop being a mirror: it keeps the keys under the "
                f"subjects of {held.mirror.name}, where no client would look for them",
                hint=f"copy its keys: js.kv.create('{self.name}-copy', sources=['{self.name}']); "
                "if its origin is lost: backup(path), then js.streams.restore(path, mirror={}, "
                "name=..., subjects=[...]) with the origin's name and subjects",
            )
        return self._stream(body)

    @classmethod
    def _usual(cls, config: StreamConfig) -> dict[str, object]:
        return usual_of(
            BUCKET.name_of(config.name),
            is_mirror=config.mirror is not None,
            has_markers=bool(config.subject_delete_marker_ttl),
        )

    def field_json(self, name: str, value: object) -> dict[str, object]:
        """Return the stream's fields, by the server's names, for one field of the bucket."""
        if name == "sources":
            named = [sourced(each, self.name) for each in self.sources or ()]
            return ViewConfig.field_json(self, name, named)
        if name == "mirror" and self.mirror is not None and self.mirror.to_json():
            value = replace(self.mirror, name=with_prefix(self.mirror.name))
        return ViewConfig.field_json(self, name, value)
