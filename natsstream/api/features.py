"""The features of each server version, and the error for a missing one.

Law: a missing feature is found before anything is sent. If the stream lives on another server than
the connection, it is found in the server's answer. No field is dropped in silence.

JetStream's API level (ADR-44) describes the servers that hold the streams. The version of the
connected server, which may be a leaf node or a proxy, counts only if the level is unknown. Servers
up to 2.11 drop fields that they do not know, later ones refuse them (10025).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from natsstream.api.metadata import RESERVED_METADATA
from natsstream.api.settings.setting import says_something
from natsstream.errors import InvalidConfigError, ServerError, UnsupportedServerError

if TYPE_CHECKING:
    from natsstream._wire.client import Client

# The first release of each API level. 2.12 moved to level 3 in a later patch release.
_LEVELS = {(2, 11): 1, (2, 12): 2, (2, 14): 4, (2, 15): 5}
_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?![\d.])", re.ASCII)
_UNKNOWN_FIELD = re.compile(r'unknown field "([^"]{1,80})"')


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature that some servers lack.

    Attributes:
        name: Its name in errors.
        needs: The first release line that has it, such as `(2, 11)`.
    """

    name: str
    needs: tuple[int, int]

    @property
    def level(self) -> int:
        """JetStream's API level that has it; 0 if every level has it."""
        return _LEVELS.get(self.needs, 0)

    @property
    def needs_text(self) -> str:
        """The first release line that has it, such as `2.11`."""
        return f"{self.needs[0]}.{self.needs[1]}"


# The oldest servers that were tested; every request needs them.
ALL = Feature("the basic JetStream API", (2, 10))
# Features of requests; those of configurations follow below.
MANY_FILTERS = Feature("a consumer with several filters", (2, 10))
MESSAGE_TTL = Feature("time to live of a message", (2, 11))
# A server of an older cluster that restarts loses such a stream: it repeats the creation first, and
# then refuses to turn off what its disk says.
MESSAGE_TTL_LATER = Feature("turning on message TTLs of a stream with one replica", (2, 14))
EXPECT_SUBJECT = Feature("expecting the last sequence of another subject", (2, 11))
GET_BY_TIME = Feature("finding a message by its time", (2, 11))
DIRECT_BATCH = Feature("direct reads of several messages", (2, 11))
PLACED_LEADER = Feature("choosing where the next leader is", (2, 11))
CONSUMER_PAUSE = Feature("pausing a consumer", (2, 11))
CONSUMER_UNPIN = Feature("unpinning a client of a consumer", (2, 11))
CONSUMER_RESET = Feature("resetting a consumer", (2, 14))
ATOMIC_BATCH = Feature("atomic batches", (2, 12))
MEMORY_BACKUP = Feature("backup of a stream in memory", (2, 15))
RENAMED_RESTORE = Feature("restoring a stream under another name", (2, 15))
ATOMIC_BATCH_END = Feature("committing an atomic batch without a last message", (2, 14))
COUNTERS = Feature("counters", (2, 12))
SCHEDULES = Feature("scheduled messages", (2, 12))
# 2.12 ignores all other parts of a schedule.
SCHEDULES_REPEATED = Feature(
    "schedules that repeat, or have a source, rollup or time zone", (2, 14)
)
SCHEDULES_ENDED = Feature("ending a schedule by a message", (2, 14))
FAST_BATCH = Feature("fast batches", (2, 14))


def _fields(noun: str, since: Mapping[tuple[int, int], str]) -> dict[str, Feature]:
    return {
        path: Feature(f"the {noun}'s {path}", needs)
        for needs, paths in since.items()
        for path in paths.split()
    }


