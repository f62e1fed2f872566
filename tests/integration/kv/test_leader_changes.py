"""Writes on three replicas whose leader changes: the bucket is what was acknowledged."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import NatsStreamError, WrongLastSequenceError
from tests.support.clusters import step_down
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import Entry, JetStream
    from natsstream.kv.key_value import KeyValue
    from natsstream.testing import NatsCluster

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

KEYS = ("a", "b.c", "d", "e.f.g")
LEADER_CHANGES = 3
# Acknowledged by each owner between two changes of the leader.
ACKS_BETWEEN = 8
CALLS = ("put", "put", "create", "update", "update", "delete", "purge")


@dataclass(frozen=True)
class Write:
    """One call that changes a key; `value` is None for a marker."""

    call: str
    value: bytes | None
    expects: int | None = None


@dataclass
class Owner:
    """Writes one key, one thing after the other, and takes down what it was told."""

    key: str
    acked: dict[int, Write] = field(default_factory=dict)
    # Of these nobody knows: any of them may stand in the key.
    unknown: list[Write] = field(default_factory=list)
    found: int = 0
    number: int = 0
    # How many acknowledgements the test waits for.
    wanted: int = 0

    @property
    def last(self) -> int:
        """The newest revision that is known of."""
        return max(self.found, *self.acked, 0)

    async def write(self, kv: KeyValue, draw: random.Random) -> None:
        """Do one thing, and find out what stands there when its outcome is not known."""
        self.number += 1
        value = f"{self.key} {self.number}".encode()
        call = draw.choice(CALLS)
        is_value = call in ("put", "create", "update")
        expects = self.last if call == "update" or (not is_value and draw.random() < 0.5) else None
        if not is_value and not expects:
            expects = None
        write = Write(call, value if is_value else None, expects)
        try:
            revision = await self.ask(kv, write)
        except WrongLastSequenceError:
            await self.look(kv)
        except NatsStreamError:
            self.unknown.append(write)
            await self.look(kv)
        else:
            assert revision > self.last
            self.acked[revision] = write

    async def ask(self, kv: KeyValue, write: Write) -> int:
        if write.value is None:
            call = kv.delete if write.call == "delete" else kv.purge
            return await call(self.key, revision=write.expects)
        if write.call == "update":
            return await kv.update(self.key, write.value, revision=write.expects or 0)
        return await (kv.put if write.call == "put" else kv.create)(self.key, write.value)

    async def look(self, kv: KeyValue) -> None:
        """Read the newest record by the leader; it is the acknowledged one, or an unknown one."""

        async def newest() -> list[tuple[int, bytes | None]]:
            try:
                record = await kv.stream.get(last_by_subject=f"$KV.{kv.name}.{self.key}")
            except NatsStreamError:
                return []
            if record is None:
                return [] if self.last else [(0, None)]
            if record.sequence < self.last:
                return []  # A leader that does not know yet that it is none any more.
            return [(record.sequence, None if "KV-Operation" in record.headers else record.data)]

        ((revision, value),) = await eventually_async(newest, within_s=60)
        if revision > self.last:
            assert value in [each.value for each in self.unknown]
            self.found = revision

    def check(self, history: list[Entry]) -> None:
        """Compare all that the bucket keeps of the key with what was acknowledged."""
        kept = {entry.revision: entry for entry in history}
        assert [*kept] == sorted(kept)
        assert max(kept) >= self.last
        # What is older than the first one fell out of the history, or was purged.
        for revision, write in self.acked.items():
            if revision >= min(kept):
                entry = kept[revision]
                assert (None if entry.is_deleted else entry.value) == write.value
        for before, entry in pairwise(history):
            write = self.acked.get(entry.revision)
            if write is not None and write.expects is not None:
                assert write.expects == before.revision
            if write is not None and write.call == "create":
                assert before.is_deleted


async def opened(js: JetStream, name: str) -> list[KeyValue]:
    """Return the bucket in a list, or none where an election has lost the question."""
    with suppress(NatsStreamError):
        return [await js.kv.get(name)]
    return []


async def test_bucket_is_what_was_acknowledged_when_the_leader_changes(
    nats_cluster: NatsCluster, cluster_js: JetStream, stream_name: str
) -> None:
    final = await cluster_js.kv.ensure(stream_name, history=64, replicas=3)
    owners = [Owner(key) for key in KEYS]
    is_over = False
    # Impatient, since an election loses what is asked meanwhile.
    async with connect(nats_cluster.urls, request_timeout=1, reconnect_timeout=60) as js:
        (kv,) = await eventually_async(lambda: opened(js, stream_name), within_s=60)

        async def write(owner: Owner) -> None:
            draw = random.Random(owner.key)  # noqa: S311 - Which call comes next.
            while not is_over:
                await owner.write(kv, draw)

        async def each_is_acked_more() -> bool:
            return all(len(each.acked) >= each.wanted for each in owners)

        async with asyncio.TaskGroup() as tasks:
            for owner in owners:
                tasks.create_task(write(owner))
            for number in range(LEADER_CHANGES + 1):
                if number:
                    await step_down(cluster_js, nats_cluster, f"KV_{stream_name}")
                for owner in owners:
                    owner.wanted = len(owner.acked) + ACKS_BETWEEN
                await eventually_async(each_is_acked_more, within_s=60)
            is_over = True

    for owner in owners:
        await owner.look(final)
        owner.check([entry async for entry in final.history(owner.key)])
    every = [revision for owner in owners for revision in owner.acked]
    assert len(every) == len(set(every))
