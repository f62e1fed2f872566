"""The judge of the hands: every promise of a consumer that could be broken is found when it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from scripts.chaos_runs.hands import is_doomed
from scripts.chaos_runs.hands_book import (
    COUNTED,
    EXAMPLES,
    FORGETS_MS,
    HELD_MS_MAX,
    STALE_MS,
    Delivery,
    HandBook,
    LetterSeen,
    judge_kept,
    judge_letters,
)
from scripts.chaos_runs.hands_crew import PREFIX, ROLES, wanted_of
from scripts.chaos_runs.ledger import Findings, WriterBook

CAPACITY = 100
CONFIRMED_MS = 1_000


@dataclass
class Story:
    """What one consumer's hands were given, told by hand."""

    is_replicated: bool = False
    kills: list[int] = field(default_factory=list[int])
    findings: Findings = field(default_factory=Findings)

    def __post_init__(self) -> None:
        self.book = HandBook(
            "hands", CAPACITY, self.findings, is_replicated=self.is_replicated, kills=self.kills
        )
        self.place = 0

    def deliver(
        self,
        sequence: int,
        *,
        delivered: int = 1,
        stored_ms: int = 10,
        now_ms: int = 20,
        place: int = 0,
    ) -> None:
        """Deliver a message as the next one of the consumer, or at some place."""
        self.place = place or self.place + 1
        self.book.deliver(Delivery(sequence, self.place, delivered, stored_ms, now_ms))

    def confirm(self, sequence: int) -> None:
        """Deliver a message, and let the server confirm its ack."""
        self.deliver(sequence)
        self.book.settle(sequence, "acked")
        self.book.confirm(sequence, CONFIRMED_MS - 10, CONFIRMED_MS)

    def bring_back_after_a_later_message(self, sequence: int) -> None:
        """Deliver a message again, behind one that was stored after its confirmation."""
        self.deliver(9, stored_ms=CONFIRMED_MS + 5, now_ms=CONFIRMED_MS + 6)
        self.deliver(sequence, delivered=2, now_ms=CONFIRMED_MS + 7)

    def judge(self, wanted: Sequence[int] = ()) -> list[str]:
        """Return the laws that were broken."""
        self.book.judge(wanted)
        return [each.law for each in self.findings.kept]

    def excuses(self) -> int:
        """Return how many excuses were used."""
        return sum(count for what, count in self.book.counts.items() if what.startswith("excused"))


def test_run_in_which_all_is_well_has_no_findings() -> None:
    story = Story()
    for sequence in (1, 2, 3):
        story.confirm(sequence)
    assert story.judge([1, 2, 3]) == []
    assert (story.book.handled, story.excuses()) == (3, 0)


# Handled at least once.


def test_message_that_was_never_delivered_is_found() -> None:
    story = Story()
    story.confirm(1)
    assert story.judge([1, 2]) == ["handled"]
    assert "1 of them never delivered: 2" in story.findings.kept[0].text


def test_message_that_was_delivered_and_never_settled_is_found() -> None:
    story = Story()
    story.deliver(1)
    assert story.judge([1]) == ["handled"]
    assert "0 of them never delivered" in story.findings.kept[0].text


def test_sequence_that_can_not_be_is_found() -> None:
    story = Story()
    story.deliver(CAPACITY + 1)
    assert story.judge() == ["delivery"]


# What was confirmed does not come again.


@pytest.mark.parametrize("is_replicated", [False, True])
def test_confirmed_message_that_comes_again_is_found(is_replicated: bool) -> None:  # noqa: FBT001 - a parameter.
    story = Story(is_replicated)
    story.confirm(1)
    story.bring_back_after_a_later_message(1)
    assert story.judge() == ["confirmed"]


def test_order_of_arrival_does_not_hide_a_confirmed_message_that_comes_again() -> None:
    """Hands on several connections get what the server sent later first."""
    story = Story()
    story.confirm(1)
    story.deliver(1, delivered=2, now_ms=CONFIRMED_MS + 7, place=5)
    story.deliver(9, stored_ms=CONFIRMED_MS + 5, now_ms=CONFIRMED_MS + 8, place=4)
    assert story.judge() == ["confirmed"]


def test_delivery_that_was_on_its_way_when_it_was_confirmed_is_no_finding() -> None:
    story = Story()
    story.confirm(1)
    story.deliver(1, delivered=2, now_ms=CONFIRMED_MS + 4_000)
    story.deliver(9, stored_ms=CONFIRMED_MS + 5, now_ms=CONFIRMED_MS + 4_001)
    assert story.judge() == []
    assert story.book.counts["was on its way when it was confirmed"] == 1


