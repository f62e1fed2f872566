"""The comparison at the end: buckets, watches, the lock and the store against their books.

Law: a bucket is read here as a stream, with this file's own reading of its headers, so that a
mistake of the view does not judge itself. What the view says is then compared with that.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import TypeVar, cast

from natsstream import JetStream, KeyValue, Message, NatsStreamError
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.plan import PROGRESS_S
from scripts.chaos_runs.views.bucket_book import Operation, Seen
from scripts.chaos_runs.views.crew import LOCK, LOCKS, STORE, Bucket, Crew
from scripts.chaos_runs.watch import describe_all_tasks

_LOOK_S = 0.25
T = TypeVar("T")
# A brief key lives for 3 s; a server that was starved lets it expire later.
_EXPIRED_S = 30.0
_OPERATIONS: Mapping[str | None, Operation] = {
    "DEL": "DEL",
    "Remove": "DEL",
    "PURGE": "PURGE",
    "Purge": "PURGE",
    "MaxAge": "PURGE",
}


async def judge_buckets(js: JetStream, crew: Crew, load: Load) -> None:
    """Wait until nothing changes any more and everybody has come to the end; then compare."""
    for bucket in crew.buckets:
        kept = await _settled(js, bucket)
        newest = {each.key: each for each in kept}
        await _wait_for_watchers(bucket, kept, load)
        bucket.book.judge_newest(newest)
        for watcher in bucket.watchers:
            for left in watcher.left_books:
                left.judge_part(kept)
            if not watcher.is_left:
                watcher.watch_book.judge(newest, kept)
        live = {key: each.revision for key, each in newest.items() if each.operation == "PUT"}
        for mirror in bucket.mirrors:
            entries = mirror.entries()
            held = {key: each.revision for key, each in (entries or {}).items()}
            if held != live:
                load.findings.add("mirror", f"{mirror.name} holds {held}, the bucket {live}")
        await _judge_views(js, bucket, kept, load)


async def _settled(js: JetStream, bucket: Bucket) -> Sequence[Seen]:
    """Return all revisions of a bucket, once no brief key is alive."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _EXPIRED_S
    while True:
        kept = await insist(lambda: _read(js, bucket.name))
        newest = {each.key: each for each in kept}
        alive = [key for key in bucket.brief if key in newest and newest[key].operation == "PUT"]
        if not alive or loop.time() >= deadline:
            return kept
        await asyncio.sleep(_LOOK_S)


async def _read(js: JetStream, name: str) -> list[Seen]:
    return [_seen(message, name) for message in await _all_of(js, f"KV_{name}")]


async def _all_of(js: JetStream, name: str) -> list[Message]:
    stream = await js.streams.get(name)
    return [message async for message in stream.read()]


async def _all(items: AsyncIterable[T]) -> list[T]:
    return [each async for each in items]


def _seen(message: Message, bucket: str) -> Seen:
    headers = message.headers
    mark = headers.get("KV-Operation") or headers.get("Nats-Marker-Reason")
    key = message.subject.removeprefix(f"$KV.{bucket}.")
    return Seen(key, message.sequence, _OPERATIONS.get(mark, "PUT"), message.data)


async def _wait_for_watchers(bucket: Bucket, kept: Sequence[Seen], load: Load) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PROGRESS_S
    last = kept[-1].revision if kept else 0

    def late() -> list[str]:
        names: list[str] = []
        for watcher in bucket.watchers:
            book = watcher.watch_book
            goal = max((each.revision for each in kept if book.wants(each)), default=0)
            if not watcher.is_left and book.last < goal:
                names.append(watcher.name)
        return names + [each.name for each in bucket.mirrors if each.revision < last]

    while (names := late()) and not load.findings.count:
        if loop.time() >= deadline:
            text = f"nobody writes, for {PROGRESS_S:g} s: {', '.join(names)}"
            load.findings.add("stands still", f"{text}\n{describe_all_tasks()}")
            return
        await asyncio.sleep(_LOOK_S)


async def _judge_views(js: JetStream, bucket: Bucket, kept: Sequence[Seen], load: Load) -> None:
    """What the view says of the bucket is what stands in its stream."""
    kv = await insist(lambda: js.kv.get(bucket.name))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _EXPIRED_S
    while True:
        histories = {key: await _history(kv, key) for key in bucket.keys}
        differences = await _differences(kv, kept, histories)
        again = await insist(lambda: _read(js, bucket.name)) if differences else kept
        if again == kept or loop.time() >= deadline:
            break
        # The server writes the marker of an expired key some time after it has removed the key.
        kept = again
    for each in differences:
        load.findings.add("view", f"{bucket.name}: {each}")
    for key, history in histories.items():
        bucket.book.judge_history(key, history)


