"""Watches in tests: taking from them, and what they add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Iterable

    from natsstream import Entry
    from natsstream.kv.key_value import KeyValue
    from natsstream.kv.watch import Watch


async def take(watch: Watch, count: int) -> list[Entry]:
    """Return the next entries of a watch."""
    return [await anext(watch) for _ in range(count)]


async def initial(watch: Watch) -> list[Entry]:
    """Return what a watch begins with."""
    return [entry async for entry in watch.initial()]


async def names(kv: KeyValue, *filters: str) -> list[str]:
    """Return the keys of a bucket, as it lists them."""
    return [key async for key in kv.keys(*filters)]


def told(entries: Iterable[Entry]) -> list[tuple[str, str, bytes]]:
    """Return what entries say, without revisions and times."""
    return [(entry.key, entry.operation, entry.value) for entry in entries]


def fold(entries: Iterable[Entry]) -> dict[str, bytes]:
    """Return what a bucket holds after the entries of a watch: the values by key."""
    state: dict[str, bytes] = {}
    for entry in entries:
        if entry.operation == "PUT":
            state[entry.key] = entry.value
        else:
            state.pop(entry.key, None)
    return state


async def consumer_count(kv: KeyValue) -> int:
    """Return how many consumers the server has on a bucket."""
    return (await kv.stream.info()).state.consumer_count


async def no_consumers_stay(kv: KeyValue) -> None:
    """Wait until the server has no consumers on a bucket.

    Who leaves a watch waits a second for that, no longer; the server works requests off side by
    side. One that nobody deletes stays for a minute, which is more than is waited here.
    """

    async def are_gone() -> bool:
        return await consumer_count(kv) == 0

    await eventually_async(are_gone, within_s=30)