def test_nothing_is_on_its_way_for_ever() -> None:
    story = Story()
    story.confirm(1)
    story.deliver(1, delivered=2, now_ms=CONFIRMED_MS + STALE_MS + 1)
    assert story.judge() == ["confirmed"]


@pytest.mark.parametrize(
    ("kill_ms", "laws"),
    [
        (CONFIRMED_MS + FORGETS_MS, []),
        (CONFIRMED_MS, []),
        (CONFIRMED_MS + FORGETS_MS + 1, ["confirmed"]),
        (CONFIRMED_MS - 11, ["confirmed"]),
    ],
)
def test_killed_server_may_forget_only_what_it_confirmed_just_before(
    kill_ms: int, laws: list[str]
) -> None:
    story = Story(kills=[kill_ms])
    story.confirm(1)
    story.bring_back_after_a_later_message(1)
    assert story.judge() == laws
    assert story.excuses() == (0 if laws else 1)


def test_consumer_on_several_servers_has_no_such_excuse() -> None:
    story = Story(is_replicated=True, kills=[CONFIRMED_MS])
    story.confirm(1)
    story.bring_back_after_a_later_message(1)
    assert story.judge() == ["confirmed"]


def test_plainly_acked_message_may_come_again() -> None:
    story = Story()
    story.deliver(1)
    story.book.settle(1, "acked")
    story.bring_back_after_a_later_message(1)
    assert story.judge([1]) == []


# What comes again says so.


def test_message_that_comes_again_and_does_not_say_so_is_found() -> None:
    story = Story()
    story.deliver(1)
    story.deliver(1, delivered=1)
    assert story.judge() == ["says so"]


def test_message_that_comes_again_and_says_so_is_no_finding() -> None:
    story = Story()
    story.deliver(1)
    story.deliver(1, delivered=2)
    assert story.judge() == []
    assert story.book.counts["redelivered"] == 1


def test_first_delivery_that_comes_later_than_its_own_redelivery_is_no_finding() -> None:
    """Two connections, and the slow one has the first delivery."""
    story = Story()
    story.deliver(1, delivered=2, place=7)
    story.deliver(1, delivered=1, place=3)
    assert story.judge() == []
    story.deliver(1, delivered=1, place=8)
    assert story.judge() == ["says so"]


def test_first_delivery_that_is_seen_may_be_the_second() -> None:
    """What went into a broken connection nobody saw."""
    story = Story()
    story.deliver(1, delivered=2)
    assert story.judge() == []


@pytest.mark.parametrize(
    ("kill_ms", "laws"),
    [
        (20_000 + FORGETS_MS, []),
        (20_000 - HELD_MS_MAX, []),
        (20_000 + FORGETS_MS + 1, ["says so"]),
        (20_000 - HELD_MS_MAX - 1, ["says so"]),
    ],
)
def test_killed_server_may_forget_only_what_it_delivered_just_before(
    kill_ms: int, laws: list[str]
) -> None:
    story = Story(kills=[kill_ms])
    story.deliver(1, now_ms=20_000)
    story.deliver(1, now_ms=30_000)
    assert story.judge() == laws
    assert story.excuses() == (0 if laws else 1)


def test_new_leader_that_does_not_know_the_number_of_deliveries_is_counted() -> None:
    story = Story(is_replicated=True)
    story.deliver(1)
    story.deliver(1)
    assert story.judge() == []
    assert story.excuses() == 1


def test_new_consumer_of_the_same_hands_may_deliver_all_again() -> None:
    story = Story()
    story.confirm(1)
    story.book.begin_again()
    story.place = 0
    story.deliver(9, stored_ms=CONFIRMED_MS + 5)
    story.deliver(1, now_ms=CONFIRMED_MS + 7)
    assert story.judge() == []


def test_new_consumer_does_not_hide_what_the_one_before_did_wrong() -> None:
    story = Story()
    story.confirm(1)
    story.bring_back_after_a_later_message(1)
    story.book.begin_again()
    assert story.judge() == ["confirmed"]


def test_only_some_examples_of_one_kind_are_told() -> None:
    story = Story()
    for sequence in range(1, 2 * EXAMPLES):
        story.deliver(sequence)
        story.deliver(sequence)
    assert story.judge() == ["says so"] * EXAMPLES


# Dead letters.

DOOMED = frozenset({3})
WANTED = [1, 2, 3]


def judged(letters: Sequence[LetterSeen], *, taken: Sequence[int] = (1, 2)) -> list[str]:
    """Return what is wrong with a dead-letter stream."""
    story = Story()
    for sequence in taken:
        story.confirm(sequence)
    judge_letters(letters, story.book, WANTED, DOOMED, story.findings)
    assert all(each.law == "dead letters" for each in story.findings.kept)
    return [each.text.removeprefix("hands: ") for each in story.findings.kept]


