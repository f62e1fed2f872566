"""Attempts to save local writes, in virtual time."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from natsstream.conat.saver import CLOSE_SAVE_S, Saver, quiet_after
from natsstream.errors import NoRespondersError, PermissionDeniedError, UnsavedChangesError
from tests.support import virtual_time


class Writes:
    """Local writes, and the attempts to save them: each takes the next outcome, then succeeds."""

    def __init__(self, *outcomes: bool | Exception, is_automatic: bool = True) -> None:
        self.unsaved = 0
        self.attempts: list[float] = []
        self._outcomes = list(outcomes)
        self.saver = Saver(
            "test",
            self._attempt,
            lambda: self.unsaved > 0,
            lambda: UnsavedChangesError("test was closed with writes", count=self.unsaved),
            is_automatic=is_automatic,
        )

    def write(self) -> None:
        self.unsaved += 1
        self.saver.wrote()

    async def _attempt(self) -> bool:
        self.attempts.append(round(asyncio.get_running_loop().time(), 3))
        tried = self.unsaved
        await asyncio.sleep(1)
        outcome = self._outcomes.pop(0) if self._outcomes else True
        if isinstance(outcome, Exception):
            raise outcome
        if outcome:
            self.unsaved -= tried
        return outcome


def test_writes_are_saved_without_a_call() -> None:
    async def main() -> Writes:
        writes = Writes()
        writes.write()
        await asyncio.sleep(5)
        return writes

    writes = virtual_time.run(main())
    assert (writes.unsaved, writes.attempts) == (0, [0])


def test_a_write_during_an_attempt_is_saved_by_the_next_one_at_once() -> None:
    async def main() -> Writes:
        writes = Writes()
        writes.write()
        await asyncio.sleep(0.5)
        writes.write()
        await writes.saver.save()
        return writes

    writes = virtual_time.run(main())
    assert (writes.unsaved, writes.attempts) == (0, [0, 1])


def test_failed_attempts_are_repeated_less_and_less_often() -> None:
    async def main() -> Writes:
        writes = Writes(*[NoRespondersError("none")] * 20)
        writes.write()
        await writes.saver.save()
        return writes

    times = virtual_time.run(main()).attempts
    pauses = [round(after - before - 1, 3) for before, after in itertools.pairwise(times)]
    assert pauses[:3] == [0.15, 0.195, pytest.approx(0.2535, abs=0.001)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 10


def test_hurry_ends_the_pause() -> None:
    async def main() -> Writes:
        writes = Writes(*[False] * 20)
        writes.write()
        await asyncio.sleep(60)
        before = len(writes.attempts)
        while len(writes.attempts) == before:
            writes.saver.hurry()
            await asyncio.sleep(0.01)
        with pytest.raises(UnsavedChangesError):
            await writes.saver.close()
        return writes

    times = virtual_time.run(main()).attempts
    assert 60 in [round(each) for each in times]


def test_without_autosave_one_call_makes_one_attempt() -> None:
    async def main() -> Writes:
        writes = Writes(NoRespondersError("none"), is_automatic=False)
        writes.write()
        await asyncio.sleep(5)
        assert writes.attempts == []
        await writes.saver.save()
        return writes

    writes = virtual_time.run(main())
    assert (writes.unsaved, writes.attempts) == (1, [5])


def test_two_calls_at_a_time_make_one_attempt() -> None:
    async def main() -> Writes:
        writes = Writes(is_automatic=False)
        writes.write()
        await asyncio.gather(writes.saver.save(), writes.saver.save())
        return writes

    assert virtual_time.run(main()).attempts == [0]


def test_an_error_that_no_retry_mends_is_raised_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> Writes:
        writes = Writes(PermissionDeniedError("no", operation="publish", subject="a"))
        writes.write()
        with pytest.raises(PermissionDeniedError):
            await writes.saver.save()
        assert writes.unsaved == 1
        await writes.saver.save()
        return writes

    assert virtual_time.run(main()).attempts == [0, 1]
    assert "test cannot save: no" in caplog.text


def test_closing_saves_first() -> None:
    async def main() -> Writes:
        writes = Writes()
        writes.write()
        await writes.saver.close()
        return writes

    assert virtual_time.run(main()).unsaved == 0


def test_closing_without_a_server_ends_and_says_that_changes_are_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> float:
        writes = Writes(*[NoRespondersError("none")] * 1_000)
        writes.write()
        saving = asyncio.create_task(writes.saver.save())
        with pytest.raises(UnsavedChangesError) as caught:
            await writes.saver.close()
        assert (caught.value.count, caught.value.detail) == (1, "none")
        await saving
        return asyncio.get_running_loop().time()

    assert virtual_time.run(main()) == pytest.approx(CLOSE_SAVE_S)
    [logged] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert (logged.name, logged.message[:27]) == ("natsstream.conat", "test was closed with writes")


def test_the_error_of_a_block_counts_more_than_lost_changes() -> None:
    lost = UnsavedChangesError("lost", count=1)
    with quiet_after(KeyError):
        raise lost
    with pytest.raises(UnsavedChangesError), quiet_after(None):
        raise lost


def test_closing_without_autosave_saves_nothing() -> None:
    async def main() -> Writes:
        writes = Writes(is_automatic=False)
        writes.write()
        await writes.saver.close()
        return writes

    assert virtual_time.run(main()).attempts == []
