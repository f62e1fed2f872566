"""Verdicts that an outage leaves unconfirmed are one line of the log, not one each."""

from __future__ import annotations

import asyncio
import logging

import pytest

from natsstream.consume.work import unconfirmed
from natsstream.consume.work.unconfirmed import UnconfirmedVerdicts
from natsstream.errors import DeliveryForgottenError, RequestTimeoutError

pytestmark = pytest.mark.asyncio

WHAT = "consumer c of stream S"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged at WARNING."""
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


async def test_one_is_told_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    verdicts = UnconfirmedVerdicts(WHAT)
    verdicts.add(7, DeliveryForgottenError(f"message 7 of {WHAT}: it is forgotten"))
    verdicts.log()
    verdicts.add(8, RequestTimeoutError("no answer"))
    verdicts.log()
    verdicts.log()

    assert lines(caplog) == [
        f"message 7 of {WHAT}: it is forgotten",
        f"message 8 of {WHAT}: no answer",
    ]


async def test_many_are_one_line_a_moment_later(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unconfirmed, "_GATHER_S", 0.01)
    verdicts = UnconfirmedVerdicts(WHAT)
    for sequence in (1_002, 1_001, *range(1_003, 2_501)):
        verdicts.add(sequence, RequestTimeoutError(f"no answer for {sequence}"))
    assert lines(caplog) == []
    async with asyncio.timeout(30):
        while not lines(caplog):
            await asyncio.sleep(0.01)

    verdicts.log()
    (line,) = lines(caplog)
    assert line == (
        f"1,500 messages of {WHAT}, of 1001 to 2500, may be redelivered; the first error: "
        "no answer for 1002"
    )
