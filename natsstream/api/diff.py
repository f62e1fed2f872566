"""The changes that a configuration makes: fields with their old and new values.

Law: a dry run and the real update use the same list, so the fields shown are the fields sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from natsstream.api.settings.setting import Setting
from natsstream.notebook import NotebookTable

Action = Literal["created", "updated", "unchanged"]

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
class ConfigChange(NotebookTable):
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

    def _table_rows(self) -> list[tuple[str, str, str, str]]:
        """Return the rows: each field with its value before and after, and why it is refused."""
        rows = [("field", "before", "after", "")]
        return rows + [
            (each.name, _shown(each.before), _shown(each.after), each.refusal)
            for each in self.fields
        ]

    def __str__(self) -> str:
        rows = self._table_rows()
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join((*map(str.ljust, row[:3], widths), row[3])).rstrip()
            for row in (rows if self.fields else [])
        ]
        return "\n".join([f"{self.name}: {self.action}", *(f"  {line}" for line in lines)])


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
