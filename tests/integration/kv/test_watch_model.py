"""Random writes while watches with random filters follow: what each adds up to is the bucket.

Consumers are deleted and readers go away at random moments; those go on where they were.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from natsstream.read import session
from tests.support.ordered import delete_consumers
from tests.support.watches import fold, no_consumers_stay

if TYPE_CHECKING:
    from natsstream import Entry, JetStream
    from natsstream.kv.key_value import KeyValue

pytestmark = pytest.mark.asyncio

KEYS = [*"abc", "a.x", "a.y", "b.x", "b.y", "a.x.1", "a.y.1", "b.x.1", "c.1.1"]
FILTERS = [*KEYS, ">", "*", "*.*", "a.>", "b.>", "*.x", "*.x.*", "a.*", "*.y.>", "none"]
END = "end"
WRITES = 150
WATCHES = 6


def matches(key: str, pattern: str) -> bool:
    """Tell whether a filter means a key, the plain way."""
    names, wanted = key.split("."), pattern.split(".")
    if wanted[-1] == ">":
        wanted.pop()
        if len(names) <= len(wanted):
            return False
        names = names[: len(wanted)]
    return len(names) == len(wanted) and all(
        each in ("*", name) for name, each in zip(names, wanted, strict=True)
    )


async def write(kv: KeyValue, js: JetStream, chance: random.Random) -> None:
    """Write at random, and take the watches' consumers away now and then."""
    for number in range(WRITES):
        key = chance.choice(KEYS)
        match chance.choices(("put", "delete", "purge", "disturb"), (70, 15, 12, 3))[0]:
            case "put":
                await kv.put(key, b"%d" % number)
            case "delete":
                await kv.delete(key)
            case "purge":
                await kv.purge(key)
            case _:
                await delete_consumers(js, kv.stream.name)
        if chance.random() < 0.1:
            await asyncio.sleep(0.002)
    await kv.put(END, b"")


async def follow(
    kv: KeyValue, chance: random.Random, filters: list[str], *, include_history: bool
) -> list[Entry]:
    """Watch to the end, leaving at random moments and going on behind the last entry taken."""
    entries: list[Entry] = []
    watch = kv.watch(*filters, END, include_history=include_history)
    while True:
        async with watch:
            async for entry in watch:
                entries.append(entry)
                if entry.key == END:
                    return entries
                if chance.random() < 0.02:
                    break
            place, identity = watch.revision, watch.created_ns
        watch = kv.watch(*filters, END, resume_after=place, created_ns=identity)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("window", [2, 65_536])
@pytest.mark.parametrize("history", [1, 4, 64])
async def test_watches_add_up_to_the_bucket(
    js: JetStream,
    stream_name: str,
    monkeypatch: pytest.MonkeyPatch,
    history: int,
    window: int,
) -> None:
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", window)
    # A pull that meets its consumer's end has no answer: silence tells, here soon.
    monkeypatch.setattr(session, "HEARTBEAT_S", 0.3)
    monkeypatch.setattr(session, "SILENCE_MAX_S", 0.75)
    chance = random.Random(f"{history} {window}")  # noqa: S311 - No secret; it is repeatable.
    kv = await js.kv.create(stream_name, history=history, storage="memory")
    for key in chance.sample(KEYS, 6):
        await kv.put(key, b"before")
    chosen = [chance.sample(FILTERS, chance.randint(1, 4)) for _ in range(WATCHES)]

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                follow(kv, random.Random(index), filters, include_history=bool(index % 2))  # noqa: S311 - As above.
            )
            for index, filters in enumerate(chosen)
        ]
        group.create_task(write(kv, js, chance))
    kept = [entry async for entry in kv.history()]
    state = {entry.key: entry.value async for entry in kv.entries()}
    listed = [[key async for key in kv.keys(*filters)] for filters in chosen]

    for filters, task, keys in zip(chosen, tasks, listed, strict=True):
        entries = task.result()
        revisions = [entry.revision for entry in entries]
        wanted = {key for key in [*KEYS, END] if any(matches(key, each) for each in filters)}
        assert revisions == sorted(set(revisions)), filters
        assert {entry.key for entry in entries} <= wanted | {END}
        assert fold(entries) == {key: state[key] for key in wanted | {END} if key in state}
        assert sorted(keys) == sorted(wanted & state.keys())
        # What came while it watched and is in the bucket still was not missed.
        first = revisions[0]
        assert set(revisions) >= {
            each.revision for each in kept if each.key in wanted and each.revision > first + 6
        }
    await no_consumers_stay(kv)