# JSON fields of configurations that servers of 2.10 and older may lack, by the release that brought
# them. A dot goes into an object or each of a list; `field=value` is a value that came later.
STREAM_FIELDS: Mapping[str, Feature] = _fields(
    "stream",
    {
        (2, 10): "compression first_seq subject_transform consumer_limits metadata "
        "mirror.subject_transforms sources.subject_transforms",
        (2, 11): "allow_msg_ttl subject_delete_marker_ttl placement.preferred",
        (2, 12): "allow_atomic allow_msg_counter allow_msg_schedules persist_mode",
        (2, 14): "allow_batched mirror.consumer sources.consumer",
    },
)
CONSUMER_FIELDS: Mapping[str, Feature] = _fields(
    "consumer",
    {
        (2, 10): "filter_subjects metadata",
        (2, 11): "pause_until priority_groups priority_policy priority_timeout",
        (2, 12): "priority_policy=prioritized",
        (2, 14): "ack_policy=flow_control",
    },
)


def parse_version(text: object) -> tuple[int, int, int] | None:
    """Return the numbers of a server's version, or None when it is none.

    A pre-release such as `2.15.0-beta.1` counts as its release; its answers show what it lacks.
    """
    found = _VERSION.match(text) if isinstance(text, str) else None
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def api_level(account: Mapping[str, object]) -> int | None:
    """Return the API level in an answer to `$JS.API.INFO`; None if it has no legal one."""
    api = account.get("api")
    if not isinstance(api, dict):
        return None
    level = cast("dict[str, object]", api).get("level", 0)
    return level if type(level) is int and level >= 0 else None


def has_feature(feature: Feature, *, version: object, level: int | None) -> bool:
    """Return True if a server has a feature.

    Args:
        feature: The feature.
        version: The connected server's version, as it sent it; anything else counts as a server
            without the feature.
        level: JetStream's API level; None if unknown.
    """
    if level is not None and feature.level:
        return level >= feature.level
    if level:
        return True  # A server with a level has every feature from before levels.
    numbers = parse_version(version)
    return numbers is not None and numbers[:2] >= feature.needs


def is_too_old(version: object) -> bool:
    """Return True if a server is too old for natsstream; an unknown version is not."""
    numbers = parse_version(version)
    return numbers is not None and numbers[:2] < ALL.needs


def require(client: Client, *wanted: Feature, level: int | None = None) -> None:
    """Refuse features that the server lacks, before a request; see `Api.require` for the level.

    Raises:
        UnsupportedServerError: The server lacks features; the message names all, the attributes
            are those of the newest.
    """
    version = client.server_info.get("version")
    once = dict.fromkeys(wanted)  # Several parts of one call may need the same feature.
    lacking = [each for each in once if not has_feature(each, version=version, level=level)]
    if not lacking:
        return
    # JetStream may be older than the connected server, which must not be blamed.
    is_connected = any(not has_feature(each, version=version, level=None) for each in lacking)
    said = str(version or "")[:40] if is_connected else ""
    has = f"version {said or 'unknown'}" if is_connected else f"API level {level}"
    where = client.url if is_connected else f"JetStream behind {client.url}"
    features = ", ".join(f"{each.name} (since nats-server {each.needs_text})" for each in lacking)
    raise unsupported(
        f"{where} has {has} and lacks {features}",
        max(lacking, key=lambda feature: feature.needs),
        version=said,
        hint="leave it out, or upgrade the servers; nothing was sent",
    )


def unsupported(
    message: str, feature: Feature | str, *, version: str = "", detail: str = "", hint: str = ""
) -> UnsupportedServerError:
    """Return the error for a feature, or for a field that is known by name only."""
    error = UnsupportedServerError(message, detail=detail, hint=hint)
    error.feature = feature.name if isinstance(feature, Feature) else feature
    error.needs = feature.needs_text if isinstance(feature, Feature) else ""
    error.version = version
    return error


def used_features(fields: Mapping[str, Feature], config: Mapping[str, object]) -> list[Feature]:
    """Return the features that a configuration uses, the oldest first."""
    return [feature for path, feature in fields.items() if _is_used(config, path)]


def _is_used(config: Mapping[str, object], path: str) -> bool:
    name, _, wanted = path.partition("=")
    found: list[object] = [config]
    for token in name.split("."):
        inside = [item for value in found for item in _objects(value)]
        found = [item[token] for item in inside if token in item]
    return wanted in found if wanted else any(map(says_something, found))


