"""Legal keys and filters of keys; pure rules.

Law: a key is never taken for a filter. A key is refused before anything is sent if another client
would refuse it, or the server would store it under another subject or close the connection.

Source: ADR-6 kv-key-name; nats.go jetstream/kv.go keyValid and searchKeyValid.
"""

from __future__ import annotations

import re

from natsstream.arguments import check_text, described
from natsstream.errors import KeyNameError

ONE_BY_ONE = 'give a text; several filters stand one by one: kv.watch("a", "b.*")'
_ILLEGAL_IN_KEY = re.compile(r"[^-/_=.a-zA-Z0-9]")
_ILLEGAL_IN_FILTER = re.compile(r"[^-/_=.a-zA-Z0-9*>]")
_KEYS_HINT = (
    "keys have letters, digits and - _ / = . ; for others: kv.with_codec(keys=ns.Base64Keys())"
)


def check_key(key: object) -> str:
    """Return a key, or raise KeyNameError when it is none; wildcards are refused."""
    text = check_text(key, "key", error=KeyNameError)
    found = _ILLEGAL_IN_KEY.search(text)
    if found:
        if found.group() in "*>":
            raise KeyNameError(
                f"key {shown(text)} has the wildcard {found.group()!r}",
                hint="a call for one key takes no filter; keys(), watch() and purge_matching() do",
            )
        raise KeyNameError(f"key {shown(text)} has {found.group()!r}", hint=_KEYS_HINT)
    _check_tokens(text, "key")
    return text


def check_key_filter(filter: object) -> str:  # noqa: A002 - The field's own word.
    """Return a filter of keys, or raise KeyNameError: `*` is one token, a final `>` the rest."""
    text = check_text(filter, "filter", error=KeyNameError, hint=ONE_BY_ONE)
    found = _ILLEGAL_IN_FILTER.search(text)
    if found:
        raise KeyNameError(f"filter {shown(text)} has {found.group()!r}", hint=_KEYS_HINT)
    _check_tokens(text, "filter")
    tokens = text.split(".")
    if ">" in tokens[:-1]:
        raise KeyNameError(
            f"filter {shown(text)} has '>' before its end",
            hint="'>' stands for the rest and comes last; '*' stands for one token",
        )
    for token in tokens:
        if token not in ("*", ">") and ("*" in token or ">" in token):
            raise KeyNameError(
                f"filter {shown(text)}: {token!r} is no wildcard",
                hint="a wildcard is a token of its own, as in 'orders.*'",
            )
    return text


def shown(key: str) -> str:
    """Return a key as a message shows it, cut when it is long."""
    return described(key, with_type=False)


def _check_tokens(text: str, noun: str) -> None:
    if not text:
        raise KeyNameError(f"the {noun} is empty", hint="give one, such as 'settings.color'")
    if not all(text.split(".")):
        raise KeyNameError(
            f"{noun} {shown(text)} has an empty token",
            hint="no dot at its beginning or end, and no two together",
        )
