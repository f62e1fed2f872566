"""Dead letters with every server version: an interrupted replay is sent once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.letters import interrupt_replay, make_letters
from tests.support.work import letters_of

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]


@pytest.mark.parametrize("retention", ["limits", "workqueue"])
async def test_replay_finds_what_was_sent_whether_or_not_the_server_finds_messages_by_time(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, retention: str
) -> None:
    queue = await make_letters(js, stream_name, 1, retention=retention)
    (letter,) = await letters_of(queue)
    await interrupt_replay(queue, letter, monkeypatch)
    await asyncio.sleep(0.3)  # The stream has forgotten the id.

    ack = await queue.replay(letter.number)

    assert (ack.sequence, ack.duplicate) == (1, True)
    assert (await (await js.streams.get(stream_name)).info()).state.messages == 1
