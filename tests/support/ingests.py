"""Fast ingests for tests: other waits than those that callers can ask for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from natsstream import FastIngest


@contextmanager
def other_waits(fast: FastIngest, **waits: float) -> Generator[None]:
    """Give an open ingest other waits for a while."""
    sender = fast._sender  # pyright: ignore[reportPrivateUsage]
    assert sender is not None
    before = sender._options  # pyright: ignore[reportPrivateUsage]
    sender._options = replace(before, **waits)  # pyright: ignore[reportPrivateUsage, reportArgumentType]
    yield
    sender._options = before  # pyright: ignore[reportPrivateUsage]
