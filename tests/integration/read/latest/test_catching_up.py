"""Listing a replicated stream that others write to without a pause: it ends in few requests."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import NatsStreamError
from natsstream.read.leader_reads import LeaderReads

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.api.stream_info import StreamInfo

pytestmark = pytest.mark.asyncio

SUBJECTS = 30
WRITERS = 6
# Each question takes the leader so long that others have written meanwhile, as on a busy machine.
ANSWER_S = 0.25
QUESTIONS_MAX = 8


async def test_listing_does_not_run_after_those_who_write(
    cluster_js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    js = cluster_js
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], max_msgs_per_subject=1, replicas=3
    )
    subjects = [f"{stream_name}.{number}" for number in range(SUBJECTS)]
    for subject in subjects:
        await js.publish(subject, b"x")
    asked = 0
    info, next_held = LeaderReads.info, LeaderReads.next_held

    async def slow_info(self: LeaderReads, **options: object) -> StreamInfo:
        nonlocal asked
        asked += 1
        await asyncio.sleep(ANSWER_S)
        return await info(self, **options)  # pyright: ignore[reportArgumentType]

    async def slow_next(self: LeaderReads, sequence: int, **options: bytes) -> int | None:
        nonlocal asked
        asked += 1
        await asyncio.sleep(ANSWER_S)
        return await next_held(self, sequence, **options)

    monkeypatch.setattr(LeaderReads, "info", slow_info)
    monkeypatch.setattr(LeaderReads, "next_held", slow_next)

    async def write(first: int) -> None:
        number = first
        while True:
            try:
                await js.publish(subjects[number % SUBJECTS], b"y")
            except NatsStreamError as error:
                if not error.retryable:
                    raise
            number += WRITERS

    writers = [asyncio.ensure_future(write(number)) for number in range(WRITERS)]
    seen = set[str]()
    try:
        async with stream.latest() as latest:
            asked = 0
            async with aclosing(latest.batches(until_caught_up=True)) as batches:
                async for batch in batches:
                    seen.update(message.subject for message in batch)
    finally:
        for writer in writers:
            writer.cancel()
        await asyncio.wait(writers)

    assert seen == set(subjects)
    assert asked <= QUESTIONS_MAX
