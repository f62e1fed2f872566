"""Commands as bytes: each is one legal line and its payload, or an error and nothing sent."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import natsstream
from natsstream._wire.encode import (
    CONTROL_LINE_BYTES_MAX,
    ack_commands,
    fast_command,
    is_word,
    publish_command,
    publish_start,
    subscribe_command,
    subscribe_start,
    unsubscribe_command,
    verdict_command,
)
from natsstream._wire.headers import encode_headers
from natsstream.errors import ConfigError, HeaderError, SubjectError, UsageError
from tests.support.strict import StrictParser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOSTILE = [
    "a b",
    "a\tb",
    "a\rb",
    "a\nb",
    "a\0b",
    " a",
    "a ",
    "a\r\nPUB INJECTED 0\r\n\r\nPUB b",
    "x" * 5_000,
    "\u20ac" * 2_000,
    "\ud800",
]
BLOCK = encode_headers({"A": "b"})

texts = st.text(
    st.one_of(st.sampled_from(" \t\r\n\0ab.*>\x0b\x85\u2028\xa0"), st.characters()), max_size=12
)


def commands_of(wire: bytes) -> list[tuple[bytes, ...]]:
    """Read bytes as a server does."""
    parser = StrictParser(checks_subjects=False)
    parser.feed(wire)
    assert parser.is_at_start
    return [each.words for each in parser.commands]


@pytest.mark.parametrize("text", [*HOSTILE, ""])
def test_subject_that_would_break_its_line_is_refused(text: str) -> None:
    with pytest.raises(SubjectError):
        publish_start(text, "reply")
    with pytest.raises(SubjectError):
        subscribe_start(text, "")


@pytest.mark.parametrize("text", HOSTILE)
def test_reply_that_would_break_its_line_is_refused(text: str) -> None:
    with pytest.raises(SubjectError):
        publish_start("a", text)


@pytest.mark.parametrize("text", HOSTILE)
def test_queue_group_that_would_break_its_line_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        subscribe_start("a", text)


def test_long_queue_group_is_refused_as_such() -> None:
    with pytest.raises(ConfigError, match="queue group"):
        subscribe_start("a", "x" * 5_000)


def test_texts_that_are_too_long_together_are_refused() -> None:
    for make in (publish_start, subscribe_start):
        with pytest.raises(SubjectError, match="shorten"):
            make("a" * 2_100, "b" * 2_100)


@given(texts, texts)
@example("a", "\ud800")
@example("\udcff", "\udcff")
def test_command_of_any_text_is_one_command_or_an_error(subject: str, reply: str) -> None:
    try:
        start = publish_start(subject, reply)
    except SubjectError:
        has_end = set(subject + reply) & set(" \t\r\n\0")
        assert has_end or not subject or not _is_text(subject + reply)
        return
    wire = publish_command(start, b"7", BLOCK, b"x") + publish_command(start, b"7", b"", b"")

    name, back = _bytes(subject), _bytes(reply) + b"7"
    sizes = b"%d" % len(BLOCK), b"%d" % (len(BLOCK) + 1)
    assert commands_of(wire) == [(b"HPUB", name, back, *sizes), (b"PUB", name, back, b"0")]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _is_text(text: str) -> bool:
    try:
        _bytes(text)
    except UnicodeEncodeError:
        return False
    return True


def test_longest_line_fits_into_the_limit_of_a_server() -> None:
    starts = [publish_start("a" * 2_000, "b" * size) for size in range(1_900, 1_999)]
    for start in starts[:1] + starts[-1:]:
        line = fast_command(start, (1 << 64) - 1, 4, BLOCK, b"").partition(b"\r\n")[0]
        assert len(line) <= CONTROL_LINE_BYTES_MAX
    line = subscribe_command(subscribe_start("a" * 2_000, "b" * 1_990), b"9" * 20)
    assert len(line) <= CONTROL_LINE_BYTES_MAX


def test_subject_of_others_that_is_no_utf_8_goes_out_as_it_came() -> None:
    start = publish_start(b"a.\xff".decode("utf-8", "surrogateescape"), "")

    assert commands_of(publish_command(start, b"", b"", b"")) == [(b"PUB", b"a.\xff", b"0")]


def test_subject_that_is_no_utf_8_can_not_be_subscribed_to() -> None:
    """nats-py subscribes again after a reconnect, and would end its attempts on it."""
    with pytest.raises(SubjectError, match="valid text"):
        subscribe_start(b"a.\xff".decode("utf-8", "surrogateescape"), "")


@pytest.mark.parametrize(
    "block",
    [
        b"NATS/1.0\r\nA: b\r\n",
        b"NATS/1.0\r\nA: b\r\n\r\nPUB INJECTED 0\r\n\r\n",
        b"NATS/1.0\r\n\r\n\r\n",
        b"x",
        b"\r\n\r\nPUB INJECTED 0\r\n\r\n",
    ],
)
def test_header_block_with_another_end_is_refused(block: bytes) -> None:
    start = publish_start("a", "b.")
    with pytest.raises(HeaderError):
        publish_command(start, b"", block, b"")
    with pytest.raises(HeaderError):
        fast_command(start, 1, 1, block, b"")


def test_subscription_and_its_end_are_one_command_each() -> None:
    wire = subscribe_command(subscribe_start("a.*", "q"), b"7") + unsubscribe_command(b"7")

    assert commands_of(wire) == [(b"SUB", b"a.*", b"q", b"7"), (b"UNSUB", b"7")]


def verdicts(replies: Sequence[bytes]) -> bytes:
    """Return a verdict on each."""
    return b"".join(verdict_command(each, b"+ACK") for each in replies)


@pytest.mark.parametrize("make", [ack_commands, verdicts])
@given(replies=st.lists(st.binary(max_size=8), min_size=1, max_size=5))
def test_verdicts_of_any_reply_are_one_command_each_or_an_error(
    make: Callable[[Sequence[bytes]], bytes], replies: list[bytes]
) -> None:
    try:
        wire = make(replies)
    except SubjectError:
        assert not all(map(is_word, replies))
    else:
        assert commands_of(wire) == [(b"PUB", reply, b"4") for reply in replies]


@pytest.mark.parametrize("make", [ack_commands, verdicts])
def test_reply_of_a_message_that_is_too_long_is_refused(
    make: Callable[[Sequence[bytes]], bytes],
) -> None:
    with pytest.raises(SubjectError):
        make([b"a", b"x" * 5_000])


def test_no_other_file_writes_a_command_with_text_in_it() -> None:
    """Whoever needs a command takes it from `encode.py`, where its text is proved."""
    verbs = ("PUB", "HPUB", "SUB", "UNSUB")
    root = Path(natsstream.__file__).parent
    found: list[str] = []
    for path in sorted(root.rglob("*.py")):
        if path.name == "encode.py" or "testing" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Constant):
                continue
            value = node.value
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            if isinstance(text, str) and text.startswith(tuple(f"{verb} " for verb in verbs)):
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert found == []
