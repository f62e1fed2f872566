"""Legal subjects and filters; pure rules. The rules for names are in `_wire/names.py`.

Law: a subject that makes the server close the connection, or store under another name, is refused
before anything is sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias, cast

from natsstream._wire.names import (
    STREAM_NAME_BYTES_MAX,
    check_consumer_name,
    check_stream_name,
    is_name,
)
from natsstream._wire.subjects import reached_under
from natsstream.arguments import check_text, check_texts
from natsstream.errors import ConfigError, SubjectError

__all__ = [
    "STREAM_NAME_BYTES_MAX",
    "SUBJECT_BYTES_MAX",
    "check_consumer_name",
    "check_filter",
    "check_filters",
    "check_stream_name",
    "check_subject",
    "collide",
    "covers",
    "drop_covered",
    "is_literal",
    "is_name",
    "reached_under",
]

# The server's max_control_line is 4,096 bytes for the whole line; a longer one closes the
# connection. The rest of the line (verb, reply, sizes) needs well under 512.
SUBJECT_BYTES_MAX = 3_584

# Filters by their tokens; one that ends at a node has this name there, which no token has.
_Tree: TypeAlias = dict[str, object]
_END = ""

# Only ASCII white space: servers accept any other. The last range is surrogates, which stand for
# bytes that are not UTF-8 and cannot be encoded.
_ILLEGAL_IN_SUBJECT = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]", re.ASCII)
_WILD = frozenset("*>")


def check_subject(subject: str) -> str:
    """Return a subject to publish to, or raise SubjectError; wildcards are refused."""
    check_text(subject, "the subject", error=SubjectError)
    if "*" in subject or ">" in subject:
        for token in subject.split("."):
            if token in ("*", ">"):
                raise SubjectError(
                    f"subject {subject!r} has the wildcard {token!r}",
                    hint="messages are published to one subject; wildcards are for filters",
                )
    return check_filter(subject)


def check_filter(subject: str) -> str:
    """Return a subject filter, or raise SubjectError; `*` is one token and a final `>` the rest."""
    check_text(subject, "the subject", error=SubjectError)
    if not subject:
        raise SubjectError("the subject is empty", hint="give one, such as 'orders.new'")
    if len(subject.encode("utf-8", "surrogatepass")) > SUBJECT_BYTES_MAX:
        raise SubjectError(
            f"subject {subject[:40]!r}... exceeds {SUBJECT_BYTES_MAX} bytes",
            hint="the server closes the connection on longer lines; shorten it",
        )
    found = _ILLEGAL_IN_SUBJECT.search(subject)
    if found:
        is_half = found.group() >= "\ud800"
        raise SubjectError(
            f"subject {subject!r} has {'the surrogate ' if is_half else ''}{found.group()!r}",
            hint="give text that UTF-8 can encode; half of a surrogate pair is none"
            if is_half
            else "no white space or control characters",
        )
    tokens = subject.split(".")
    if not all(tokens):
        raise SubjectError(
            f"subject {subject!r} has an empty token", hint="no leading, trailing or double '.'"
        )
    if ">" in tokens[:-1]:
        raise SubjectError(
            f"subject {subject!r} has '>' before its end",
            hint="'>' stands for the rest and comes last; '*' stands for one token",
        )
    return subject


def is_literal(subject: str) -> bool:
    """Return True if a stored subject, used as a filter, matches itself alone.

    Servers store subjects with wildcards, and some clients publish them: nats-py takes the `*` in
    `purge("*")` as a key. As a filter it would match every key, so such messages are left alone.
    """
    return not {"*", ">"}.intersection(subject.split("."))


def half_wildcard(subject: str) -> str:
    """Return the first token that looks like a wildcard and is none; empty if there is none."""
    tokens = subject.split(".")
    return next((each for each in tokens if each == "#" or (len(each) > 1 and {*each} & _WILD)), "")


def check_filters(filters: object, name: str = "filters") -> tuple[str, ...]:
    """Return the filters of one consumer or read.

    Args:
        filters: A list or another sequence of filters, not one text.
        name: The argument's name, for messages.

    Raises:
        ConfigError: `filters` is one text or no sequence, or two filters overlap.
        SubjectError: A filter is not legal.
    """
    texts = tuple(check_filter(each) for each in check_texts(filters, name, error=SubjectError))
    kept = {*drop_covered(texts)}
    if len(kept) == len(texts):
        return texts
    one = next((each for each, count in Counter(texts).items() if count > 1), "")
    other = one or next(each for each in texts if each not in kept)
    one = one or next(each for each in texts if each != other and covers(each, other))
    raise ConfigError(
        f"{name}: {one!r} and {other!r} overlap",
        hint="leave out the filter that the other one covers",
    )


def drop_covered(filters: Iterable[str]) -> tuple[str, ...]:
    """Return the filters that no other filter covers, in their order."""
    texts = tuple(dict.fromkeys(filters))
    # Only a filter with a wildcard covers others. A tree of their tokens avoids comparing every
    # pair of filters.
    tree: _Tree = {}
    for each in filter(_is_wide, texts):
        node = tree
        for name in each.split("."):
            node = cast("_Tree", node.setdefault(name, {}))
        node[_END] = None
    return tuple(each for each in texts if _covering(tree, each) == _is_wide(each))


def _is_wide(subject: str) -> bool:
    return "*" in subject or ">" in subject


def _covering(tree: _Tree, subject: str) -> int:
    """Return how many filters of a tree cover one, itself included."""
    count, nodes = 0, [tree]
    for mine in subject.split("."):
        count += sum(">" in node for node in nodes)
        names = () if mine == ">" else {"*", mine}
        nodes = [cast("_Tree", node[name]) for node in nodes for name in names if name in node]
    return count + sum(_END in node for node in nodes)


def covers(wide: str, narrow: str) -> bool:
    """Return True if a filter matches every subject that another filter matches.

    The server refuses two filters if one covers the other (10138). It accepts two that share only
    some subjects, such as `a.*` and `*.b`, and delivers each message once.
    """
    theirs = narrow.split(".")
    for index, mine in enumerate(wide.split(".")):
        if index == len(theirs):
            return False
        if mine == ">":
            return True
        if theirs[index] == ">" or mine not in ("*", theirs[index]):
            return False
    return wide.count(".") == narrow.count(".")


def collide(one: str, other: str) -> bool:
    """Return True if some subject matches both filters: a stream cannot have both (10052)."""
    mine, theirs = one.split("."), other.split(".")
    for left, right in zip(mine, theirs, strict=False):
        if ">" in (left, right):
            return True
        if left != right and "*" not in (left, right):
            return False
    return len(mine) == len(theirs)
