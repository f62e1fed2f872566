"""Values in notebooks: tables of their fields, escaped, cut, and without payloads."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
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


def test_parts_are_rows_of_the_table_with_units() -> None:
    state = ns.StreamState(3, 3 * 1024 * 1024 // 2, 1, 3, 0, 1_700_000_000_000_000_000, 1, 0, 0, ())
    config = ns.StreamConfig(name="S", duplicate_window=120, max_age=0.25, max_bytes=-1)
    info = ns.StreamInfo(config, state, 1_700_000_000_123_456_789, {})

    shown = html(info)

    assert "<td>config.duplicate_window</td><td>2m0s</td>" in shown
    assert "<td>config.max_age</td><td>250ms</td>" in shown
    assert "<td>config.max_bytes</td><td>-1</td>" in shown
    assert "<td>state.bytes</td><td>1.5 MiB</td>" in shown
    assert "<td>state.last_time</td><td>2023-11-14 22:13:20 UTC</td>" in shown
    assert "<td>created</td><td>2023-11-14 22:13:20 UTC</td>" in shown
    assert "..." not in shown


def test_backoff_is_a_list_of_durations() -> None:
    config = ns.ConsumerConfig(backoff=[1, timedelta(minutes=90)])

    assert "<td>backoff</td><td>1s, 1h30m0s</td>" in html(config)


def test_usage_of_an_account_is_rows_with_units() -> None:
    limits = {"max_memory": -1, "max_storage": 3 << 30}
    used = {"memory": 0, "storage": 1536, "streams": 2, "consumers": 1, "limits": limits}
    info = ns.AccountInfo.from_json({**used, "api": {}, "tiers": {"R3": used}})

    shown = html(info)

    assert "<td>usage.storage</td><td>1.5 KiB</td>" in shown
    assert "<td>usage.limits.max_storage</td><td>3.0 GiB</td>" in shown
    assert "<td>usage.limits.max_memory</td><td>-1</td>" in shown
    assert "<td>tiers.R3.streams</td><td>2</td>" in shown
    assert "AccountUsage(" not in shown


def test_ack_is_a_table() -> None:
    assert html(ns.PubAck("ORDERS", 7)) == (
        "<table><caption>PubAck</caption><tr><td>stream</td><td>ORDERS</td></tr>"
        "<tr><td>sequence</td><td>7</td></tr><tr><td>duplicate</td><td>False</td></tr></table>"
    )


def test_entry_is_a_table_without_its_value() -> None:
    entry: ns.Entry[bytes] = ns.Entry("b", "<k>", b"secret", 3, 1_700_000_000_000_000_000, "PUT")

    shown = html(entry)

    assert "<td>key</td><td>&lt;k&gt;</td>" in shown
    assert "<td>created</td><td>2023-11-14 22:13:20 UTC</td>" in shown
    assert "<td>value</td><td>6 B</td>" in shown
    assert "secret" not in shown


def test_message_is_a_table_without_its_payload() -> None:
    block = b"NATS/1.0\r\nKind: <new>\r\n\r\n"
    message = ns.Message((b"a.b", b"", block, b"secret"), (7, 1_700_000_000_000_000_000))

    assert html(message) == (
        "<table><caption>Message</caption><tr><td>subject</td><td>a.b</td></tr>"
        "<tr><td>sequence</td><td>7</td></tr>"
        "<tr><td>time</td><td>2023-11-14 22:13:20 UTC</td></tr>"
        "<tr><td>headers</td><td>Kind: &lt;new&gt;</td></tr>"
        "<tr><td>data</td><td>6 B</td></tr></table>"
    )


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
