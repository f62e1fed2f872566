"""What a run needs is asked for again while an election or a busy machine explains the failure."""

from __future__ import annotations

import pytest

from natsstream.errors import ConfigError, NatsStreamError, RequestTimeoutError
from scripts.chaos_runs.load import insist

pytestmark = pytest.mark.asyncio


class Asked:
    """Fails with some errors, then answers."""

    def __init__(self, *errors: NatsStreamError) -> None:
        self.errors: list[NatsStreamError] = [*errors]
        self.count: int = 0

    async def ask(self) -> int:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.count


async def test_failure_that_passes_is_asked_again() -> None:
    assert await insist(Asked(RequestTimeoutError("late")).ask) == 2


async def test_failure_that_stays_is_told_at_once() -> None:
    asked = Asked(ConfigError("wrong"))
    with pytest.raises(ConfigError):
        await insist(asked.ask)
    assert asked.count == 1
