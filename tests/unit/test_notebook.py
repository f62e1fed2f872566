"""Values in notebooks: tables of their fields, escaped, cut, and without payloads."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import natsstream as ns
from natsstream.api.change_plan import created
from natsstream.notebook import NotebookTable


def html(value: Any) -> str:
    """Return what a notebook shows."""
    return value._repr_html_()


@dataclasses.dataclass(frozen=True, slots=True)
class Pair(NotebookTable):
    """Two fields, and what the server said."""

    left: str
    right: int | None
    raw: dict[str, str] = dataclasses.field(default_factory=dict[str, str])


def test_table_has_the_fields_that_are_set() -> None:
    shown = html(Pair("a", 0, {"secret": "x"}))

    assert shown == (
        "<table><caption>Pair</caption><tr><td>left</td><td>a</td></tr>"
        "<tr><td>right</td><td>0</td></tr></table>"
    )
    assert "right" not in html(Pair("a", None))


def test_text_is_escaped_and_cut() -> None:
    shown = html(Pair("<script>" + "x" * 1000, None))

    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < 400


def test_change_is_the_table_that_print_shows() -> None:
    config = ns.StreamConfig(name="S", subjects=["a.<b>"], max_msgs=3)

    shown = html(created(config))

    assert "<td>field</td><td>before</td><td>after</td>" in shown
    assert "<td>max_msgs</td><td>-</td><td>3</td>" in shown
    assert "a.&lt;b&gt;" in shown


@pytest.mark.parametrize(
    "kind",
    [
        ns.StreamConfig,
        ns.ConsumerConfig,
        ns.BucketConfig,
        ns.ObjectBucketConfig,
        ns.ConfigChange,
        ns.StreamInfo,
        ns.StreamState,
        ns.ConsumerInfo,
        ns.AccountInfo,
        ns.BucketStatus,
        ns.ObjectStoreStatus,
        ns.ObjectInfo,
        ns.WorkReport,
        ns.ReadReport,
        ns.OrderedReport,
    ],
)
def test_notebooks_show_it_as_a_table(kind: type[object]) -> None:
    assert issubclass(kind, NotebookTable)


def test_view_without_options_reports_no_defaults() -> None:
    plain, other = ns.BucketConfig(name="b"), ns.BucketConfig(name="b", history=5)

    assert ns.BucketConfig.renamed(created(plain.to_stream())).fields == ()
    (change,) = ns.BucketConfig.renamed(created(other.to_stream())).fields
    assert (change.name, change.after) == ("history", 5)
