"""Values as tables in notebooks; pure.

Law: all text is escaped, long text is cut, and no table holds a payload or the server's raw answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import cast

from natsstream.units import duration_ns, format_duration, time_from_ns

_CELL_CHARS_MAX = 200
# The answer of the server, which the typed fields repeat.
_LEFT_OUT = ("raw", "extra")
# Fields of seconds, and of bytes; the names of the others tell their unit.
_DURATIONS = frozenset(
    {
        "ack_wait", "duplicate_window", "idle_heartbeat", "inactive_threshold", "limit_marker_ttl",
        "max_age", "max_expires", "priority_timeout", "subject_delete_marker_ttl", "ttl",
    }
)  # fmt: skip
_SIZES = frozenset(
    {
        "bytes", "max_bytes", "max_chunk_size", "max_memory", "max_msg_size", "max_storage",
        "max_value_size", "memory", "reserved_memory", "reserved_storage", "size", "storage",
    }
)  # fmt: skip
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class NotebookTable:
    """The base of values that notebooks show as a table of their fields."""

    __slots__ = ()

    def _table_rows(self) -> Iterable[tuple[str, ...]]:
        """Return the rows: each field that is set, with its value; those of parts follow it."""
        if not is_dataclass(self):
            return []
        rows: list[tuple[str, ...]] = []
        for each in fields(self):
            name, value = each.name, getattr(self, each.name)
            if name in _LEFT_OUT or value in (None, (), "", {}):
                continue
            parts = _parts(name, value)
            if parts:
                for place, part in parts.items():
                    inner = part._table_rows()  # noqa: SLF001 - of this class.
                    rows += [(f"{place}.{row}", *texts) for row, *texts in inner]
            else:
                rows.append((name.removesuffix("_ns"), shown(name, value)))
        return rows

    def _repr_html_(self) -> str:
        return table(type(self).__name__, self._table_rows())


def _parts(name: str, value: object) -> dict[str, NotebookTable]:
    """Return the tables in a field, by their places: one, or those of a mapping; empty for none."""
    if isinstance(value, NotebookTable):
        return {name: value} if is_dataclass(value) else {}
    if not isinstance(value, Mapping):
        return {}
    named = cast("Mapping[object, object]", value).items()
    return {f"{name}.{key}": part for key, part in named if isinstance(part, NotebookTable)}


def table(caption: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows of texts as the HTML of a table."""
    body = "".join(f"<tr>{''.join(f'<td>{_cell(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


def shown(name: str, value: object) -> str:
    """Return the value of a field with its unit: times in UTC, durations as `2m0s`, sizes.

    Args:
        name: Name of the field, which tells the unit of a number.
        value: Its value.
    """
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, timedelta):
        return format_duration(duration_ns(value))
    if name == "backoff" and isinstance(value, list | tuple):
        steps = cast("Sequence[object]", value)
        return ", ".join(shown("ack_wait", each) for each in steps)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name.endswith("_ns"):
        return shown(name, time_from_ns(int(value))) if value else "-"
    if name in _DURATIONS and value >= 0:
        return format_duration(duration_ns(value))
    if (name in _SIZES or name.endswith("_bytes")) and value >= 0:
        return format_size(int(value))
    return str(value)


def format_size(count: int) -> str:
    """Return bytes with a unit: `512 B`, `1.5 MiB`."""
    size, units = float(count), iter(_SIZE_UNITS)
    unit = next(units)
    while size >= 1024 and unit != _SIZE_UNITS[-1]:
        size, unit = size / 1024, next(units)
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _cell(text: str) -> str:
    cut = text if len(text) <= _CELL_CHARS_MAX else f"{text[: _CELL_CHARS_MAX - 3]}..."
    return escape(cut)
