"""Texts that end a word or a line, or make a wildcard, where somebody puts them into a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.strict import StrictProxy

INJECTION = "x 0\r\n\r\nPUB INJECTED 0\r\n\r\nPUB y"
HOSTILE = [
    INJECTION,
    "a\nPUB\tINJECTED\t0\n",
    "a b",
    "a\tb",
    "a\0b",
    "",
    ".a..b",
    "a.>.b",
    "*",
    "\u20ac.\u2028\xa0\x0b",
    "\ud800",
    "x" * 5_000,
]


def check_sent(proxy: StrictProxy, what: str) -> None:
    """Assert that everything that was sent is a command that a call could send."""
    assert proxy.faults == [], f"{what}: {proxy.faults}"
    strays = [
        each.words
        for each in proxy.commands
        if any(word.split(b".")[0] == b"INJECTED" or b"\t" in word for word in each.words[1:])
    ]
    assert strays == [], what
    proxy.commands.clear()