def _objects(value: object) -> list[Mapping[str, object]]:
    items = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    return [cast("Mapping[str, object]", item) for item in items if isinstance(item, Mapping)]


def without_unsaid(
    fields: Mapping[str, Feature], config: Mapping[str, object]
) -> dict[str, object]:
    """Return a configuration without new fields that have no effect, such as a false switch.

    Every server does the same without them, and an older server may refuse them.
    """
    return {
        name: value for name, value in config.items() if name not in fields or says_something(value)
    }


def dropped_fields(sent: Mapping[str, object], taken: Mapping[str, object]) -> list[str]:
    """Return the paths of sent fields that the server's answer lacks, sorted.

    A server may leave out a field without effect (0, false, empty, "none", "default").
    """
    dropped: list[str] = []
    for name, value in sent.items():
        if not says_something(value) or name.startswith(RESERVED_METADATA):
            continue
        if name not in taken:
            dropped.append(name)
            continue
        pairs = zip(_objects(value), _objects(taken[name]), strict=False)
        for ours, theirs in pairs:
            dropped += [f"{name}.{path}" for path in dropped_fields(ours, theirs)]
    return sorted(set(dropped))


def changed_fields(sent: Mapping[str, object], taken: Mapping[str, object]) -> list[str]:
    """Return the names of numbers, texts and switches that the server stored differently."""
    return sorted(
        name
        for name, value in sent.items()
        if isinstance(value, int | str)
        and says_something(value)
        and name in taken
        and taken[name] != value
        and not (_is_unlimited(value) and _is_unlimited(taken[name]))
    )


def _is_unlimited(value: object) -> bool:
    """Return True if a number means no limit, which servers write as 0 or less."""
    return isinstance(value, int) and value <= 0


def check_taken(
    what: str,
    fields: Mapping[str, Feature],
    *,
    given: Mapping[str, object],
    sent: Mapping[str, object],
    taken: Mapping[str, object],
) -> None:
    """Compare the configuration in a server's answer with the one that was sent.

    Args:
        what: Name of what was created or changed, such as `stream ORDERS`.
        fields: STREAM_FIELDS or CONSUMER_FIELDS.
        given: The fields that the caller gave.
        sent: All fields that were sent.
        taken: The configuration in the answer.

    Raises:
        UnsupportedServerError: The server dropped a field that it does not know.
        InvalidConfigError: The server stored another value of a field.
    """
    hint = "keep it as it is, change it, or delete it: nothing was undone"
    if sent.get("mirror"):
        # A mirror takes no publishes, so it has no window: clusters leave it out, and a single
        # server does after its next start (jetstream.go fixCfgMirrorWithDedupWindow).
        sent = {name: value for name, value in sent.items() if name != "duplicate_window"}
    dropped = dropped_fields(sent, taken)
    if dropped:
        feature = fields.get(dropped[0])
        needs = f", which needs nats-server {feature.needs_text}" if feature else ""
        raise unsupported(
            f"{what} is there now, but without {', '.join(dropped)}{needs}: "
            "the server that holds it dropped what it does not know",
            feature or dropped[0],
            hint=hint,
        )
    changed = changed_fields(given, taken)
    if changed:
        shown = ", ".join(f"{name} {taken[name]!r} for {given[name]!r}" for name in changed)
        raise InvalidConfigError(f"{what} is there now, but with {shown}", hint=hint)


def unknown_field(error: ServerError, what: str) -> UnsupportedServerError:
    """Return the error for 10025: the server cannot read a configuration.

    Servers from 2.12 on send it for a field that they do not know, all servers for a bad value.
    """
    found = _UNKNOWN_FIELD.search(error.description)  # Only for the message; the code decides.
    name = found[1] if found else ""
    problem = f"the server does not know {name}" if name else "the server cannot read a value"
    return unsupported(
        f"{what}: {problem}; nothing was done",
        name,
        detail=error.description,
        hint="check its spelling and type, leave it out, or upgrade the servers",
    )
