"""What must hold in the stream: each expectation on one server and on a replicated stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import ConfigError, Expect
from natsstream.errors import (
    NoRespondersError,
    SubjectError,
    WrongLastMessageIdError,
    WrongLastSequenceError,
    WrongStreamError,
)

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=[1, 3])
def replicas(request: pytest.FixtureRequest) -> int:
    """How many replicas the stream has."""
    return request.param


@pytest.fixture
def any_js(replicas: int, request: pytest.FixtureRequest) -> JetStream:
    """The shared server for one replica, the shared cluster for three."""
    return request.getfixturevalue("js" if replicas == 1 else "cluster_js")


async def make(js: JetStream, name: str, replicas: int) -> Stream:
    """Make a stream with one message on `<name>.a`."""
    stream = await js.streams.ensure(
        name, subjects=[f"{name}.>"], storage="memory", replicas=replicas
    )
    await js.publish(f"{name}.a", b"first", msg_id="first")
    return stream


@pytest.mark.proves("1b", "expect last seq / last msg id")
@pytest.mark.proves("1b", "expect last subject seq")
@pytest.mark.finding(31)
async def test_sequences_are_compared(any_js: JetStream, stream_name: str, replicas: int) -> None:
    await make(any_js, stream_name, replicas)
    a, b = f"{stream_name}.a", f"{stream_name}.b"

    await any_js.publish(b, b"", expect=Expect(stream=stream_name, last_seq=1))
    await any_js.publish(b, b"", expect=Expect(last_subject_seq=2))
    await any_js.publish(b, b"", expect=Expect(subject=a, last_subject_seq=1))
    with pytest.raises(WrongLastSequenceError) as by_stream:
        await any_js.publish(b, b"", expect=Expect(last_seq=1))
    with pytest.raises(WrongLastSequenceError) as by_subject:
        await any_js.publish(b, b"", expect=Expect(last_subject_seq=2))
    with pytest.raises(WrongLastSequenceError) as by_other:
        await any_js.publish(b, b"", expect=Expect(subject=a, last_subject_seq=9))
    with pytest.raises(WrongStreamError):
        await any_js.publish(b, b"", expect=Expect(stream="ANOTHER"))

    found = [each.value.last_seq for each in (by_stream, by_subject, by_other)]
    assert found == [4, 4, 1]


@pytest.mark.proves("1b", "...-Subject (seq for another / wildcard subject)")
@pytest.mark.parametrize("wildcard", ["a.*", "a.>", "*", ">"])
async def test_wildcard_in_an_expectation_is_refused_with_the_reason(
    js: JetStream, stream_name: str, wildcard: str
) -> None:
    with pytest.raises(SubjectError, match="replicated"):
        Expect(subject=wildcard, last_subject_seq=0)
    stream = await make(js, stream_name, 1)

    with pytest.raises(SubjectError, match="replicated"):
        await stream.publish(
            f"{stream_name}.a",
            b"",
            headers={
                "Nats-Expected-Last-Subject-Sequence": "0",
                "Nats-Expected-Last-Subject-Sequence-Subject": wildcard,
            },
        )

    assert (await stream.info()).state.last_seq == 1


@pytest.mark.proves("1b", "expect last seq / last msg id")
async def test_last_message_id_is_compared_where_there_are_no_replicas(
    js: JetStream, stream_name: str
) -> None:
    stream = await make(js, stream_name, 1)
    subject = f"{stream_name}.a"

    await js.publish(subject, b"", msg_id="second", expect=Expect(last_msg_id="first"))
    async with js.publisher() as publisher:
        await publisher.send(subject, b"", msg_id="third", expect=Expect(last_msg_id="second"))
    with pytest.raises(WrongLastMessageIdError):
        await stream.publish(subject, b"", expect=Expect(last_msg_id="second"))

    assert (await stream.info()).state.last_seq == 3


@pytest.mark.proves("1b", "expect last seq / last msg id")
@pytest.mark.parametrize("as_header", [False, True])
async def test_last_message_id_never_reaches_a_stream_with_replicas(
    cluster_js: JetStream, stream_name: str, *, as_header: bool
) -> None:
    """A wrong one would break the stream for good: the write at the end would not be answered."""
    js = cluster_js
    stream = await make(js, stream_name, 3)
    subject = f"{stream_name}.a"
    headers = {"Nats-Expected-Last-Msg-Id": "wrong"} if as_header else None
    expect = None if as_header else Expect(last_msg_id="wrong")

    with pytest.raises(ConfigError, match="3 replicas"):
        await js.publish(subject, b"", headers=headers, expect=expect)
    with pytest.raises(ConfigError, match="3 replicas"):
        await stream.publish(subject, b"", headers=headers, expect=expect)
    async with js.publisher() as publisher:
        with pytest.raises(ConfigError, match="3 replicas"):
            await publisher.send(subject, b"", headers=headers, expect=expect)

    assert (await js.publish(subject, b"still writable")).sequence == 2


async def test_replicas_that_came_later_are_seen(cluster_js: JetStream, stream_name: str) -> None:
    js = cluster_js
    stream = await make(js, stream_name, 1)
    subject = f"{stream_name}.a"
    await stream.publish(subject, b"", msg_id="second", expect=Expect(last_msg_id="first"))

    await js.streams.update(stream_name, replicas=3)

    with pytest.raises(ConfigError, match="3 replicas"):
        await stream.publish(subject, b"", expect=Expect(last_msg_id="wrong"))


async def test_last_message_id_on_a_subject_without_a_stream_is_told(js: JetStream) -> None:
    with pytest.raises(NoRespondersError, match="no stream captures"):
        await js.publish("nobody.listens", b"", expect=Expect(last_msg_id="x"))


@pytest.mark.proves("1b", "expect last subject seq")
async def test_of_many_at_once_one_holds(
    any_js: JetStream, stream_name: str, replicas: int
) -> None:
    await make(any_js, stream_name, replicas)
    subject = f"{stream_name}.a"

    answers = await asyncio.gather(
        *(
            any_js.publish(subject, b"%d" % number, expect=Expect(last_subject_seq=1))
            for number in range(20)
        ),
        return_exceptions=True,
    )

    refused = [each for each in answers if isinstance(each, WrongLastSequenceError)]
    assert len(refused) == 19