async def _history(kv: KeyValue, key: str) -> list[Seen]:
    return [
        Seen(each.key, each.revision, each.operation, each.value)
        for each in await insist(lambda: _all(kv.history(key)))
    ]


async def _differences(
    kv: KeyValue, kept: Sequence[Seen], histories: Mapping[str, Sequence[Seen]]
) -> list[str]:
    """Return in what the view is other than what stands in the stream."""
    newest = {each.key: each for each in kept}
    live = {key: each for key, each in newest.items() if each.operation == "PUT"}
    found: list[str] = []
    keys = await insist(lambda: _all(kv.keys()))
    if sorted(keys) != sorted(live):
        found.append(f"keys() {sorted(keys)}, there {sorted(live)}")
    for key, history in histories.items():
        entry = await insist(lambda key=key: kv.get(key))
        seen = (entry.revision, entry.value) if entry is not None else None
        wanted = (live[key].revision, live[key].value) if key in live else None
        if seen != wanted:
            found.append(f"get({key!r}) {seen}, there {wanted}")
        there = [each for each in kept if each.key == key]
        if list(history) != there:
            found.append(f"history({key!r}) {history}, there {there}")
    return found


async def judge_lock(js: JetStream, crew: Crew, load: Load) -> None:
    """When nobody wants the lock any more, its key is free, or expires."""
    kv = await insist(lambda: js.kv.get(LOCKS))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PROGRESS_S
    crew.lock_book.judge()
    while await insist(lambda: kv.get(LOCK)) is not None:
        if loop.time() >= deadline:
            load.findings.add("left behind", f"nobody wants {LOCK}, and it is held")
            break
        await asyncio.sleep(_LOOK_S)
    if not crew.lock_book.newest_token and not load.findings.count:
        load.findings.add("stands still", "nobody ever had the lock")


async def judge_store(js: JetStream, crew: Crew, load: Load) -> None:
    """Every object is whole and is what was put; after a sweep nothing else is in the stream."""
    box = await insist(lambda: js.objects.get(STORE))
    stored: dict[str, bytes | None] = {}
    for name in crew.object_book.names:
        try:
            stored[name] = await insist(lambda name=name: box.get(name))
        except NatsStreamError as error:
            load.findings.add("object", f"{name}: {type(error).__name__}: {error} {error.detail}")
    listed = [each.name for each in await insist(lambda: _all(box.list()))]
    crew.object_book.judge(
        stored | {name: b"" for name in listed if name not in crew.object_book.names}
    )
    there = [name for name, data in stored.items() if data is not None]
    if not load.findings.count and sorted(listed) != sorted(there):
        load.findings.add("view", f"list() {sorted(listed)}, there {sorted(there)}")
    swept = await insist(lambda: box.sweep(older_than=0))
    load.counts["orphan chunks swept"] = swept.chunks
    await _judge_chunks(js, load)


async def _judge_chunks(js: JetStream, load: Load) -> None:
    """What is in the stream belongs to an object, by this file's own reading of it."""
    messages = await insist(lambda: _all_of(js, f"OBJ_{STORE}"))
    chunks: dict[str, list[int]] = {}
    metas: dict[str, dict[str, object]] = {}
    for message in messages:
        kind, _, rest = message.subject.removeprefix(f"$O.{STORE}.").partition(".")
        if kind == "C":
            chunks.setdefault(rest, []).append(len(message.data))
        else:
            metas[base64.urlsafe_b64decode(rest).decode()] = json.loads(message.data)
    wanted: dict[str, tuple[int, int]] = {}
    for meta in metas.values():
        if not meta.get("deleted"):
            shape = cast("int", meta.get("chunks", 0)), cast("int", meta.get("size", 0))
            wanted[cast("str", meta["nuid"])] = shape
    for nuid in chunks.keys() - wanted.keys():
        load.findings.add("orphans", f"{len(chunks[nuid])} chunks of {nuid} belong to no object")
    for nuid, (count, size) in wanted.items():
        sizes = chunks.get(nuid, [])
        if (len(sizes), sum(sizes)) != (count, size):
            load.findings.add(
                "object",
                f"{nuid}: {count} chunks of {size} bytes, there {len(sizes)}, {sum(sizes)}",
            )
