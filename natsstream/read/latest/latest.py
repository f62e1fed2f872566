"""The newest message of each subject, then what comes.

Law: what was stored after the beginning is handed over once and in order while the stream has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.read.latest.wanted import LatestRequest
from natsstream.read.leader_reads import LeaderReads, shortened
from natsstream.read.missing import MissingSequences
from natsstream.read.ordered import OrderedConsumer

# A new leader may have to take over what the one before has acknowledged.
_LOOKS_MAX = 5
_LOOK_WAIT_S = 0.2


class Latest(OrderedConsumer):
    """Follows the newest message of each subject; made by `Stream.latest`.

    Iterate it in `async with`. `initial()` ends once it has yielded a message of every subject that
    had one when the block was entered; at once when there is none.
    Another one resumes at `next_seq`: `stream.latest(first_seq=tail.next_seq)`.

    Every call that asks the server raises `TransportError` when no answer comes in time.

    Attributes:
        report: Counts so far: messages, and why consumers were recreated.
    """

    _noun = "reader of latest messages"
    _call = "stream.latest()"

    def __init__(self, api: Api, wanted: LatestRequest) -> None:
        super().__init__(api, wanted.ordered())
        self._api = api
        self._wanted = wanted

    async def __aenter__(self) -> Self:
        """Find the start and make the first consumer.

        Raises:
            StreamNotFoundError: There is no such stream.
            StreamRecreatedError: The stream is not the one of `created_ns`, or has not come to
                `first_seq`.
            PermissionDeniedError: The user may not read it.
        """
        await super().__aenter__()
        try:
            await self._check_place()
        except BaseException:
            await self.close()
            raise
        return self

    @property
    def horizon(self) -> int:
        """The stream's last sequence when the block was entered; what lies behind came later."""
        self._check_open()
        return self._follower.progress.horizon

    async def is_current(self) -> bool:
        """Ask the stream's leader whether all that it holds now has been taken.

        Raises:
            StreamNotFoundError: The stream was deleted.
            StreamRecreatedError: It was deleted and created again.

        Cost: one round trip for each filter; one in all where there are many and nothing is new.
        """
        self._check_open()
        hidden = self._follower.hidden_start
        return await self._leader().next_held(self.next_seq, hidden=hidden) is None

    def give_back(self, messages: Sequence[Message]) -> None:
        """Take back the end of what `batches` has yielded last: the next loop begins with it."""
        self._check_open()
        self._rest = [*reversed(messages)]

    async def _check_place(self) -> None:
        first = self._wanted.first_seq
        if first is None or first <= self._follower.info.state.last_seq + 1:
            return
        name, leader = self._wanted.stream, self._leader()
        last_seq = self._follower.info.state.last_seq
        for _ in range(0 if self._follower.info.config.replicas == 1 else _LOOKS_MAX):
            await asyncio.sleep(_LOOK_WAIT_S)
            last_seq = (await leader.info()).state.last_seq
            if first <= last_seq + 1:
                return
        # With `created_ns` it was compared, so this is the stream that was meant.
        is_same = self._wanted.created_ns is not None
        cause = (
            "it lost its end" if is_same else "it was deleted and created again, or lost its end"
        )
        detail = f"if {first - 1} was once read from it, {cause}; if not, the number is wrong"
        raise shortened(name, last_seq, first - 1, detail=detail)

    def _leader(self) -> LeaderReads:
        return LeaderReads(
            self._api,
            self._wanted.stream,
            self._wanted.filters,
            missing=MissingSequences(),
            created_ns=self.created_ns,
        )

    def __repr__(self) -> str:
        return f"<Latest {' '.join((self._wanted.stream, *self._wanted.filters))}>"
