"""Which tests of a large table run, a fifth by seed or all, and in which order tests run."""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    import pytest

SHARE = 5
"""One of so many tests runs."""


def is_chosen(name: str, seed: int) -> bool:
    """Return True if a seed chooses a test; of five days in a row each test has one."""
    return (zlib.crc32(name.encode()) + seed) % SHARE == 0


def choose(names: Iterable[str], seed: int) -> set[str]:
    """Return the ids that a seed chooses of those of sampled tests."""
    return {name for name in names if is_chosen(name, seed)}


def choose_variants(names: Iterable[str], seed: int) -> set[str]:
    """Return the same, and of a function of which it chooses none one variant, by turns."""
    chosen = set[str]()
    functions = defaultdict[str, list[str]](list)
    for name in names:
        functions[name.partition("[")[0]].append(name)
    for variants in functions.values():
        chosen |= choose(variants, seed) or {variants[seed % len(variants)]}
    return chosen


def seed_of(option: str, today: date) -> int | None:
    """Return the seed that an option stands for; None is all tests.

    Args:
        option: "all", a whole number, or empty for the seed of the day.
        today: The day in UTC.

    Raises:
        ValueError: The option is something else.
    """
    if option == "all":
        return None
    return int(option) if option else today.toordinal()


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Put the files in the order of a seed, and the tests of each file; files stay together."""
    order = random.Random(seed)  # noqa: S311 - No secret.
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    order.shuffle(files)
    for file in files:
        order.shuffle(file)
    items[:] = [item for file in files for item in file]
