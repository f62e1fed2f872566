"""All hands of a run: the consumers, who works on each, and what is left to do at the end.

What lives here: the list of consumers, their tasks, and reading the dead letters. What must not:
how a hand works (`hands.py`), and what is right (`hands_book.py`).

Law: every consumer that is made here is deleted here, and every task is awaited.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping, Sequence

from natsstream import JetStream, NatsStreamError
from scripts.chaos_runs.hands import ACK_WAIT_S, QUEUE, Hand, Role, is_doomed
from scripts.chaos_runs.hands_book import HandBook, LetterSeen, judge_letters
from scripts.chaos_runs.ledger import WriterBook
from scripts.chaos_runs.letters import (
    HEADER,
    SUBJECTS_OF_WRITER,
    MixedUpError,
    read_letter,
    split_identity,
)
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
        stream = await js.streams.get(STREAM)
        for role in _durable():
            await stream.consumers.ensure(
                role.name, filters=[f"chaos.*.{role.turn}"], ack_wait=ACK_WAIT_S, **role.config
            )

    def begin(self, clients: Sequence[JetStream]) -> None:
        """Let all hands begin."""
        for index, role in enumerate(ROLES):
            for number in range(role.hands):
                js = clients[(index + number) % len(clients)]
                hand = Hand(self._load, js, role, self.books[role.name], number + 1)
                self._tasks.append(asyncio.create_task(self._guard(hand), name=hand.name))

    async def _guard(self, hand: Hand) -> None:
        try:
            await hand.run()
        except Exception:  # noqa: BLE001 - Whatever it is, the run tells it.
            self._load.findings.add("crash", f"{hand.name}: {traceback.format_exc()}")

    def progress(self) -> dict[str, int]:
        """Return how many deliveries each consumer has made."""
        return {name: book.counts["delivered"] for name, book in self.books.items()}

    async def left_to_do(self, js: JetStream, wanted: Mapping[int, Sequence[int]]) -> list[str]:
        """Return the consumers that have something to deliver still, or something out.

        Args:
            js: A connection without faults.
            wanted: What `wanted_of` returns.
        """
        stream = await js.streams.get(STREAM)
        found: list[str] = []
        for role in _durable():
            missing = self.books[role.name].missing(wanted[role.turn])
            try:
                info = await (await stream.consumers.get(role.name)).info()
            except NatsStreamError as error:
                found.append(f"{role.name} ({error})")
                continue
            left = {"pending": info.num_pending, "out": info.num_ack_pending}
            if role.way != "pool":
                left["not handled"] = len(missing)
            if any(left.values()):
                told = ", ".join(f"{count} {what}" for what, count in left.items())
                found.append(f"{role.name} ({told})")
        return found

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
        letters = await self._letters(js)
        for role in ROLES:
            book = self.books[role.name]
            if role.way == "short":
                book.begin_again()
            elif role.way == "pool":
                book.judge()
                mine = wanted[role.turn] if wanted else ()
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

    async def _letters(self, js: JetStream) -> list[LetterSeen]:
        found: list[LetterSeen] = []
        async for letter in (await js.dead_letters.open(QUEUE)).list():
            message, is_whole = letter.message, False
            if message is not None and letter.is_copy:
                try:
                    mark = message.headers.get(HEADER)
                    identity = read_letter(message.subject, mark, message.data)
                except MixedUpError:
                    pass
                else:
                    is_whole = identity == self._load.content.identity(letter.sequence)
            found.append(LetterSeen(letter.sequence, letter.reason, is_whole))
        return found

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
