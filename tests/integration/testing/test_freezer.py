"""SIGSTOP pulses on a real server: it stands still and goes on, and always goes on at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from natsstream.errors import UsageError
from natsstream.testing import NatsServer
from natsstream.testing.freezer import draw_times
from natsstream.testing.processes import has_exited
from tests.support import held
from tests.support.eventually import eventually
from tests.support.raw_nats import request

WAIT_S = 30.0


def test_server_stands_still_in_each_pulse_and_answers_after_them(
    fresh_server: NatsServer,
) -> None:
    threads = held.threads()
    # More than can be over before anybody looks.
    with fresh_server.pulse(paused_s=0.05, running_s=0.01, count=1_000) as pulses:
        eventually(lambda: fresh_server.is_paused)
        eventually(lambda: pulses.done_count >= 2 and fresh_server.is_paused)
    with fresh_server.pulse(paused_s=0.05, running_s=0.01, count=5) as pulses:
        assert pulses.wait(WAIT_S)
        assert pulses.done_count == 5
        assert not fresh_server.is_paused

    assert request(fresh_server.port, "$JS.API.INFO")["type"]
    assert held.threads() <= threads


def test_server_goes_on_when_the_block_is_left_within_a_pause(fresh_server: NatsServer) -> None:
    with fresh_server.pulse(paused_s=3600, running_s=1, count=1000) as pulses:
        eventually(lambda: fresh_server.is_paused)
        assert not pulses.wait(0.01)

    assert not fresh_server.is_paused
    assert request(fresh_server.port, "$JS.API.INFO")["type"]


def test_pulses_end_with_the_server(fresh_server: NatsServer) -> None:
    with fresh_server.pulse(paused_s=0.01, running_s=0.01, count=100_000) as pulses:
        fresh_server.kill()
        assert pulses.wait(WAIT_S)

        fresh_server.start()
        assert request(fresh_server.port, "$JS.API.INFO")["type"]


def test_pulsed_server_can_be_stopped() -> None:
    server = NatsServer().start()
    pid = server.pid
    with server.pulse(paused_s=0.05, running_s=0.01, count=100_000):
        eventually(lambda: server.is_paused)
        server.stop()
        assert has_exited(pid)


def test_seed_draws_the_same_times_again() -> None:
    drawn = [list(draw_times(2, 4, 50, seed)) for seed in (7, 7, 8)]

    assert drawn[0] == drawn[1] != drawn[2]
    assert all(1 <= paused <= 3 and 2 <= running <= 6 for paused, running in drawn[0])
    assert set(draw_times(2, 4, 50, None)) == {(2, 4)}


def test_server_of_a_program_that_ends_within_a_pulse_is_ended() -> None:
    program = """
from natsstream.testing import NatsServer
server = NatsServer().start()
pulses = server.pulse(paused_s=3600, running_s=1, count=10).__enter__()
while not server.is_paused:
    pass
print(server.pid)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert ended.stderr == ""
    assert has_exited(int(ended.stdout))


def test_foreign_stop_signals_are_ended_by_pulses(fresh_server: NatsServer) -> None:
    with fresh_server.pulse(paused_s=0.01, running_s=0.01, count=1) as pulses:
        assert pulses.wait(WAIT_S)
        os.kill(fresh_server.pid, signal.SIGSTOP)
        eventually(lambda: fresh_server.is_paused)

    # The pulses were done: what somebody else stopped is not theirs.
    assert fresh_server.is_paused
    fresh_server.resume()


@pytest.mark.parametrize(
    ("paused_s", "running_s", "count"), [(0, 1, 1), (1, -1, 1), (1, 1, 0), (1, 1, 1_000_000)]
)
def test_impossible_pulses_are_refused(
    server: NatsServer, paused_s: float, running_s: float, count: int
) -> None:
    with pytest.raises(UsageError):
        server.pulse(paused_s=paused_s, running_s=running_s, count=count)


def test_server_that_is_not_running_has_no_pulses() -> None:
    with pytest.raises(UsageError, match="not running"):
        NatsServer().pulse(paused_s=1, running_s=1, count=1)
