"""Values as tables in notebooks; pure.

Law: all text is escaped, long text is cut, and no table holds a payload or the server's raw answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from html import escape

_CELL_CHARS_MAX = 200
# The answer of the server, which the typed fields repeat.
_LEFT_OUT = ("raw", "extra")


class NotebookTable:
    """The base of values that notebooks show as a table of their fields."""

    __slots__ = ()

    def _table_rows(self) -> Iterable[tuple[str, ...]]:
        """Return the rows: each field that is set, with its value."""
        if not is_dataclass(self):
            return []
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [
            (name, str(value))
            for name, value in values
            if value not in (None, (), "") and name not in _LEFT_OUT
        ]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr>{''.join(f'<td>{_cell(text)}</td>' for text in row)}</tr>"
            for row in self._table_rows()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


def _cell(text: str) -> str:
    cut = text if len(text) <= _CELL_CHARS_MAX else f"{text[: _CELL_CHARS_MAX - 3]}..."
    return escape(cut)
