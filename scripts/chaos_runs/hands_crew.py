"""All hands of a run: the consumers, who works on each, and what is left to do at the end.

Law: every consumer that is made here is deleted here, and every task is awaited.
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Mapping, Sequence

from natsstream import JetStream, NatsStreamError
from scripts.chaos_runs.hands import (
    ACK_WAIT_S,
    QUEUE,
    SMALL_BYTES,
    SMALL_MESSAGES,
    SMALL_QUEUE,
    Hand,
    Role,
    is_doomed,
)
from scripts.chaos_runs.hands_book import HandBook, LetterSeen, judge_kept, judge_letters
from scripts.chaos_runs.janitor import Found, Janitor, look_at_letters
from scripts.chaos_runs.ledger import WriterBook
from scripts.chaos_runs.letters import SUBJECTS_OF_WRITER, split_identity
from scripts.chaos_runs.load import STREAM, Load
from scripts.chaos_runs.watch import describe_task

CLIENTS = ("chaos-hands-1", "chaos-hands-2", "chaos-hands-3")
PREFIX = "hands-"
_END_S = 60.0
_GROUP = "hands"

ROLES: Sequence[Role] = (
    Role("hands-fetch", "fetch", 0, {"ack": 9, "nak": 1}, hands=2),
    Role("hands-next", "next", 1, {"confirm": 1}, hands=2),
    Role("hands-plain", "consume", 2, {"ack": 1}),
    Role("hands-confirmed", "consume", 0, {"confirm": 19, "term": 1}, hands=2),
    Role("hands-moody", "consume", 1, {"ack": 4, "confirm": 4, "term": 1, "nak": 2, "leave": 1}),
    Role("hands-pool", "pool", 2, {}, hands=2),
    Role("hands-small", "pool", 1, {}, hands=2, queue=SMALL_QUEUE),
    Role(
        "hands-push",
        "push",
        0,
        {"ack": 6, "confirm": 1, "nak": 1},
        config={
            "deliver_subject": "chaos-hands.push",
            "flow_control": True,
            "idle_heartbeat": 1,
        },
    ),
    Role(
        "hands-pinned",
        "consume",
        1,
        {"ack": 1, "confirm": 1},
        hands=2,
        config={
            "priority_groups": [_GROUP],
            "priority_policy": "pinned_client",
            "priority_timeout": 2,
        },
        group=_GROUP,
    ),
    # Its name has no prefix: the fault that deletes consumers deletes these.
    Role("short", "short", 2, {"confirm": 9, "leave": 1}),
)


class Hands:
    """The hands of a run, on their own connections.

    Args:
        load: What all workers share.
        capacity: Largest sequence.

    Attributes:
        books: By consumer.
    """

    def __init__(self, load: Load, capacity: int) -> None:
        self._load = load
        self._tasks: list[asyncio.Task[None]] = []
        self._janitor: Janitor | None = None
        self.books: Mapping[str, HandBook] = {
            role.name: HandBook(
                role.name,
                capacity,
                load.findings,
                # A consumer without a durable state has one replica, wherever its stream is.
                is_replicated=load.replicas > 1 and role.way != "short",
                kills=load.kills,
            )
            for role in ROLES
        }

    async def create(self, js: JetStream) -> None:
        """Make the consumers and the dead-letter stream."""
        await js.dead_letters.ensure(QUEUE, stream=STREAM, consumer="hands-pool")
        await js.dead_letters.ensure(
            SMALL_QUEUE,
            stream=STREAM,
            consumer="hands-small",
            max_msgs=SMALL_MESSAGES,
            max_bytes=SMALL_BYTES,
        )
        stream = await js.streams.get(STREAM)
        for role in _durable():
            config = role.config.copy()
            config["filters"], config["ack_wait"] = [f"chaos.*.{role.turn}"], ACK_WAIT_S
            await stream.consumers.ensure(role.name, **config)

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Let all hands begin."""
        for index, role in enumerate(ROLES):
            for number in range(role.hands):
                js = clients[(index + number) % len(clients)]
                hand = Hand(self._load, js, role, self.books[role.name], number + 1)
                self._tasks.append(asyncio.create_task(self._guard(hand), name=hand.name))
        janitor = self._janitor = Janitor(self._load, clients[0], SMALL_QUEUE)
        self._tasks.append(asyncio.create_task(self._guard(janitor), name=janitor.name))

    async def _guard(self, hand: Hand | Janitor) -> None:
        try:
            await hand.run()
        except Exception:  # noqa: BLE001 - Whatever it is, the run tells it.
            self._load.findings.add("crash", f"{hand.name}: {traceback.format_exc()}")

    def progress(self) -> dict[str, int]:
        """Return how many deliveries each consumer has made."""
        return {name: book.counts["delivered"] for name, book in self.books.items()}

    async def left_to_do(
        self, js: JetStream, wanted: Mapping[int, Sequence[int]]
    ) -> tuple[float, list[str]]:
        """Return how much is left, and the consumers with something to deliver or out.

        Args:
            js: A connection without faults.
            wanted: What `wanted_of` returns.
        """
        stream = await js.streams.get(STREAM)
        found: list[str] = []
        count = 0.0
        for role in _durable():
            missing = self.books[role.name].missing(wanted[role.turn])
            try:
                info = await (await stream.consumers.get(role.name)).info()
            except NatsStreamError as error:
                found.append(f"{role.name} ({error})")
                count = math.inf
                continue
            left = {"pending": info.num_pending, "out": info.num_ack_pending}
            if role.way != "pool":
                left["not handled"] = len(missing)
            if any(left.values()):
                told = ", ".join(f"{number} {what}" for what, number in left.items())
                found.append(f"{role.name} ({told})")
                count += sum(left.values())
        return count, found

    async def end(self) -> None:
        """Cancel all hands; each has its time to leave."""
        for task in self._tasks:
            task.cancel()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=_END_S)
        for task in late:
            place = describe_task(task)
            self._load.findings.add("hangs", f"{task.get_name()} does not end\n{place}")

    async def judge(self, js: JetStream, wanted: Mapping[int, Sequence[int]] | None) -> None:
        """Compare all books, and the dead letters, with what is promised.

        Args:
            js: A connection without faults.
            wanted: What `wanted_of` returns; None when the run was broken off before its end.
        """
        letters = await self._letters(js, QUEUE)
        for role in ROLES:
            book = self.books[role.name]
            if role.way == "short":
                book.begin_again()
            elif role.way == "pool":
                book.judge()
                mine = wanted[role.turn] if wanted else ()
                if role.queue == SMALL_QUEUE:
                    await self._judge_small(js, role, mine)
                    continue
                identity = self._load.content.identity
                doomed = frozenset(
                    each for each in mine if is_doomed(split_identity(identity(each))[1])
                )
                others = {each.sequence for each in letters} - set(mine)
                # What was stored though nobody was told of it is handled as well.
                doomed |= {each for each in others if is_doomed(split_identity(identity(each))[1])}
                judge_letters(letters, book, mine, doomed, self._load.findings)
            else:
                book.judge(wanted[role.turn] if wanted else ())

    async def _judge_small(self, js: JetStream, role: Role, wanted: Sequence[int]) -> None:
        found = dict(self._janitor.found) if self._janitor is not None else {}
        letters = await self._letters(js, role.queue, found)
        identity = self._load.content.identity
        sequences = {*wanted, *(each.sequence for each in letters)}
        doomed = {each for each in sequences if is_doomed(split_identity(identity(each))[1])}
        info = await (await (await js.streams.get(STREAM)).consumers.get(role.name)).info()
        n_held = info.num_pending + info.num_ack_pending
        book = self.books[role.name]
        judge_kept(letters, book, wanted, frozenset(doomed), n_held, self._load.findings)

    async def _letters(
        self, js: JetStream, queue: str, found: dict[int, Found] | None = None
    ) -> list[LetterSeen]:
        found = {} if found is None else found
        await look_at_letters(js, queue, found)
        identity = self._load.content.identity
        return [
            LetterSeen(each.sequence, each.reason, 0 < each.identity == identity(each.sequence))
            for each in found.values()
        ]

    async def delete(self, js: JetStream) -> None:
        """Delete the consumers."""
        stream = await js.streams.get(STREAM)
        for role in _durable():
            await stream.consumers.delete(role.name)


def wanted_of(books: Sequence[WriterBook]) -> dict[int, list[int]]:
    """Return the sequences that writers were acknowledged, by the third that they belong to."""
    wanted: dict[int, list[int]] = {turn: [] for turn in range(SUBJECTS_OF_WRITER)}
    for book in books:
        for number in range(1, book.count + 1):
            if book.outcome(number) == "acked":
                wanted[number % SUBJECTS_OF_WRITER].append(book.sequence(number))
    return wanted


def _durable() -> list[Role]:
    return [role for role in ROLES if role.way != "short"]
