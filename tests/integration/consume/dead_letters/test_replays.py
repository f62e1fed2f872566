"""Sending dead letters again: once, whoever does it, however often, and however long after."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.consume.dead_letters.subjects import note_subject
from natsstream.errors import MessageNotFoundError
from tests.support.letters import interrupt_replay, make_letters
from tests.support.work import letters_of

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


async def messages_of(js: JetStream, name: str) -> int:
    """Return how many messages a stream has."""
    return (await (await js.streams.get(name)).info()).state.messages


@pytest.mark.parametrize("retention", ["limits", "workqueue"])
async def test_replay_that_was_interrupted_is_sent_once_also_after_the_duplicate_window(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, retention: str
) -> None:
    queue = await make_letters(js, stream_name, 1, retention=retention)
    (letter,) = await letters_of(queue)

    await interrupt_replay(queue, letter, monkeypatch)
    await asyncio.sleep(0.3)  # The stream has forgotten the id.
    await js.publish(f"{stream_name}.x", b"another")

    ack = await (await js.dead_letters.open(queue.name)).replay(letter.number)

    assert (ack.sequence, ack.duplicate) == (1, True)
    assert await messages_of(js, stream_name) == 2
    # The letter is gone, and the note with it.
    assert await messages_of(js, queue.name) == 0


@pytest.mark.parametrize("note", [b"", b"a..b", b"a b", b"\xff", b"orders.>"])
async def test_replay_takes_no_note_of_another_program_for_its_own(
    js: JetStream, stream_name: str, note: bytes
) -> None:
    queue = await make_letters(js, stream_name, 1)
    (letter,) = await letters_of(queue)
    await js.publish(note_subject(queue.name, letter.key), note)

    ack = await queue.replay(letter.number)

    assert (ack.sequence, ack.duplicate) == (1, False)


async def test_replay_that_was_noted_and_not_sent_is_sent(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = await make_letters(js, stream_name, 1)
    (letter,) = await letters_of(queue)

    async def die(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr("natsstream.consume.dead_letters.queue.publish", die)
        with pytest.raises(asyncio.CancelledError):
            await queue.replay(letter)
    assert await messages_of(js, queue.name) == 2
    assert await letters_of(queue) == [letter]

    ack = await queue.replay(letter)

    assert (ack.sequence, ack.duplicate) == (1, False)
    assert await messages_of(js, queue.name) == 0


async def test_letter_that_somebody_else_has_sent_is_not_sent_again(
    js: JetStream, stream_name: str
) -> None:
    queue = await make_letters(js, stream_name, 1)
    (letter,) = await letters_of(queue)
    await queue.replay(letter)
    await asyncio.sleep(0.3)  # The stream has forgotten the id.

    with pytest.raises(MessageNotFoundError):
        await queue.replay(letter)

    assert await messages_of(js, stream_name) == 1
    assert await messages_of(js, queue.name) == 0


@pytest.mark.parametrize("discard", ["new", "old"])
async def test_full_queue_can_be_emptied_by_sending_again(
    js: JetStream, stream_name: str, discard: Any
) -> None:
    queue = await make_letters(js, stream_name, 3)
    await js.streams.update(queue.name, max_msgs=3, discard=discard)

    letters = await letters_of(queue)
    await queue.replay(letters[2])
    assert [each.sequence for each in await letters_of(queue)] == [1, 2]

    assert await queue.replay_all() == 2
    assert await messages_of(js, stream_name) == 3


async def test_hundreds_of_letters_are_sent_once_by_two_at_the_same_time(
    js: JetStream, server: NatsNode, stream_name: str
) -> None:
    count = 200
    queue = await make_letters(js, stream_name, count, retention="workqueue", window=60)
    async with connect(server.url) as other_js:
        other = await other_js.dead_letters.open(queue.name)

        sent = await asyncio.gather(queue.replay_all(), other.replay_all())

    assert sum(sent) >= count
    assert await messages_of(js, stream_name) == count
    assert await queue.count() == 0
    assert await messages_of(js, queue.name) == 0
