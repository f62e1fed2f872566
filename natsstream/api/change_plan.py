"""The changes that a configuration makes to a stream or a consumer; pure rules.

Law: a field that is not given, known here or not, stays as the server has it. Metadata of the
server and of this library is neither compared nor changed; see `natsstream.api.metadata`. A dry run
shows exactly the fields that an update sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from natsstream.api.diff import ConfigChange, FieldChange, plain
from natsstream.api.features import Feature, without_unsaid
from natsstream.api.metadata import (
    compared_metadata,
    kept_metadata,
    user_metadata,
    without_levels,
)
from natsstream.api.settings.field_kinds import FieldKind
from natsstream.api.settings.setting import Setting, field_kinds, meaning, says_something
from natsstream.errors import ConsumerExistsError, StreamExistsError

Differences = Mapping[str, tuple[object, object]]
"""Fields by name: the server's value and the wanted one, None for the default."""

_Metadata: TypeAlias = Mapping[str, str] | None

_UNKNOWN = FieldKind(check=lambda value, _: value, meaning=meaning)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRules:
    """How one noun changes: streams, or consumers.

    Attributes:
        features: The first servers of the younger fields, by the server's names.
        refusal: Returns why servers refuse to change a field, by its Python name, the server's
            value and the wanted one; empty if they are not known to.
        defaults: Returns the values that servers fill in by Python name; takes the configuration
            that a server sent.
    """

    features: Mapping[str, Feature]
    refusal: Callable[[str, object, object], str]
    defaults: Callable[[Any], Mapping[str, object]]


def created(wanted: Setting) -> ConfigChange:
    """Return the change of a stream or a consumer that does not exist yet."""
    given = wanted.given()
    name = str(given.pop("name", ""))
    fields = tuple(FieldChange(field, None, value) for field, value in given.items())
    return ConfigChange(name, "created", fields)


def creation(rules: ChangeRules, wanted: Setting) -> dict[str, object]:
    """Return the whole configuration to send for a new stream or consumer."""
    # An empty part stands for none.
    sent = without_unsaid(rules.features, wanted.to_json())
    body = {name: value for name, value in sent.items() if value != {}}
    if "metadata" in body:
        # The configuration may come from another server; this one has its own level.
        body["metadata"] = without_levels(cast("Mapping[str, str]", body["metadata"]))
    return body


def changed(rules: ChangeRules, wanted: Setting, held: Mapping[str, object]) -> ConfigChange:
    """Return the changes that a configuration makes to an existing stream or consumer.

    Args:
        rules: Those of the noun.
        wanted: The configuration; fields that it leaves out stay as they are.
        held: The configuration as the server sent it.
    """
    before, after = type(wanted).from_json(held).values(), wanted.values()
    fields: list[FieldChange] = []
    for name, kind in field_kinds(type(wanted)).items():
        old, new = before[name], after[name]
        if name == "metadata":
            old = compared_metadata(cast("_Metadata", old), cast("_Metadata", new)) or None
        if name == "name" or new is None or _is_same(kind, old, new):
            continue
        old, new = (None if _is_empty(each) else each for each in (old, new))
        fields.append(FieldChange(name, old, new, rules.refusal(name, old, new)))
    for name, new in wanted.extra.items():
        old = held.get(name)
        if not _is_same(_UNKNOWN, old, new):
            fields.append(FieldChange(name, old, new, rules.refusal(name, old, new)))
    return ConfigChange(str(before["name"]), "updated" if fields else "unchanged", tuple(fields))


def overlay(
    wanted: Setting, held: Mapping[str, object], change: ConfigChange
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the whole configuration to send, and the fields in it that the caller changed.

    Args:
        wanted: The configuration.
        held: The configuration as the server sent it.
        change: The result of `changed` for the two.
    """
    body, given = dict(held), dict[str, object]()
    kinds, values = field_kinds(type(wanted)), wanted.values()
    for name in (each.name for each in change.fields):
        # A field that is known by now may still be given in `extra`; the keyword wins.
        if values.get(name) is None:
            given[name] = wanted.extra[name]
            continue
        for json_name in kinds[name].json_names:
            body.pop(json_name, None)
        given.update(wanted.field_json(name, values[name]))
    if "metadata" in given:
        kept = kept_metadata(cast("_Metadata", held.get("metadata")))
        theirs = user_metadata(cast("Mapping[str, str]", given["metadata"]))
        given["metadata"] = {**kept, **theirs}
    # An empty part stands for none, which servers expect as null.
    given = {name: None if value == {} else value for name, value in given.items()}
    return {**body, **given}, given


def differences(rules: ChangeRules, wanted: Setting, held: Mapping[str, object]) -> Differences:
    """Return the fields in which an existing stream or consumer differs from a new one.

    `create` never changes an existing one. If nothing differs, the caller gets it, even if the
    server reports a conflict: other clients store parts without meaning, as an empty placement.

    Args:
        rules: Those of the noun.
        wanted: The configuration of the new one.
        held: The configuration of the existing one as the server sent it.
    """
    config = type(wanted).from_json(held)
    found = {each.name: (each.before, each.after) for each in changed(rules, wanted, held).fields}
    defaults, given, theirs = rules.defaults(config), wanted.given(), config.given()
    theirs["metadata"] = compared_metadata(
        cast("_Metadata", theirs.get("metadata")), cast("_Metadata", given.get("metadata"))
    )
    for name, value in theirs.items():
        meant = meaning(plain(value))
        if name not in given and meant is not None and meant != meaning(defaults.get(name)):
            found.setdefault(name, (value, None))
    return found


def described(different: Differences) -> str:
    """Return differences as an error shows them."""
    return "; ".join(
        f"{name} is {plain(before)!r}, not {_asked(after)}"
        for name, (before, after) in different.items()
    )


def add_differences(error: StreamExistsError | ConsumerExistsError, different: Differences) -> None:
    """Add differences to the error for an existing stream or consumer."""
    error.differences = dict(different)
    error.detail = described(different)


def _is_same(kind: FieldKind, held: object, wanted: object) -> bool:
    """Return True if the server's value of a field means the same as the wanted one."""
    ours = kind.meaning(kind.write(wanted))
    if held is None:
        return not says_something(ours)
    # A float has no room for every nanosecond: the server's value is compared as it was read.
    return kind.meaning(kind.write(held)) == ours


def _is_empty(value: object) -> bool:
    """Return True if a part is empty, which removes it from the configuration."""
    return isinstance(value, Setting) and not value.to_json()


def _asked(value: object) -> str:
    return "the default" if value is None else repr(plain(value))
