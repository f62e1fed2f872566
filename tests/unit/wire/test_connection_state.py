"""The state of a connection and who is told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest

from natsstream._wire import connection_state as module
from natsstream._wire.connection_state import ConnectionState
from natsstream._wire.watchdog import Watchdog
from natsstream.errors import AuthenticationError, ConnectionClosedError, ConnectionLostError
from natsstream.events import Closed, Connected, Disconnected, ServerComplaint

if TYPE_CHECKING:
    from natsstream.events import ConnectionEvent, PermissionDenied

pytestmark = pytest.mark.asyncio


def broken_listener(event: object) -> None:
    raise RuntimeError(repr(event))


@pytest.fixture
def denied() -> list[PermissionDenied]:
    return []


@pytest.fixture
def life(denied: list[PermissionDenied]) -> ConnectionState:
    dog = Watchdog(
        interval_s=60,
        missed_max=2,
        ping=lambda: None,
        give_up=lambda _: None,
        unsent=lambda: 0,
    )
    made = ConnectionState(dog, denied.append)
    made.nats = SimpleNamespace(connected_url=urlparse("nats://u:p@h:1"), _server_info={})
    return made


async def test_listener_that_fails_costs_neither_the_others_nor_the_connection(
    life: ConnectionState, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[ConnectionEvent] = []
    woken: list[int] = []
    life.listen(broken_listener)
    life.watch(lambda: broken_listener(None))
    life.listen(events.append)
    life.watch(lambda: woken.append(1))

    await life.on_connected()
    life.on_server_error('Permissions Violation for Publish to "a"')
    await life.on_disconnected()
    life.end()

    assert len(events) == 4
    assert len(woken) == 3
    assert caplog.text.count("RuntimeError") >= 7


async def test_event_of_a_break_names_the_server_that_was_lost(life: ConnectionState) -> None:
    events: list[ConnectionEvent] = []
    await life.on_connected()
    life.listen(events.append)
    life.nats.connected_url = None  # As nats-py has it from the break on.

    await life.on_disconnected()

    assert events[0].url == "nats://h:1"


async def test_complaint_is_the_cause_of_the_break_that_follows_at_once(
    life: ConnectionState,
) -> None:
    events: list[ConnectionEvent] = []
    life.listen(events.append)
    await life.on_connected()
    life.on_server_error("Slow Consumer")
    await life.on_error(EOFError("nats: unexpected EOF"))
    await life.on_disconnected()

    assert isinstance(events[1], ServerComplaint)
    assert isinstance(events[2], Disconnected)
    assert events[2].reason == "Slow Consumer"


async def test_old_complaint_is_not_taken_for_the_cause_of_a_break(
    life: ConnectionState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server complains of an illegal subject, and goes on; an hour later it is restarted."""
    await life.on_connected()
    life.on_server_error("Invalid Publish Subject")
    monkeypatch.setattr(module, "_CAUSE_S", 0.0)
    await life.on_error(EOFError("nats: unexpected EOF"))

    assert life.last_error == "unexpected EOF"


async def test_waiting_ends_with_what_ended_the_connection(life: ConnectionState) -> None:
    with pytest.raises(ConnectionLostError, match="no reconnect"):
        await life.wait_connected(0.01)
    life.on_refused(AuthenticationError("no longer"))
    life.end()
    life.end()

    for _ in range(2):
        with pytest.raises(AuthenticationError):
            await life.wait_connected(1)
    assert not life.is_connected


async def test_closing_is_no_break_and_is_told_once(life: ConnectionState) -> None:
    events: list[ConnectionEvent] = []
    life.listen(events.append)
    await life.on_connected()
    life.begin_end()
    await life.on_error(EOFError("unexpected EOF"))
    await life.on_disconnected()
    await life.on_closed()
    life.end()

    assert [type(each) for each in events] == [Connected, Closed]
    with pytest.raises(ConnectionClosedError) as raised:
        life.check_open()
    assert raised.value.detail == ""


async def test_connection_that_comes_about_after_the_end_is_none(life: ConnectionState) -> None:
    events: list[ConnectionEvent] = []
    life.listen(events.append)
    life.end()

    await life.on_connected()

    assert [type(each) for each in events] == [Closed]
    assert (life.is_connected, life.connections) == (False, 0)
    assert life.watchdog._timer is None  # pyright: ignore[reportPrivateUsage]
