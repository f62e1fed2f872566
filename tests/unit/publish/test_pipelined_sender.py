"""Messages in flight: what a server denies is found without a look at all others."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream.errors import PermissionDeniedError
from natsstream.events import PermissionDenied
from natsstream.publish.ack_window import AckFuture, AckWindow
from natsstream.publish.pipelined_sender import PipelinedSender
from natsstream.publish.publisher_options import PublisherOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio

PREFIX = b"_INBOX.abc."


class NotedSubject(str):
    """A subject that counts its comparisons; `looks` are those of all."""

    __slots__ = ()
    looks = 0

    def __eq__(self, other: object) -> bool:
        NotedSubject.looks += 1
        return str(self) == other

    __hash__ = str.__hash__


def denial(subject: str) -> PermissionDenied:
    return PermissionDenied(operation="publish", subject=subject)


@pytest_asyncio.fixture
async def sender() -> AsyncIterator[PipelinedSender]:
    """A sender without a connection: all that it takes waits."""
    api: Any = SimpleNamespace(client=SimpleNamespace(is_connected=False))
    sender = PipelinedSender(api, PublisherOptions(), AckWindow(10_000, 1 << 20), PREFIX, None)
    yield sender
    sender.close(PermissionDeniedError("over", operation="publish", subject="a"))


def send(sender: PipelinedSender, subject: str) -> AckFuture:
    return sender.add(subject, b"PUB " + subject.encode(), b"", b"x")


def is_denied(future: AckFuture) -> bool:
    return isinstance(future.error, PermissionDeniedError)


async def test_each_denial_fails_the_oldest_message_of_its_subject(sender: PipelinedSender) -> None:
    first, other, second = (send(sender, subject) for subject in "aba")

    sender.on_denied(denial("a"))
    assert (is_denied(first), is_denied(second)) == (True, False)
    third = send(sender, "a")
    sender.on_denied(denial("a"))
    assert (is_denied(second), is_denied(third)) == (True, False)
    sender.on_denied(denial((PREFIX + b"4").decode()))  # As of "Publish with Reply of".
    sender.on_denied(denial("a"))
    sender.on_denied(denial("nobody's"))

    assert is_denied(third)
    assert not other.done()


async def test_message_that_was_acked_is_not_denied(sender: PipelinedSender) -> None:
    first, second, third = (send(sender, "a") for _ in range(3))
    sender.on_denied(denial("a"))

    sender.on_acks([(PREFIX + b"2", b"", b"", b'{"stream":"S", "seq":1}')])
    sender.on_denied(denial("a"))

    assert [is_denied(each) for each in (first, second, third)] == [True, False, True]
    assert (await asyncio.wait_for(second, 1)).sequence == 1


async def test_denials_look_at_those_that_they_are_about(sender: PipelinedSender) -> None:
    """Counts comparisons of the denied subject with those of messages: a few a denial."""
    sent = [send(sender, "b" if at % 2 else "a") for at in range(400)]
    NotedSubject.looks = 0

    for _ in range(200):
        sender.on_denied(denial(NotedSubject("b")))

    assert [is_denied(each) for each in sent] == [False, True] * 200
    assert NotedSubject.looks <= 3 * 200
