"""Taking things out of a stream: what goes, what stays, and which refusal says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import (
    ConfigError,
    MessageNotFoundError,
    NotPermittedError,
    StreamNotFoundError,
    StreamSealedError,
    SubjectError,
    UsageError,
)
from natsstream.testing import NatsServer
from tests.support.liars import Told, lying
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio

UNAVAILABLE = b'{"error":{"code":503,"err_code":10008,"description":"not available"}}'


async def held(stream: Stream) -> list[int]:
    """Return the sequences that a stream holds."""
    return [message.sequence async for message in stream.read()]


@pytest.mark.proves("1a", "purge all / filter / seq / keep (count returned)")
async def test_purge_removes_all_and_says_how_many(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    purged = await stream.purge()

    assert (purged, await held(stream)) == (10, [])
    assert (await js.publish(f"{stream_name}.0", b"")).sequence == 11


@pytest.mark.proves("1a", "purge all / filter / seq / keep (count returned)")
async def test_purge_up_to_a_sequence_removes_the_sequence_itself(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 10)

    assert await stream.purge(last_seq=7) == 7
    assert await held(stream) == [8, 9, 10]


async def test_purge_up_to_zero_removes_nothing(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3)

    assert await stream.purge(last_seq=0) == 0
    assert await stream.purge(last_seq=0, subject=f"{stream_name}.0") == 0
    assert await held(stream) == [1, 2, 3]


@pytest.mark.proves("1a", "purge all / filter / seq / keep (count returned)")
async def test_purge_keep_leaves_the_newest(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)

    assert await stream.purge(keep=4) == 6
    assert await held(stream) == [7, 8, 9, 10]
    assert await stream.purge(keep=0) == 4


@pytest.mark.proves("1a", "purge all / filter / seq / keep (count returned)")
async def test_purge_of_a_subject_leaves_the_others(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 9)

    assert await stream.purge(subject=f"{stream_name}.1", keep=1) == 2
    assert await held(stream) == [1, 3, 4, 6, 7, 8, 9]
    assert await stream.purge(subject=f"{stream_name}.*", last_seq=4) == 3
    assert await stream.purge(subject="another.subject") == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"last_seq": 3, "keep": 2}, ConfigError),
        ({"last_seq": None}, ConfigError),
        ({"keep": None}, ConfigError),
        ({"subject": None}, SubjectError),
        ({"last_seq": -1}, ConfigError),
        ({"keep": -1}, ConfigError),
        ({"keep": True}, ConfigError),
        ({"last_seq": "3"}, ConfigError),
        ({"subject": ""}, SubjectError),
        ({"subject": "a b"}, SubjectError),
        ({"subject": "a.\r\nPUB x 0"}, SubjectError),
        ({"subject": "a..b"}, SubjectError),
        ({"subject": "x" * 5_000}, SubjectError),
        ({"subject": b"a"}, SubjectError),
    ],
)
async def test_purge_refuses_wrong_arguments_before_anything_goes(
    js: JetStream, stream_name: str, arguments: dict[str, Any], error: type[UsageError]
) -> None:
    stream = await fill(js, stream_name, 2)

    with pytest.raises(error) as caught:
        await stream.purge(**arguments)

    assert caught.value.hint
    assert await held(stream) == [1, 2]


async def test_purge_of_every_subject_is_a_purge_without_a_filter(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 3)

    async with js.core.subscribe(f"$JS.API.STREAM.PURGE.{stream_name}") as requests:
        assert await stream.purge(subject=">") == 3
        assert (await anext(requests)).data in (b"", b"{}")


@pytest.mark.proves("1a", "delete msg: plain / secure erase")
@pytest.mark.parametrize("secure", [False, True])
async def test_deleted_message_is_gone_and_the_others_stay(
    js: JetStream, stream_name: str, *, secure: bool
) -> None:
    stream = await fill(js, stream_name, 3)

    await stream.delete_message(2, secure=secure)

    assert await held(stream) == [1, 3]


@pytest.mark.proves("1a", "delete msg: plain / secure erase")
@pytest.mark.parametrize("sequence", [2, 99])
async def test_deleting_what_is_not_there_says_so(
    js: JetStream, stream_name: str, sequence: int
) -> None:
    stream = await fill(js, stream_name, 3)
    await stream.delete_message(2)

    with pytest.raises(MessageNotFoundError):
        await stream.delete_message(sequence)


@pytest.mark.parametrize("sequence", [0, -1, "1", None, 2**64, True])
async def test_delete_message_refuses_what_is_no_sequence(
    js: JetStream, stream_name: str, sequence: Any
) -> None:
    stream = await fill(js, stream_name, 1)

    with pytest.raises(ConfigError):
        await stream.delete_message(sequence)


@pytest.mark.proves("1a", 'seal, deny_delete, deny_purge ("immutable sets")')
async def test_deny_delete_and_deny_purge_are_told_apart(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 2, deny_delete=True, deny_purge=True)

    with pytest.raises(NotPermittedError, match="deny_delete"):
        await stream.delete_message(1)
    with pytest.raises(NotPermittedError) as caught:
        await stream.purge()

    assert "deny_purge" in caught.value.hint
    assert await held(stream) == [1, 2]


@pytest.mark.proves("1a", 'seal, deny_delete, deny_purge ("immutable sets")')
async def test_sealed_stream_takes_no_writes_and_no_removals(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 2, max_age=3600)

    info = await stream.seal()

    assert info.config.sealed
    assert not info.config.max_age
    with pytest.raises(StreamSealedError):
        await stream.purge()
    with pytest.raises(StreamSealedError):
        await stream.delete_message(1)
    with pytest.raises(StreamSealedError):
        await stream.publish(f"{stream_name}.0", b"")
    assert (await stream.seal()).config.sealed
    await stream.delete()


async def test_deleted_stream_is_not_found(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 1)

    await stream.delete()

    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)
    with pytest.raises(StreamNotFoundError):
        await stream.purge()


async def test_message_that_is_gone_is_told_where_nobody_can_be_asked() -> None:
    """In an election the server refuses the deletion, and answers no question about it."""

    def mute(told: Told) -> Told:
        is_question = told.kind in ("STREAM.MSG.GET", "STREAM.INFO")
        return replace(told, payload=UNAVAILABLE) if is_question else told

    with NatsServer() as server:
        async with lying(server.port) as liar, connect(liar.url, request_timeout=1) as js:
            stream = await js.streams.create("S", subjects=["s"])
            await stream.publish("s", b"x")
            await stream.delete_message(1)
            liar.lie = mute
            with pytest.raises(MessageNotFoundError, match="it is gone"):
                await stream.delete_message(1)
