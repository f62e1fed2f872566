"""The configuration of a core stream, and that of its JetStream stream; pure rules.

Law: a native limit is set only where it cannot fire before the logical one. Native fields hold the
limits that they mean exactly; the metadata `conat.config` holds the others.
Source: Conat persist/storage.ts `Configuration`; core-stream.md sections 1.9 and 5.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from typing import Literal, cast

from natsstream.api.settings.mapping import Republish
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import (
    check_bool,
    check_choice,
    check_int,
    check_names,
    check_text,
    described,
)
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Limits
from natsstream.conat.values import json_text
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError, StreamExistsError
from natsstream.fields import Fields
from natsstream.units import NS_PER_MS, duration_ns

PATH, SERVICE, LOGICAL = "conat.path", "conat.service", "conat.config"
"""The names in the metadata of a core stream's stream."""

EPHEMERAL_BYTES_MAX = 64_000_000
"""The largest `max_bytes` of an ephemeral stream, and its default."""

# Servers refuse less (10052).
_NATIVE_AGE_MS_MIN = 100
_WINDOW_MS = 120_000
# Our own headers have at most 64 KiB, and so never make a legal message exceed the native limit.
_HEADER_SLACK_BYTES = 65_536
_INT32_MAX = (1 << 31) - 1
# The largest whole number of JavaScript; its milliseconds are more than servers have nanoseconds.
_INTEGER_MAX = (1 << 53) - 1
_AGE_MS_MAX = ((1 << 63) - 1) // NS_PER_MS
_UNITS: Mapping[str, str] = {
    "max_age": "milliseconds",
    "max_bytes": "bytes",
    "max_msg_size": "bytes",
    "max_bytes_per_second": "bytes",
}
# Servers take 128 KiB of metadata; the path has its part.
_LOGICAL_BYTES_MAX = 100_000


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The configuration of a core stream, with Conat's names, units and defaults.

    Attributes:
        max_msgs: Messages kept; -1 is no limit.
        max_age: Milliseconds kept; 0 is no limit.
        max_bytes: Logical bytes kept; -1 is no limit.
        max_msg_size: Logical bytes of one message; -1 is no limit.
        max_bytes_per_second: Logical bytes a second; -1 and 0 are no limit.
        max_msgs_per_second: Messages a second; -1 and 0 are no limit.
        discard_policy: "old" removes the oldest messages at a limit, "new" refuses new ones.
        allow_msg_ttl: True lets messages that are published from now on expire by their `ttl`.
        desc: A free description, any JSON value.

    Raises:
        ConfigError: A value is of another type; a number is too large; `max_msgs` is 0; the policy
            is neither word; JSON cannot write `desc`.
    """

    max_msgs: int = -1
    max_age: int = 0
    max_bytes: int = -1
    max_msg_size: int = -1
    max_bytes_per_second: int = -1
    max_msgs_per_second: int = -1
    discard_policy: Literal["old", "new"] = "old"
    allow_msg_ttl: bool = False
    desc: object = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = _integer(getattr(self, name), name)
            object.__setattr__(self, name, max(number, cast("int", _DEFAULTS[name])))
        if self.max_msgs == 0:
            raise ConfigError(
                "max_msgs is 0, which JetStream takes for no limit",
                hint="give 1 or more, or -1 for no limit",
            )
        check_int(self.max_age, "max_age", maximum=_AGE_MS_MAX, unit=_UNITS["max_age"])
        check_choice(self.discard_policy, "discard_policy", ("old", "new"))
        check_bool(self.allow_msg_ttl, "allow_msg_ttl")
        try:
            size = len(json_text(self.desc, ascii_only=True))
        except ConfigError as error:
            raise ConfigError(
                f"desc: {error.message}", detail=error.detail, hint=error.hint
            ) from error
        if size > _LOGICAL_BYTES_MAX:
            raise ConfigError(
                f"desc exceeds {_LOGICAL_BYTES_MAX:,} bytes", hint="store it as a message"
            )

    def merged(self, changes: Mapping[str, object]) -> Configuration:
        """Return the configuration with other fields; None leaves a field as it is.

        Numbers may be text, as in Conat.

        Raises:
            ConfigError: A field is unknown, or its value is not legal.
        """
        check_names(changes, _DEFAULTS, "field of a core stream's configuration")
        given = {name: value for name, value in changes.items() if value is not None}
        # The cast says that __post_init__ checks the values.
        return replace(self, **cast("dict[str, int]", given))

    def capped(self) -> Configuration:
        """Return the configuration of an ephemeral stream: `max_bytes` is 64 MB at most."""
        if 0 < self.max_bytes <= EPHEMERAL_BYTES_MAX:
            return self
        return replace(self, max_bytes=EPHEMERAL_BYTES_MAX)

    def to_dict(self) -> dict[str, object]:
        """Return all fields by name."""
        return asdict(self)

    def limits(self) -> dict[str, object]:
        """Return the fields that differ from their defaults, by name."""
        return {name: each for name, each in self.to_dict().items() if each != _DEFAULTS[name]}

    def to_stream(
        self,
        names: StreamNames,
        *,
        ephemeral: bool = False,
        replicas: int | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> StreamConfig:
        """Return the stream of a core stream: all fields that carry its configuration.

        Args:
            names: Its names.
            ephemeral: True keeps it in memory.
            replicas: 1 to 5; None leaves it to the server.
            metadata: Other metadata of the stream to keep.
        """
        age_ms = self.max_age and max(self.max_age, _NATIVE_AGE_MS_MIN)
        size = self.max_msg_size + _HEADER_SLACK_BYTES
        own = {PATH: names.path, SERVICE: names.service, LOGICAL: json_text(self._logical())}
        return StreamConfig(
            name=names.stream,
            # Not all that is republished: a message to `d.<id>.ctl` would become an announcement.
            subjects=[names.unkeyed, names.keys_filter],
            retention="limits",
            storage="memory" if ephemeral else "file",
            replicas=replicas,
            max_msgs=self.max_msgs,
            max_age=timedelta(milliseconds=age_ms),
            max_bytes=-1,
            max_msgs_per_subject=-1,
            max_msg_size=size if self.max_msg_size >= 0 and size <= _INT32_MAX else -1,
            discard=self.discard_policy,
            duplicate_window=timedelta(milliseconds=min(_WINDOW_MS, age_ms or _WINDOW_MS)),
            allow_direct=True,
            allow_rollup_hdrs=True,
            allow_msg_ttl=True,
            republish=Republish(source=names.data_filter, destination=names.feed_filter),
            metadata={**(metadata or {}), **own},
        )

    @classmethod
    def from_stream(cls, stream: StreamConfig) -> Configuration:
        """Return the configuration of an existing stream, one that is not a core stream's too.

        Raises:
            ConfigError: The metadata has an illegal value.
            ProtocolError: The metadata is no JSON.
        """
        native = {
            "max_msgs": stream.max_msgs or -1,
            "max_age": round(duration_ns(stream.max_age or 0) / NS_PER_MS),
            "discard_policy": stream.discard,
        }
        text = (stream.metadata or {}).get(LOGICAL)
        if text is None:
            return cls().merged(
                {
                    **native,
                    "max_msg_size": stream.max_msg_size or -1,
                    "allow_msg_ttl": stream.allow_msg_ttl,
                }
            )
        logical = Fields.parse(text, f"metadata {LOGICAL} of stream {stream.name}").raw
        known = {name: each for name, each in logical.items() if name in _DEFAULTS}
        config = cls().merged({**native, **known})
        return config.capped() if stream.storage == "memory" else config

    def _logical(self) -> dict[str, object]:
        """Return what no native field says."""
        limits = self.limits()
        native = ["max_msgs", "discard_policy"]
        if self.max_age >= _NATIVE_AGE_MS_MIN:
            native.append("max_age")
        return {name: each for name, each in limits.items() if name not in native}


def config_fields(fields: object) -> dict[str, object]:
    """Return given fields of a configuration by name; None gives none.

    Raises:
        ConfigError: They are no mapping, or one of them is not legal.
    """
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise ConfigError(
            f"the configuration is {described(fields)}",
            hint='give its fields by name: {"max_msgs": 1000}',
        )
    # The cast says what `isinstance` cannot.
    items = cast("Mapping[object, object]", fields).items()
    given = {check_text(name, "a field's name"): value for name, value in items}
    Configuration().merged(given)
    return given


def check_stream(names: StreamNames, held: StreamConfig) -> None:
    """Refuse a stream that is not the core stream of these names.

    Raises:
        StreamExistsError: It belongs to another path, service or prefix, or is no core stream.
    """
    metadata = held.metadata or {}
    differences: dict[str, tuple[object, object]] = {
        PATH: (metadata.get(PATH), names.path),
        SERVICE: (metadata.get(SERVICE), names.service),
        "subjects": (sorted(held.subjects or ()), sorted((names.unkeyed, names.keys_filter))),
    }
    wrong = {name: (has, wanted) for name, (has, wanted) in differences.items() if has != wanted}
    if wrong:
        name, (has, wanted) = next(iter(wrong.items()))
        # Subjects can be set right; the stream holds the messages.
        again = f"set them again: await js.streams.update({names.stream!r}, subjects={wanted!r})"
        other = "give another name, service or prefix, or delete the stream"
        error = StreamExistsError(
            f"stream {names.stream} is not core stream {names.path!r}",
            detail=f"{name} is {described(has, with_type=False)}, not {wanted!r}",
            hint=again if name == "subjects" else other,
        )
        error.differences = wrong
        raise error


def limits_of(stream: StreamConfig, *, is_foreign: bool = False) -> Limits:
    """Return what removes messages of a stream, as far as a client can tell by itself.

    Args:
        stream: Its configuration.
        is_foreign: True for a stream that is only read: each of its subjects is a key, and nobody
            announces deletions, so its client cannot tell when a limit on a count is reached.
    """
    config = Configuration.from_stream(stream)
    evicts = config.discard_policy == "old" and not is_foreign
    return Limits(
        config.max_msgs if evicts else -1,
        config.max_age * NS_PER_MS,
        1 if is_foreign and stream.max_msgs_per_subject == 1 else -1,
        has_rollups=bool(stream.allow_rollup_hdrs),
        has_ttls=bool(stream.allow_msg_ttl),
    )


def _integer(value: object, name: str) -> int:
    """Return a whole number, also of text; a fraction is seconds or a mistake, and never cut."""
    number = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str):
        with suppress(ValueError):
            number = int(value)
    return check_int(number, name, maximum=_INTEGER_MAX, unit=_UNITS.get(name, ""))


_DEFAULTS: Mapping[str, object] = {item.name: item.default for item in fields(Configuration)}
_NUMBERS = tuple(name for name, default in _DEFAULTS.items() if type(default) is int)