def letter(sequence: int, reason: str = "attempts", *, is_whole: bool = True) -> LetterSeen:
    return LetterSeen(sequence, reason, is_whole)


def test_dead_letters_of_a_run_in_which_all_is_well_have_no_findings() -> None:
    assert judged([letter(3, "rejected")]) == []


def test_letter_that_is_stored_twice_is_found() -> None:
    assert judged([letter(3), letter(3)]) == ["3 has 2 letters"]


def test_letter_that_is_not_there_is_found() -> None:
    assert judged([]) == ["3 was not taken, and has no letter"]


def test_letter_that_does_not_hold_its_message_is_found() -> None:
    assert judged([letter(3, is_whole=False)]) == ["the letter of 3 does not hold its message"]


def test_letter_that_says_of_a_good_message_that_it_was_rejected_is_found() -> None:
    found = judged([letter(3), letter(2, "rejected")])
    assert found == ["2 has a letter, and nobody has rejected it"]


def test_message_that_was_neither_handled_nor_has_a_letter_is_found() -> None:
    assert judged([letter(3)], taken=[1]) == ["2 was neither handled nor has it a letter"]


def test_good_message_whose_attempts_were_used_up_has_a_letter() -> None:
    assert judged([letter(3), letter(2, "abandoned")], taken=[1]) == []


def test_message_that_no_handler_takes_and_that_was_taken_is_found() -> None:
    assert judged([letter(3)], taken=[1, 2, 3]) == ["3 was taken, which no handler does"]


# Letters of a small queue, which somebody empties.


def judged_kept(
    letters: Sequence[LetterSeen],
    *,
    taken: Sequence[int] = (1, 2),
    n_held: int = 0,
    n_counted: int = 0,
) -> list[str]:
    """Return what is wrong with all letters that a small dead-letter stream ever had."""
    story = Story()
    for sequence in taken:
        story.confirm(sequence)
    story.book.counts[COUNTED] = n_counted
    judge_kept(letters, story.book, WANTED, DOOMED, n_held, story.findings)
    assert all(each.law == "kept letters" for each in story.findings.kept)
    return [each.text.removeprefix("hands: ") for each in story.findings.kept]


def test_letters_that_were_dropped_and_stored_again_are_no_finding() -> None:
    assert judged_kept([letter(3, "rejected"), letter(3)], n_counted=2) == []


def test_dead_message_that_is_with_its_consumer_is_no_finding() -> None:
    assert judged_kept([], n_held=1) == []


def test_dead_message_that_is_nowhere_is_found() -> None:
    assert judged_kept([]) == [
        "1 messages were neither handled nor have they a letter, and 0 are with the consumer: 3"
    ]


def test_report_that_counts_more_letters_than_were_stored_is_found() -> None:
    assert judged_kept([letter(3)], n_counted=2) == ["reports count 2 letters, 1 were stored"]


def test_kept_letter_that_does_not_hold_its_message_is_found() -> None:
    assert judged_kept([letter(3, is_whole=False)]) == ["the letter of 3 does not hold its message"]


def test_kept_letter_of_a_good_message_that_was_not_rejected_is_found() -> None:
    assert judged_kept([letter(3), letter(2, "rejected")]) == [
        "2 has a letter, and nobody has rejected it"
    ]


def test_dead_message_that_a_handler_of_the_small_queue_took_is_found() -> None:
    assert judged_kept([letter(3)], taken=[1, 2, 3]) == ["3 was taken, which no handler does"]


# What is wanted.


def test_wanted_is_what_was_acknowledged_by_the_third_that_it_belongs_to() -> None:
    book = WriterBook("plain", 0, CAPACITY)
    for sequence in (5, 6, 7, 8):
        book.acked(book.begin(), sequence, duplicate=False)
    book.refused(book.begin())
    book.unknown(book.begin())
    assert wanted_of([book]) == {1: [5, 8], 2: [6], 0: [7]}


def test_pool_gets_messages_that_no_handler_takes_and_others() -> None:
    assert {is_doomed(number) for number in range(1, 100)} == {True, False}


def test_fault_that_deletes_consumers_spares_those_that_promise_every_message() -> None:
    short = [role.name for role in ROLES if not role.name.startswith(PREFIX)]
    assert short == [role.name for role in ROLES if role.way == "short"]
    assert {role.way for role in ROLES} == {"fetch", "next", "consume", "pool", "push", "short"}
