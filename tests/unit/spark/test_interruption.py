"""A job at a signal, with a stand-in for Spark."""

from __future__ import annotations

import logging
import os
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from pyspark import SparkContext
from pyspark_natsstream.jobs.interruption import Interruption

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def logging_kept() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The running Spark."""
    context = Mock()
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    return context


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_interrupts_silences_spark_and_gives_the_handlers_back(
    number: signal.Signals, context: Mock
) -> None:
    before = signal.getsignal(number)

    with Interruption() as interruption:
        assert not interruption.is_set
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert interruption.is_set
        os.kill(os.getpid(), number)  # That of `timeout`, which signals twice.
        interruption.stop_spark()

    assert signal.getsignal(number) is before
    context.setLogLevel.assert_called_once_with("OFF")
    context._jvm.java.lang.System.setErr.assert_called_once()
    context.stop.assert_called_once()
    assert not logging.getLogger("py4j").isEnabledFor(logging.CRITICAL)


def test_spark_that_is_gone_is_no_error(context: Mock) -> None:
    context.stop.side_effect = ConnectionRefusedError

    Interruption().stop_spark()

    context.stop.assert_called_once()


def test_signal_while_spark_starts_kills_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    java = Mock()
    monkeypatch.setattr(SparkContext, "_gateway", None)

    def start() -> Any:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java))
        os.kill(os.getpid(), signal.SIGTERM)

    with Interruption() as interruption, pytest.raises(KeyboardInterrupt):
        interruption.start_spark(start)

    java.kill.assert_called_once()
