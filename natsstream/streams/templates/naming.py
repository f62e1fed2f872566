"""The stream of a subject by a template: its name and its subjects; pure rules.

Law: two subjects have the same stream only if they differ in tokens for the template's `>` alone:
different tokens always give different names (`a.b` and `a_b` do).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from natsstream.api.names import check_filter, check_stream_name
from natsstream.arguments import check_text
from natsstream.errors import ConfigError, SubjectError

_FIELD = re.compile(r"\{(\d{1,4})\}")
# Characters of a token that a name keeps. `_` joins tokens and `=` starts an escaped byte.
_KEPT = re.compile(rb"[A-Za-z0-9-]")
_JOINT = "_"


@dataclass(frozen=True, slots=True)
class Naming:
    """The rule from subjects to streams; made by `naming_of`.

    Attributes:
        pattern: The subjects, with wildcards.
        name: The streams' name, with `{1}` for the first `*`, `{2}` for the second.
    """

    pattern: str
    name: str

    def tokens_of(self, subject: str) -> tuple[str, ...] | None:
        """Return the token for each `*`, or None if the pattern does not match."""
        wanted, given = self.pattern.split("."), subject.split(".")
        if wanted[-1] == ">":
            if len(given) < len(wanted):
                return None
            wanted, given = wanted[:-1], given[: len(wanted) - 1]
        if len(wanted) != len(given):
            return None
        pairs = list(zip(wanted, given, strict=True))
        if any(want not in ("*", token) for want, token in pairs):
            return None
        return tuple(token for want, token in pairs if want == "*")

    def name_of(self, tokens: tuple[str, ...]) -> str:
        """Return the name of the stream for these tokens.

        Raises:
            StreamNameError: The name is too long.
        """
        name = _FIELD.sub(lambda field: escape_token(tokens[int(field[1]) - 1]), self.name)
        return check_stream_name(name)

    def subject_of(self, tokens: tuple[str, ...]) -> str:
        """Return the subject of the stream for these tokens: the pattern with them in it."""
        left = iter(tokens)
        return ".".join(
            next(left) if token == "*" else token  # noqa: S105 - Of a subject, no secret.
            for token in self.pattern.split(".")
        )


def naming_of(pattern: str, name: str | None = None) -> Naming:
    """Return the rule for a pattern.

    Args:
        pattern: Subjects with at least one `*`; a final `>` is kept as it is.
        name: The streams' name with `{1}`, `{2}` for the wildcards' tokens; None is the pattern's
            own tokens, joined by `_`.

    Raises:
        SubjectError: The pattern is no subject.
        ConfigError: Different subjects would get one name.
        StreamNameError: The name is not legal on servers.
    """
    check_filter(check_text(pattern, "the template's pattern", error=SubjectError))
    tokens = pattern.split(".")
    wildcards = tokens.count("*")
    if not wildcards:
        raise ConfigError(
            f"template {pattern} has no *: it could create one stream only",
            hint="create that one with js.streams.ensure(), or give a pattern such as orders.*",
        )
    if name is None:
        numbers = iter(range(1, wildcards + 1))
        fixed = tokens[:-1] if tokens[-1] == ">" else tokens
        name = _JOINT.join(
            f"{{{next(numbers)}}}" if token == "*" else escape_token(token)  # noqa: S105 - No secret.
            for token in fixed
        )
    check_text(name, "the template's name")
    numbers_used = [int(number) for number in _FIELD.findall(name)]
    if sorted(numbers_used) != list(range(1, wildcards + 1)):
        raise ConfigError(
            f"name {name!r} of template {pattern} does not have each of its {wildcards} wildcards "
            "once, so that different subjects would share a stream",
            hint=f"use {' and '.join(f'{{{number}}}' for number in range(1, wildcards + 1))}",
        )
    if not all(_JOINT in text for text in _FIELD.split(name)[2:-1:2]):
        raise ConfigError(
            f"name {name!r} of template {pattern} has no {_JOINT!r} between two wildcards, so that "
            "different subjects could share a stream",
            hint="write it like ORDERS_{1}_{2}",
        )
    check_stream_name(_FIELD.sub("x", name))
    return Naming(pattern, name)


def escape_token(token: str) -> str:
    """Return a subject's token as a part of a stream's name, reversibly.

    Letters, digits and `-` stay; every other byte becomes `=` and two digits.
    """
    return "".join(
        chr(byte) if _KEPT.match(bytes([byte])) else f"={byte:02X}"
        for byte in token.encode("utf-8", "surrogatepass")
    )


def are_alike(one: str, other: str) -> bool:
    """Return True if two templates' names differ at most in the numbers of their fields."""
    return _FIELD.sub("{}", one) == _FIELD.sub("{}", other)


def overlap(one: str, other: str) -> bool:
    """Return True if a subject can match both patterns."""
    left, right = one.split("."), other.split(".")
    for index in range(max(len(left), len(right))):
        ours = left[index] if index < len(left) else None
        theirs = right[index] if index < len(right) else None
        if ours is None or theirs is None:
            return False
        if ">" in (ours, theirs):
            return True
        if "*" not in (ours, theirs) and ours != theirs:
            return False
    return True
