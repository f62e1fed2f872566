"""Which tests of a large table run, a fifth by seed or all, and in which order tests run."""

from __future__ import annotations

import random
import zlib
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    import pytest

SHARE = 5
"""One of so many tests runs."""


def is_chosen(name: str, seed: int) -> bool:
    """Return True if a seed chooses a test; of five days in a row each test has one."""
    return (zlib.crc32(name.encode()) + seed) % SHARE == 0


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
