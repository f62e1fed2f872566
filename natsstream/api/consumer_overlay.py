"""The changes that a configuration makes to an existing consumer; pure rules.

Law: a field that is not given, known here or not, stays as the server has it. The server's own
metadata is neither compared nor changed. A dry run shows exactly the fields that are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from natsstream.api import consumer_rules as rules
from natsstream.api.consumer_config import FIELD_NAMES, ConsumerConfig
from natsstream.api.diff import ConfigChange, FieldChange, changed, created
from natsstream.api.stream_config import RESERVED_METADATA, says_something, user_metadata
from natsstream.units import duration_ns, time_to_ns

_FILTERS = ("filter_subject", "filter_subjects")
# The server makes one up for a new consumer without it.
_NOT_COMPARED = ("name",)


def consumer_created(name: str, wanted: ConsumerConfig) -> ConfigChange:
    """Return the change of a consumer that does not exist yet."""
    given = {**wanted.given(), **wanted.extra}
    given.pop("name", None)
    return created(name, given.items())


def consumer_changed(wanted: ConsumerConfig, held: Mapping[str, object]) -> ConfigChange:
    """Return the changes that a configuration makes to an existing consumer.

    Args:
        wanted: The configuration; fields that it leaves out stay as they are.
        held: The configuration as the server sent it.
    """
    before = ConsumerConfig.from_json(held)
    fields: list[FieldChange] = []
    for name in FIELD_NAMES:
        old, new = getattr(before, name), getattr(wanted, name)
        if name == "deliver_policy":
            old, new = before.starts_with, wanted.starts_with if _has_start(wanted) else None
        if new is None or name in _NOT_COMPARED or is_same(name, old, new):
            continue
        if name == "metadata":
            old = user_metadata(cast("Mapping[str, str]", old or {})) or None
        fields.append(FieldChange(name, old, new, rules.refusal(name, old, new)))
    for name, new in wanted.extra.items():
        if held.get(name) != new:
            fields.append(FieldChange(name, held.get(name), new))
    return changed(cast("str", wanted.name or before.name), fields)


def overlay(
    wanted: ConsumerConfig, held: Mapping[str, object], change: ConfigChange
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the whole configuration to send, and the fields in it that the caller changed.

    Args:
        wanted: The configuration.
        held: The configuration as the server sent it.
        change: The result of `consumer_changed` for the two.
    """
    body, given = dict(held), dict[str, object]()
    for field in change.fields:
        if field.name in wanted.extra:
            given[field.name] = wanted.extra[field.name]
        elif field.name == "deliver_policy":
            given["deliver_policy"] = wanted.starts_with
        elif field.name == "metadata":
            given["metadata"] = _with_own(wanted, held)
        else:
            if field.name == "filters":
                for name in _FILTERS:
                    body.pop(name, None)
            given.update(wanted.field_json(field.name))
    return {**body, **given}, given


def is_same(name: str, held: object, wanted: object) -> bool:
    """Return True if the server's value of a field means the same as the wanted one.

    Args:
        name: The field's Python name.
        held: Its value in the server's configuration; None if it has none.
        wanted: The value that was given.
    """
    if held is None:
        return not says_something(wanted)
    if name in rules.DURATIONS:
        return duration_ns(cast("float", held)) == rules.check_duration(name, wanted)
    if name in rules.TIMES:
        # The server's time was cut to microseconds on reading.
        ours, theirs = rules.check_time(name, wanted), time_to_ns(cast("int", held))
        return ours // 1000 == theirs // 1000
    if name == "backoff":
        return [duration_ns(wait) for wait in cast("list[float]", held)] == [
            rules.check_duration(name, wait) for wait in cast("list[object]", wanted)
        ]
    if name == "sample_freq":
        return rules.sample_text(wanted) == rules.sample_text(held)
    if name == "filters":
        return sorted(cast("list[str]", held)) == sorted(cast("list[str]", wanted))
    if name == "priority_groups":
        return list(cast("list[str]", held)) == list(cast("list[str]", wanted))
    if name == "metadata":
        ours, theirs = cast("Mapping[str, str]", wanted), cast("Mapping[str, str]", held)
        return user_metadata(ours) == user_metadata(theirs)
    return held == wanted


def _has_start(config: ConsumerConfig) -> bool:
    starts = (config.deliver_policy, config.start_seq, config.start_time)
    return any(each is not None for each in starts)


def _with_own(wanted: ConsumerConfig, held: Mapping[str, object]) -> dict[str, str]:
    """Return the wanted metadata with the server's own keys."""
    own = cast("dict[str, str]", held.get("metadata") or {})
    kept = {key: value for key, value in own.items() if key.startswith(RESERVED_METADATA)}
    return {**kept, **user_metadata(wanted.metadata or {})}
