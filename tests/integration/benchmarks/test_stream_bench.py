"""Every reader and consumer of the benches looks at every message, as its checksum proves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks import tools
from scripts.benchmarks.benches import checked
from scripts.benchmarks.streams import fill
from scripts.benchmarks.subjects.consumers import CONSUMERS
from scripts.benchmarks.subjects.readers import READERS

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

MESSAGES = 300
# The socket is the machine's speed: it looks at nothing.
SUBJECTS = {name: do for name, do in {**READERS, **CONSUMERS}.items() if name != "socket"}


@pytest.mark.sampled_variants
@pytest.mark.asyncio
@pytest.mark.parametrize("name", SUBJECTS)
async def test_subject_looks_at_every_message(fresh_server: NatsServer, name: str) -> None:
    await fill(fresh_server.url, "BENCH", MESSAGES, {})
    figure = await SUBJECTS[name](fresh_server.url, "BENCH", MESSAGES)
    assert checked(figure, name, "BENCH").messages == MESSAGES


@pytest.mark.sampled_variants
@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["ordered", "consume", "consume_acks"])
async def test_subject_of_nats_js_looks_at_every_message(
    fresh_server: NatsServer, name: str
) -> None:
    await fill(fresh_server.url, "BENCH", MESSAGES, {})
    figure = await asyncio.to_thread(tools.nats_js, name, fresh_server.url, "BENCH", MESSAGES)
    assert checked(figure, name, "BENCH").messages == MESSAGES
