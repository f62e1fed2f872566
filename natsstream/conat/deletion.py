"""Deletes messages of a core stream, and announces what was deleted.

Law: what is announced is deleted. A purge never reaches behind the last message that this client
knows, so it removes no message that comes meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

from natsstream.arguments import check_int, described
from natsstream.conat.blobs import Blobs
from natsstream.conat.feed import Announcement
from natsstream.conat.sync import StreamSync
from natsstream.errors import ConfigError, MessageNotFoundError

_IN_FLIGHT = 64


class Deletion:
    """The deletions of one core stream.

    Args:
        sync: Its arrays.
        blobs: Its big values.
    """

    def __init__(self, sync: StreamSync, blobs: Blobs) -> None:
        self._sync = sync
        self._blobs = blobs

    async def of(
        self,
        *,
        all: bool = False,  # noqa: A002 - Conat's word.
        last_index: int | None = None,
        seq: int | None = None,
        seqs: Sequence[int] | None = None,
        last_seq: int | None = None,
    ) -> list[int]:
        """Delete what the first given argument names; see `CoreStream.delete`."""
        log = self._sync.reconciler.log
        if all:
            return await self._purge(self._sync.reconciler.applied)
        if last_index is not None:
            last = check_int(last_index, "last_index")
            if last < 0 or not len(log):
                return []
            return await self._purge(log.seq(min(last, len(log) - 1)))
        if seq is not None or seqs is not None:
            return await self._delete([seq] if seq is not None else _listed(seqs))
        if last_seq is not None:
            wanted = check_int(last_seq, "last_seq", minimum=0)
            return await self._purge(min(wanted, self._sync.reconciler.applied))
        raise ConfigError(
            "delete was told nothing to delete", hint="delete(all=True), or seq=, last_seq=, key="
        )

    async def _purge(self, last_seq: int) -> list[int]:
        log = self._sync.reconciler.log
        gone = [each.seq for each in log.records(0, last_seq)]
        big = self._blobs.of(log.records(0, last_seq))
        if last_seq:
            await self._sync.stream.purge(last_seq=last_seq)
            await self._sync.announce(Announcement(purged=last_seq))
            await self._blobs.remove(big)
        return gone

    async def _delete(self, seqs: Sequence[int]) -> list[int]:
        wanted = sorted({check_int(seq, "seq") for seq in seqs} - {0})
        if not wanted:
            return []
        log = self._sync.reconciler.log
        if len(wanted) > 1 and wanted == [each.seq for each in log.records(0, wanted[-1])]:
            return await self._purge(wanted[-1])  # One request for a whole beginning.
        room = asyncio.Semaphore(_IN_FLIGHT)
        deleted: list[int] = []
        gone: list[int] = []
        held = {seq: record for seq in wanted if (record := log.find(seq)) is not None}

        async def delete(seq: int) -> None:
            async with room:
                try:
                    await self._sync.stream.delete_message(seq)
                    deleted.append(seq)
                except MessageNotFoundError:
                    if seq > self._sync.reconciler.applied:
                        return  # It may yet be stored.
                gone.append(seq)

        try:
            answers = await asyncio.gather(*map(delete, wanted), return_exceptions=True)
        finally:
            await self._sync.announce(Announcement(deleted=tuple((seq, seq) for seq in gone)))
            await self._blobs.remove(self._blobs.of(held[seq] for seq in gone if seq in held))
        for error in answers:
            if error is not None:
                raise error
        return sorted(deleted)


def _listed(seqs: object) -> list[int]:
    if not isinstance(seqs, Iterable) or isinstance(seqs, str | bytes):
        raise ConfigError(f"seqs is {described(seqs)}", hint="give a list: seqs=[1, 2]")
    # The cast says that each is checked where it is deleted.
    return list(cast("Iterable[int]", seqs))
