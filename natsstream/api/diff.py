"""The changes that a configuration makes: fields with their old and new values.

Law: a dry run and the real update use the same list, so the fields shown are the fields sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from natsstream.api.settings.setting import Setting
from natsstream.api.stream_config import StreamConfig, python_name, says_something, user_metadata

Action = Literal["created", "updated", "unchanged"]

_CAN_NOT_CHANGE = "cannot be changed after creation"
_NO_WAY_BACK = "cannot be undone"
# Source: nats-server stream.go configUpdateCheck; tests compare this table with a server.
_FIXED = ("storage", "allow_msg_counter", "persist_mode")
_ONE_WAY = ("sealed", "deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules")
_WORK_QUEUE = "workqueue"
_SHOWN_MAX = 60


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a configuration whose value changes.

    Attributes:
        name: The field's Python name.
        before: The server's value, in the units of the configuration class; None if it had none.
        after: The wanted value.
        refusal: Why servers refuse the change; empty if they are not known to.
    """

    name: str
    before: object
    after: object
    refusal: str = ""

    def __str__(self) -> str:
        note = f"  ({self.refusal})" if self.refusal else ""
        return f"{self.name}: {_shown(self.before)} -> {_shown(self.after)}{note}"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The change of a stream or a consumer, made or planned.

    `print` shows it as a table.

    Attributes:
        name: The stream's or consumer's name.
        action: "created", "updated" or "unchanged".
        fields: The fields that differ, in the order of the configuration class; on creation, all
            fields that were given.
    """

    name: str
    action: Action
    fields: tuple[FieldChange, ...] = ()

    @property
    def refused(self) -> tuple[FieldChange, ...]:
        """The changes that servers are known to refuse."""
        return tuple(change for change in self.fields if change.refusal)

    def __bool__(self) -> bool:
        """True if anything differs."""
        return self.action != "unchanged"

    def __str__(self) -> str:
        rows = [("field", "before", "after", "")]
        rows += [
            (each.name, _shown(each.before), _shown(each.after), each.refusal)
            for each in self.fields
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join((*map(str.ljust, row[:3], widths), row[3])).rstrip()
            for row in (rows if self.fields else [])
        ]
        return "\n".join([f"{self.name}: {self.action}", *(f"  {line}" for line in lines)])


def created(name: str, given: Iterable[tuple[str, object]]) -> ConfigChange:
    """Return the change that creates a stream or a consumer with the given fields."""
    fields = (FieldChange(field, None, value) for field, value in given)
    return ConfigChange(name, "created", tuple(fields))


def changed(name: str, fields: Iterable[FieldChange]) -> ConfigChange:
    """Return the change of an existing stream or consumer."""
    listed = tuple(fields)
    return ConfigChange(name, "updated" if listed else "unchanged", listed)


def stream_created(wanted: StreamConfig) -> ConfigChange:
    """Return the change of a stream that does not exist yet."""
    given = wanted.given()
    given.pop("name", None)
    return created(wanted.name, given.items())


def stream_changed(wanted: StreamConfig, held: Mapping[str, object]) -> ConfigChange:
    """Return the changes that a configuration makes to an existing stream.

    Args:
        wanted: The configuration; fields that it leaves out stay as they are.
        held: The configuration as the server sent it.
    """
    before, after = StreamConfig.from_json(held).given(), wanted.given()
    fields: list[FieldChange] = []
    for json_name in wanted.changes_from(held):
        name = python_name(json_name)
        old, new = before.get(name), after.get(name)
        if name == "metadata":
            old = user_metadata(cast("Mapping[str, str]", old or {})) or None
        old, new = (None if _is_none(each) else each for each in (old, new))
        fields.append(FieldChange(name, old, new, stream_refusal(name, old, new)))
    return changed(wanted.name, fields)


def stream_refusal(name: str, before: object, after: object) -> str:
    """Return why servers refuse to change a stream's field; empty if they are not known to.

    Args:
        name: The field's Python name.
        before: The server's value.
        after: The wanted value, which differs.
    """
    if name in _FIXED:
        return _CAN_NOT_CHANGE
    if name in _ONE_WAY and says_something(before):
        return _NO_WAY_BACK
    if name == "retention" and _WORK_QUEUE in (before, after):
        return "cannot be changed to or from a work queue"
    if name == "mirror" and says_something(after):
        return "a mirror can be removed, but not added or pointed at another stream"
    return ""


def _is_none(value: object) -> bool:
    """Return True if a part is empty, which removes it from the configuration."""
    return isinstance(value, Setting) and not value.to_json()


def plain(value: object) -> object:
    """Return parts as the server writes them, which is shorter."""
    if isinstance(value, Setting):
        return value.to_json()
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    return value


def _shown(value: object) -> str:
    if value is None:
        return "-"
    value = plain(value)
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
