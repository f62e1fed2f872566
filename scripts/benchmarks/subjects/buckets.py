"""Key-value buckets: `python -m scripts.benchmarks.subjects.buckets NAME URL BUCKET COUNT`.

NAME is a client and a deed, such as `ours get`. The bucket exists and is filled. `get` and `watch`
look at key, value and revision of each entry: some clients parse a field only when it is read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.streams import KEYS, PAYLOAD_BYTES, key_of
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

if TYPE_CHECKING:
    from natsstream import KeyValue

_VALUE = b"x" * PAYLOAD_BYTES
# Puts in flight at once.
_AT_ONCE = 256


async def _one_by_one(do: Callable[[str], Awaitable[object]], count: int) -> Figure:
    watch, times_s = Stopwatch(), [0.0] * count
    watch.start()
    for number in range(count):
        began = time.perf_counter()
        await do(key_of(number % KEYS))
        times_s[number] = time.perf_counter() - began
    return watch.stop(count, times_s)


def _is_whole(entry: Any) -> bool:
    return bool(entry.key) and bool(entry.value) and entry.revision > 0


async def _gets(
    get: Callable[[str], Awaitable[Any]], count: int, look: Callable[[Any], bool] = _is_whole
) -> Figure:
    async def look_at(key: str) -> None:
        if not look(await get(key)):
            raise RuntimeError(f"{key} has no value")

    return await _one_by_one(look_at, count)


async def _at_once(do: Callable[[str], Awaitable[object]], count: int) -> Figure:
    """Keep a fixed number of workers busy: none waits for the slowest of a group."""
    watch, numbers = Stopwatch(), iter(range(count))

    async def work() -> None:
        for number in numbers:
            await do(key_of(number % KEYS))

    watch.start()
    await asyncio.gather(*[work() for _ in range(_AT_ONCE)])
    return watch.stop(count)


async def _ours(url: str, bucket: str, deed: Callable[[KeyValue], Awaitable[Figure]]) -> Figure:
    import natsstream as ns

    async with ns.connect(url) as js:
        return await deed(await js.kv.get(bucket))


async def our_get(url: str, bucket: str, count: int) -> Figure:
    """Ours, `get`, one after the other."""
    return await _ours(url, bucket, lambda kv: _gets(kv.get, count))


async def our_put(url: str, bucket: str, count: int) -> Figure:
    """Ours, `put`, one after the other."""
    return await _ours(url, bucket, lambda kv: _one_by_one(lambda key: kv.put(key, _VALUE), count))


async def our_puts(url: str, bucket: str, count: int) -> Figure:
    """Ours, `put`, many at once."""
    return await _ours(url, bucket, lambda kv: _at_once(lambda key: kv.put(key, _VALUE), count))


async def our_watch(url: str, bucket: str, count: int) -> Figure:
    """Ours, `watch` with history, an entry each."""

    async def deed(kv: KeyValue) -> Figure:
        watch, seen = Stopwatch(), 0
        watch.start()
        async with kv.watch(include_history=True) as updates:
            async for entry in updates:
                seen += _is_whole(entry)
                if seen == count:
                    break
        return watch.stop(seen)

    return await _ours(url, bucket, deed)


async def our_keys(url: str, bucket: str, count: int) -> Figure:
    """Ours, `keys`."""

    async def deed(kv: KeyValue) -> Figure:
        watch, seen = Stopwatch(), 0
        watch.start()
        async for _ in kv.keys():
            seen += 1
        return watch.stop(_whole(seen, count))

    return await _ours(url, bucket, deed)


async def _nats_py(url: str, bucket: str, deed: Callable[[Any], Awaitable[Figure]]) -> Figure:
    import nats

    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    figure = await deed(await cast("Any", client).jetstream().key_value(bucket))
    await client.close()
    return figure


async def nats_py_get(url: str, bucket: str, count: int) -> Figure:
    """nats-py, `get`, one after the other."""
    return await _nats_py(url, bucket, lambda kv: _gets(kv.get, count))


async def nats_py_put(url: str, bucket: str, count: int) -> Figure:
    """nats-py, `put`, one after the other."""
    return await _nats_py(
        url, bucket, lambda kv: _one_by_one(lambda key: kv.put(key, _VALUE), count)
    )


async def nats_py_puts(url: str, bucket: str, count: int) -> Figure:
    """nats-py, `put`, many at once."""
    return await _nats_py(url, bucket, lambda kv: _at_once(lambda key: kv.put(key, _VALUE), count))


async def nats_py_watch(url: str, bucket: str, count: int) -> Figure:
    """nats-py, `watchall` with history."""

    async def deed(kv: Any) -> Figure:
        watch, seen = Stopwatch(), 0
        watch.start()
        updates = await kv.watchall(include_history=True)
        async for entry in updates:
            seen += _is_whole(entry)
            if seen == count:
                break
        figure = watch.stop(seen)
        await updates.stop()
        return figure

    return await _nats_py(url, bucket, deed)


async def nats_py_keys(url: str, bucket: str, count: int) -> Figure:
    """nats-py, `keys`."""
    from nats.js.errors import NoKeysError

    async def deed(kv: Any) -> Figure:
        while True:
            watch = Stopwatch()
            watch.start()
            # On a busy machine its watch may end before the first key: then it says that there is
            # none, and is asked again.
            with suppress(NoKeysError):
                return watch.stop(_whole(len(await kv.keys()), count))

    return await _nats_py(url, bucket, deed)


async def _natsrpy(url: str, bucket: str, deed: Callable[[Any], Awaitable[Figure]]) -> Figure:
    from natsrpy import Nats

    client = Nats(addrs=[url])
    await client.startup()
    jetstream = await client.jetstream()
    figure = await deed(await jetstream.kv.get(bucket))
    await client.shutdown()
    return figure


async def natsrpy_get(url: str, bucket: str, count: int) -> Figure:
    """natsrpy (Rust), `get`, one after the other; it returns the value alone."""
    return await _natsrpy(url, bucket, lambda kv: _gets(kv.get, count, bool))


async def natsrpy_put(url: str, bucket: str, count: int) -> Figure:
    """natsrpy (Rust), `put`, one after the other."""
    return await _natsrpy(
        url, bucket, lambda kv: _one_by_one(lambda key: kv.put(key, _VALUE), count)
    )


async def natsrpy_puts(url: str, bucket: str, count: int) -> Figure:
    """natsrpy (Rust), `put`, many at once."""
    return await _natsrpy(url, bucket, lambda kv: _at_once(lambda key: kv.put(key, _VALUE), count))


async def natsrpy_watch(url: str, bucket: str, count: int) -> Figure:
    """natsrpy (Rust), `watch_all` from revision 1: its history is the newest entry alone."""

    async def deed(kv: Any) -> Figure:
        watch, seen = Stopwatch(), 0
        watch.start()
        async for entry in await kv.watch_all(from_revision=1):
            seen += _is_whole(entry)
            if seen == count:
                break
        return watch.stop(seen)

    return await _natsrpy(url, bucket, deed)


async def natsrpy_keys(url: str, bucket: str, count: int) -> Figure:
    """natsrpy (Rust), `keys`."""

    async def deed(kv: Any) -> Figure:
        watch, seen = Stopwatch(), 0
        watch.start()
        async for _ in await kv.keys():
            seen += 1
        return watch.stop(_whole(seen, count))

    return await _natsrpy(url, bucket, deed)


def _whole(seen: int, count: int) -> int:
    """Return the number of keys seen; a client that leaves some out fails."""
    if seen != count:
        raise RuntimeError(f"{seen} keys of {count}")
    return seen


BUCKETS: Subjects = {
    "ours get": our_get,
    "ours put": our_put,
    "ours puts": our_puts,
    "ours watch": our_watch,
    "ours keys": our_keys,
    "nats-py get": nats_py_get,
    "nats-py put": nats_py_put,
    "nats-py puts": nats_py_puts,
    "nats-py watch": nats_py_watch,
    "nats-py keys": nats_py_keys,
    "natsrpy get": natsrpy_get,
    "natsrpy put": natsrpy_put,
    "natsrpy puts": natsrpy_puts,
    "natsrpy watch": natsrpy_watch,
    "natsrpy keys": natsrpy_keys,
}

if __name__ == "__main__":
    run_subject(BUCKETS)
