"""The page for programs of nats-py: each name in its tables is here, or is answered with a hint."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import natsstream as ns
from natsstream import errors, foreign_names

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "from-nats-py.md"
COLUMNS = 5
# What the variables of the page are here, and in its part on plain NATS.
KINDS: dict[str, tuple[str, type[object]]] = {
    "ack": ("ack", ns.PubAck),
    "box": ("box", ns.ObjectStore),
    "info": ("stream_info", ns.StreamInfo),
    "js": ("js", ns.JetStream),
    "kv": ("kv", ns.KeyValue),
    "m": ("message", ns.DeliveredMessage),
    "nc": ("js", ns.JetStream),
    "sub": ("consumer", ns.Consumer),
}
PLAIN_KINDS = {**KINDS, "m": ("", ns.CoreMessage), "sub": ("sub", ns.CoreSubscription)}
# The objects behind an attribute.
PARTS: dict[str, tuple[str, type[object]]] = {
    "config": ("", ns.StreamConfig),
    "metadata": ("meta", ns.DeliveryMeta),
}
# Arguments that stand alone in a table, by its heading.
CALLS = {"Publish": "js.publish", "The connection": "connect"}


def fragments() -> Iterator[tuple[str, str]]:
    """Yield the code of the columns of nats-py, each with the heading of its table."""
    for part in PAGE.read_text().split("\n## ")[1:]:
        heading, *lines = part.splitlines()
        rows = [line.split("|") for line in lines if line.startswith("|")]
        for row in rows:
            # Not the table of situations, which tells what happens.
            if len(row) == COLUMNS and heading != "Deliberate differences":
                yield from ((heading, code) for code in re.findall("`([^`]+)`", row[2]))


def parsed(code: str) -> ast.Module | None:
    """Return the syntax of a fragment; None for a part of a statement."""
    whole = f"{code} pass" if code.startswith("async for") else code
    try:
        made = compile(whole, "", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return None
    assert isinstance(made, ast.Module)
    return made


def without_texts(code: str) -> str:
    """Return code without the texts in quotes."""
    return re.sub(r'"[^"]*"', "", code)


def chains() -> set[tuple[bool, str]]:
    """Return names such as `m.metadata.timestamp`, and whether each is of plain NATS."""
    found: set[tuple[bool, str]] = set()
    for heading, code in fragments():
        for chain in re.findall(rf"\b(?:{'|'.join(KINDS)})(?:\.\w+)+", without_texts(code)):
            found.add((heading == "Plain NATS", chain))
    return found


def words() -> set[str]:
    """Return the names of classes."""
    found: set[str] = set()
    for _, code in fragments():
        found.update(re.findall(r"\b[A-Z]\w+[a-z]\b", without_texts(code)))
    return found - {"None", "True"}


def keywords() -> set[tuple[str, str]]:
    """Return the arguments by name, each with its call here."""
    found: set[tuple[str, str]] = set()
    for heading, code in fragments():
        alone = re.match(r"(\w+)=", code)
        if alone and heading in CALLS:
            found.add((CALLS[heading], alone[1]))
        for node in ast.walk(parsed(code) or ast.Module([], [])):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                root, _, method = ast.unparse(node.func).rpartition(".")
                holder = KINDS.get(root, ("", None))[0]
                call = "connect" if root == "nats" else f"{holder}.{method}"
                found |= {(call, each.arg) for each in node.keywords if each.arg}
    return found


@pytest.mark.parametrize(("is_plain", "chain"), sorted(chains()))
def test_attribute_of_the_tables_is_here_or_has_a_hint(is_plain: bool, chain: str) -> None:  # noqa: FBT001 - by pytest.
    root, *names = chain.split(".")
    _, kind = (PLAIN_KINDS if is_plain else KINDS)[root]
    for name in names:
        if not hasattr(kind, name):
            with pytest.raises(AttributeError, match=f"no attribute '{name}'; in natsstream: "):
                getattr(object.__new__(kind), name)
        if name not in PARTS:
            return  # Behind it are objects that this one does not have.
        _, kind = PARTS[name]


@pytest.mark.parametrize("word", sorted(words()))
def test_class_of_the_tables_is_here_or_has_a_hint(word: str) -> None:
    place = errors if word.endswith("Error") else ns
    if not hasattr(place, word):
        with pytest.raises(AttributeError, match=f"no attribute '{word}'; in natsstream: "):
            getattr(place, word)


@pytest.mark.parametrize(("call", "name"), sorted(keywords()))
def test_argument_of_the_tables_is_here_or_has_a_hint(call: str, name: str) -> None:
    holder, _, method = call.rpartition(".")
    kind = dict(KINDS.values()).get(holder)
    known = ns.connect if call == "connect" else getattr(kind, method, None)
    if known is None:
        return  # The call itself is answered.
    hints = {"connect": foreign_names.CONNECT_OPTIONS, **foreign_names.KEYWORDS}.get(call, {})

    assert name in inspect.signature(known).parameters or name in hints


def test_tables_are_read() -> None:
    """The tests above find what they are for."""
    assert {(False, "ack.seq"), (True, "sub.next_msg"), (False, "m.metadata.timestamp")} < chains()
    assert {"NotFoundError", "DeliverPolicy", "ConsumerConfig"} < words()
    assert {("connect", "error_cb"), ("js.publish", "msg_ttl"), ("kv.update", "last")} < keywords()
