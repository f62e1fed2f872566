"""Clients that write to one core stream while faults happen, and what must be true at the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from natsstream.conat.writer import PublishItem, PublishOptions
from natsstream.errors import NatsStreamError
from tests.support.core_streams import heard, held
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from natsstream import CoreStream, Message
    from natsstream.conat.writer import Stored

KEYS = tuple("abcde")
# Writers leave the loop to the others; they do not wait for anything.
_PAUSE_S = 0.002
_TIMEOUT_S = 2.0


class Crew:
    """The clients of one new core stream.

    Attributes:
        acked: Key and value of each message whose ack came, by sequence.
        deleted: Sequences whose deletion was tried.
        refused: Number of calls that failed.
    """

    def __init__(self, clients: Sequence[CoreStream], seed: Random) -> None:
        self.acked: dict[int, tuple[str | None, object]] = {}
        self.deleted: set[int] = set()
        self.refused = 0
        self._clients = clients
        self._seed = seed
        self._changes = [heard(each) for each in clients]
        self._has_to_stop = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._write(number)) for number in range(len(clients))]

    async def stop(self) -> None:
        """End the writing."""
        self._has_to_stop.set()
        await asyncio.gather(*self._tasks)

    async def reach(self, count: int) -> None:
        """Wait until so many more messages are acknowledged."""
        wanted = len(self.acked) + count

        async def are_enough() -> bool:
            return len(self.acked) >= wanted

        await eventually_async(are_enough, within_s=60)

    async def _write(self, number: int) -> None:
        count = 0
        while not self._has_to_stop.is_set():
            count += 1
            try:
                await self._write_once(self._clients[number], f"{number}-{count}")
            except NatsStreamError:
                self.refused += 1
            await asyncio.sleep(_PAUSE_S)

    async def _write_once(self, client: CoreStream, value: str) -> None:
        chance, key = self._seed.random(), self._seed.choice(KEYS)
        if chance < 0.4:
            self._note(None, value, await client.publish(value, timeout=_TIMEOUT_S))
        elif chance < 0.8:
            self._note(key, value, await client.set_kv(key, value, timeout=_TIMEOUT_S))
        elif chance < 0.86:
            self._note(key, None, await client.publish(None, key=key, timeout=_TIMEOUT_S))
        elif chance < 0.92 and len(client):
            seq = client.raw[self._seed.randrange(len(client))].seq
            self.deleted.add(seq)
            await client.delete(seq=seq)
        elif chance < 0.94:
            items = [PublishItem(f"{value}.{at}", PublishOptions(key=key)) for at in range(10)]
            for at, result in enumerate(await client.publish_many(items)):
                self._note(key, f"{value}.{at}", result.stored)
        else:
            self._note(key, None, await client.delete_kv(key))

    def _note(self, key: str | None, value: object, stored: Stored | None) -> None:
        if stored is not None:
            assert stored.seq not in self.acked, "two messages with one sequence"
            self.acked[stored.seq] = (key, value)

    # At the end.

    async def check(self) -> None:
        """Check that all clients have what the server holds, and how they got there."""
        stored = await self._converge()
        self._check_acks(stored)
        for client, _ in zip(self._clients, self._changes, strict=True):
            assert [each.seq for each in client.raw] == [each.sequence for each in stored]
        for number in range(len(self._clients)):
            self._check_changes(number)

    async def _converge(self) -> list[Message]:
        async def are_equal() -> list[Message] | None:
            stored = await held(self._clients[0])
            wanted = [(each.sequence, each.data) for each in stored]
            for each in self._clients:
                if [(message.seq, message.raw) for message in each.raw] != wanted:
                    return None
            return stored

        try:
            return await eventually_async(are_equal, within_s=60) or []
        except AssertionError:
            now = [message.sequence for message in await held(self._clients[0])]
            shown = [[message.seq for message in each.raw] for each in self._clients]
            wrong = [sorted(set(now).symmetric_difference(each)) for each in shown]
            raise AssertionError(f"the server and each client differ in {wrong}") from None

    def _check_acks(self, stored: list[Message]) -> None:
        there = {each.seq: each for each in self._clients[0].raw}
        assert len(there) == len(stored)
        newest = {each.key: each.seq for each in there.values() if each.key is not None}
        for seq, (key, _) in self.acked.items():
            if seq in there:
                assert there[seq].key == key
            elif key is None:
                assert seq in self.deleted, f"message {seq} was acknowledged and is lost"
            elif newest.get(key, 0) < seq:
                later = [each for each in self.deleted if each >= seq]
                assert later, f"message {seq} of key {key} was acknowledged and is lost"

    def _check_changes(self, number: int) -> None:
        shown: list[int] = []
        last_of: dict[str, int] = {}
        told: list[int] = []
        for change in self._changes[number]:
            key = change.key
            if change.is_removal:
                shown.remove(change.seq)
                continue
            told.append(change.seq)
            if key is not None:
                before = last_of.get(key, 0)
                unseen = sorted(
                    seq
                    for seq, (its_key, _) in self.acked.items()
                    if its_key == key and before < seq < change.seq
                )
                # The client was told that the value was gone, and the last one after it was deleted
                # before it came: that leaves no trace.
                asked = set(unseen) if before in shown else set(unseen[-1:]) - self.deleted
                assert change.is_conflated or not asked, (change, before, unseen)
                last_of[key] = change.seq
                if before in shown:
                    shown.remove(before)
            shown.append(change.seq)
        assert told == sorted(set(told)), "changes out of order, or told twice"
        assert shown == [each.seq for each in self._clients[number].raw]
        lost = {
            seq for seq in self.acked if seq not in told and self.acked[seq][0] is None
        } - self.deleted
        assert not lost, f"client {number} was never told of {sorted(lost)}"
