"""Reading what a server refuses: English, with subjects as Go quotes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.permission_violations import (
    PermissionViolation,
    denied_error,
    is_about_credentials,
    parse_permission_violation,
    permission_rule,
)
from natsstream.events import PermissionDenied

# What Go's strconv.Quote writes for a few characters; all others may stand as they are.
GO = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\x7f": "\\x7f",
    "\u200b": "\\u200b",
    "\x01": "\\x01",
    "\U000e0001": "\\U000e0001",
}
SUBJECTS = st.text(
    st.one_of(st.sampled_from(sorted(GO)), st.characters(exclude_categories=["C", "Z"])), min_size=1
)


def go_quoted(text: str) -> str:
    return '"' + "".join(GO.get(char, char) for char in text) + '"'


@given(SUBJECTS, SUBJECTS)
def test_subject_and_queue_are_read_as_they_were_sent(subject: str, queue: str) -> None:
    quoted = go_quoted(subject)

    publish = parse_permission_violation(f"Permissions Violation for Publish to {quoted}")
    reply = parse_permission_violation(f"Permissions Violation for Publish with Reply of {quoted}")
    listen = parse_permission_violation(
        f"Permissions Violation for Subscription to {quoted} using queue {go_quoted(queue)}"
    )

    assert publish == reply == PermissionViolation("publish", subject, "")
    assert listen == PermissionViolation("subscription", subject, queue)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for start in ("", "Permissions Violation for Publish to ", 'permissions violation for X to "'):
        found = parse_permission_violation(start + text)
        assert found is None or found.operation in {"publish", "subscription"}
    escaped = parse_permission_violation(f'Permissions Violation for Publish to "\\{text}"')
    assert escaped is None or isinstance(escaped.subject, str)
    is_about_credentials(text)


@pytest.mark.parametrize(
    ("quoted", "subject"),
    [
        (r'"\xff"', "\udcff"),
        (r'"\ud800"', "?"),
        (r'"\U00ffffff"', "\ufffd"),
        (r'"\q"', "q"),
        (r'"a\tb"', "a\tb"),
        (r'"\u12"', "u12"),
    ],
)
def test_odd_escapes_are_read_without_an_error(quoted: str, subject: str) -> None:
    assert parse_permission_violation(
        f"Permissions Violation for Publish to {quoted}"
    ) == PermissionViolation("publish", subject, "")


def test_other_errors_are_no_denials() -> None:
    assert parse_permission_violation("Unknown Protocol Operation") is None
    assert parse_permission_violation('Permissions Violation for Publish to "a') is None


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("Authorization Violation", True),
        ("User Authentication Expired", True),
        ("Account Authentication Expired", True),
        ("User Authentication Revoked", True),
        ("Authentication Timeout", False),
        ("Maximum Connections Exceeded", False),
        ("maximum account active connections exceeded", False),
    ],
)
def test_only_refused_credentials_are_about_credentials(text: str, is_so: bool) -> None:  # noqa: FBT001 - a row of the table.
    """A server that is too busy to sign a client in says so with a timeout."""
    assert is_about_credentials(text) is is_so


def test_error_of_a_denial_says_what_to_allow() -> None:
    error = denied_error(PermissionDenied(operation="subscription", subject="a.>", queue="q"))

    assert (error.operation, error.subject) == ("subscription", "a.>")
    assert "subscribe a.>" in error.hint


@pytest.mark.parametrize(
    ("subject", "rule"),
    [
        ("_INBOX.1975ee0123456789abcdef.*", "_INBOX.>"),
        ("_MINE.a.1975ee0123456789abcdef", "_MINE.a.>"),
        ("$JS.API.CONSUMER.CREATE.S.read-54dfa42b2ff228b5", "$JS.API.CONSUMER.CREATE.S.>"),
        ("$JS.hub.API.CONSUMER.MSG.NEXT.S.54dfa42b2ff228b5", "$JS.hub.API.CONSUMER.MSG.NEXT.S.>"),
        ("$JS.API.CONSUMER.CREATE.S.read-54dfa42b2ff228b5.a.b", "$JS.API.CONSUMER.CREATE.S.>"),
        ("$JS.API.CONSUMER.CREATE.S.mine", "$JS.API.CONSUMER.CREATE.S.mine"),
        ("$JS.ACK.S.mine.1.2.3.4.5", "$JS.ACK.S.mine.>"),
        ("$JS.ACK.hub.hash.S.mine.1.2.3.4.5", "$JS.ACK.hub.hash.S.mine.>"),
        ("$JS.ACK._.hash.S.mine.1.2.3.4.5.token", "$JS.ACK._.hash.S.mine.>"),
        ("$JS.ACK.odd", "$JS.ACK.>"),
        ("orders.eu.$ctl.abcdefgh.p.cDE", "orders.eu.>"),
        ("$O.files.C.OsUsGt6Iixjt2781O66AGv", "$O.files.>"),
        ("$DLQ.ORDERS_DLQ.ORDERS.c.1.1795888131874243683", "$DLQ.ORDERS_DLQ.>"),
        ("cn.b.0123456789abcdefgh.OsUsGt6Iixjt2781O66AGv", "cn.b.0123456789abcdefgh.>"),
        ("cn.d.0123456789abcdefgh.k.bYQ", "cn.d.0123456789abcdefgh.>"),
        ("$KV.settings.mail.host", "$KV.settings.mail.host"),
        ("$JS.SNAPSHOT.ACK.S.OsUsGt6Iixjt2781O66AGv.131072.1", "$JS.SNAPSHOT.ACK.S.>"),
        ("$JS.SNAPSHOT.RESTORE.S.OsUsGt6Iixjt2781O66AGv", "$JS.SNAPSHOT.RESTORE.S.>"),
        ("orders.54dfa42b2ff228b5", "orders.54dfa42b2ff228b5"),
    ],
)
def test_rule_has_no_name_that_is_drawn_for_each_call(subject: str, rule: str) -> None:
    assert permission_rule(subject) == rule
