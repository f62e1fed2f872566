"""The futures of requests: each settles once, by what it was waiting for."""

from __future__ import annotations

import asyncio
import gc

import pytest

from natsstream._wire import requests as requests_file
from natsstream._wire.requests import Requests, check_responders
from natsstream.errors import ConnectionLostError, NoRespondersError, PermissionDeniedError
from natsstream.events import PermissionDenied
from natsstream.own_loop import OwnLoop

pytestmark = pytest.mark.asyncio


def denial(subject: str) -> PermissionDenied:
    return PermissionDenied(operation="publish", subject=subject)


async def test_answer_goes_to_its_own_request() -> None:
    requests = Requests("_INBOX", OwnLoop())
    first, one = requests.expect("a")
    second, two = requests.expect("a")

    requests.settle([(second.encode(), b"", b"", b"2"), (first.encode(), b"", b"", b"1")])
    requests.settle([(first.encode(), b"", b"", b"late"), (b"_INBOX.nobody", b"", b"", b"")])

    assert (one.result()[3], two.result()[3]) == (b"1", b"2")
    assert first.startswith(requests.inbox)


async def test_each_denial_fails_the_oldest_request_on_its_subject() -> None:
    requests = Requests("_INBOX", OwnLoop())
    _, other = requests.expect("b")
    _, one = requests.expect("a")
    reply, two = requests.expect("a")

    requests.deny(denial("a"))
    assert isinstance(one.exception(), PermissionDeniedError)
    assert not two.done()
    requests.deny(denial(reply))  # As of "Publish with Reply of".
    requests.deny(denial("a"))

    assert isinstance(two.exception(), PermissionDeniedError)
    assert not other.done()


async def test_denial_of_a_domain_is_about_its_own_requests() -> None:
    requests = Requests("_INBOX", OwnLoop())
    _, elsewhere = requests.expect("$JS.leaf.API.STREAM.INFO.API")
    _, hub = requests.expect("$JS.hub.API.STREAM.INFO.API")

    requests.deny(denial("$JS.hub.API.STREAM.INFO.API"))
    assert isinstance(hub.exception(), PermissionDeniedError)
    assert not elsewhere.done()
    requests.deny(denial("$JS.API.STREAM.INFO.API"))  # As the domain's server names it.

    assert isinstance(elsewhere.exception(), PermissionDeniedError)


async def test_denials_look_at_those_that_they_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts looks: one a denial, whatever else waits and however many were denied before."""
    looks = 0

    def is_same_request(sent: str, named: str) -> bool:
        nonlocal looks
        looks += 1
        return sent == named

    monkeypatch.setattr(requests_file, "is_same_request", is_same_request)
    requests = Requests("_INBOX", OwnLoop())
    replies = [requests.expect("b" if at % 2 else "a") for at in range(200)]

    for _ in range(100):
        requests.deny(denial("b"))

    assert looks == 100
    assert [future.done() for _, future in replies] == [False, True] * 100
    for reply, _ in replies:
        requests.forget(reply)
    requests.deny(denial("a"))
    assert looks == 100


async def test_denial_is_about_a_request_that_still_waits() -> None:
    requests = Requests("_INBOX", OwnLoop())
    denied, _ = requests.expect("a")
    answered, _ = requests.expect("a")
    requests.deny(denial("a"))

    requests.forget(answered)
    _, later = requests.expect("a")
    requests.forget(denied)
    requests.deny(denial("a"))

    assert isinstance(later.exception(), PermissionDeniedError)


async def test_break_fails_those_under_way_and_not_those_that_follow() -> None:
    requests = Requests("_INBOX", OwnLoop())
    reply, future = requests.expect("a")
    requests.lose(lambda: ConnectionLostError("gone"))
    requests.forget(reply)
    requests.forget(reply)

    _, next_one = requests.expect("a")

    assert isinstance(future.exception(), ConnectionLostError)
    assert not next_one.done()


async def test_error_of_a_request_that_was_left_is_nobodys_complaint() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    requests = Requests("_INBOX", OwnLoop())

    for _ in range(3):
        reply, _ = requests.expect("a")
        requests.lose(lambda: ConnectionLostError("gone"))
        requests.forget(reply)
    gc.collect()

    assert complaints == []


async def test_refused_inbox_fails_requests_until_a_connection_allows_it() -> None:
    """Not from the break on: what is sent before the server refuses again would be stored."""
    requests = Requests("_INBOX", OwnLoop())
    _, under_way = requests.expect("a")
    requests.refuse(PermissionDeniedError("no", operation="subscription", subject="_INBOX.>"))
    assert isinstance(under_way.exception(), PermissionDeniedError)
    for _ in range(3):
        with pytest.raises(PermissionDeniedError):
            requests.expect("a")
    with pytest.raises(PermissionDeniedError) as raised:
        requests.expect("a")
    traceback = raised.value.__traceback__
    depth = 0
    while traceback is not None:
        traceback, depth = traceback.tb_next, depth + 1

    requests.lose(lambda: ConnectionLostError("gone"))
    with pytest.raises(PermissionDeniedError):
        requests.expect("a")
    requests.allow()
    _, future = requests.expect("a")

    # The frames of the test, `expect` and `check_inbox`, not those of the times before.
    assert depth == 3
    assert not future.done()


async def test_only_the_status_503_means_that_nobody_listens() -> None:
    with pytest.raises(NoRespondersError, match="no responders on a"):
        check_responders((b"r", b"", b"NATS/1.0 503\r\n\r\n", b""), "a")
    for frame in (
        (b"r", b"", b"", b""),
        (b"r", b"", b"NATS/1.0 503\r\n\r\n", b"x"),
        (b"r", b"", b"NATS/1.0 404\r\n\r\n", b""),
        (b"r", b"", b"NATS/1.0\r\nA: 503\r\n\r\n", b""),
    ):
        check_responders(frame, "a")
