"""The judge of a chaos run: each lie that a reader or an acknowledgement could tell is found."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from scripts.chaos_runs.audit import StreamEnd, audit
from scripts.chaos_runs.ledger import FINDINGS_MAX, Content, Findings, Sightings, WriterBook
from scripts.chaos_runs.letters import (
    MixedUpError,
    filter_of,
    identity_of,
    make_letter,
    read_letter,
    split_identity,
)

CAPACITY = 1_000


@dataclass
class Story:
    """A run with two writers, told by hand."""

    findings: Findings = field(default_factory=Findings)
    held: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        self.content = Content(CAPACITY, self.findings)
        self.books = [
            WriterBook("plain", 0, CAPACITY),
            WriterBook("ordered", 1, CAPACITY, keeps_order=True),
        ]
        self.reader = Sightings("reader", self.content, self.findings)

    def store(self, writer: int, sequence: int) -> int:
        """Let a writer send a message that is stored and acknowledged."""
        number = self.books[writer].begin()
        self.held[sequence] = identity_of(writer, number)
        self.books[writer].acked(number, sequence, duplicate=False)
        return number

    def deliver(self, sequence: int, reader: Sightings | None = None) -> None:
        """Let a reader get what stands at a sequence."""
        writer, number = split_identity(self.held[sequence])
        (reader or self.reader).see(sequence, *make_letter(writer, number))

    def judge(self) -> list[str]:
        """Return the laws that were broken."""
        self.reader.check_whole()
        last = max(self.held, default=0)
        end = StreamEnd(1, last, len(self.held))
        audit(self.held, end, self.books, self.content, self.findings)
        return [each.law for each in self.findings.kept]


@pytest.fixture
def story() -> Story:
    """Five messages of two writers in turn."""
    made = Story()
    for sequence in range(1, 6):
        made.store(sequence % 2, sequence)
    return made


@pytest.mark.parametrize("number", [1, 90, 101, 12_345])
def test_letter_that_arrives_whole_is_known(number: int) -> None:
    assert split_identity(read_letter(*make_letter(3, number))) == (3, number)
    assert make_letter(3, number).subject.startswith(filter_of(3).removesuffix("*"))


def test_letter_with_a_part_of_another_is_mixed_up() -> None:
    one, other = make_letter(1, 5), make_letter(1, 8)
    for mixed in (
        (other.subject, one.mark, other.data),
        (make_letter(2, 5).subject, one.mark, one.data),
        (one.subject, one.mark, other.data),
        (one.subject, None, one.data),
        (one.subject, one.mark, one.data[:-1]),
        (one.subject, one.mark, b""),
    ):
        with pytest.raises(MixedUpError):
            read_letter(*mixed)


def test_run_in_which_all_is_well_has_no_findings(story: Story) -> None:
    for sequence in story.held:
        story.deliver(sequence)
    assert story.judge() == []


def test_message_that_is_delivered_twice_is_found(story: Story) -> None:
    for sequence in (1, 2, 2, 3):
        story.deliver(sequence)
    assert story.judge() == ["order"]


def test_message_that_is_delivered_late_is_found(story: Story) -> None:
    for sequence in (1, 3, 2):
        story.deliver(sequence)
    assert "order" in story.judge()


def test_message_that_a_reader_never_got_is_found_when_another_got_it(story: Story) -> None:
    other = Sightings("other", story.content, story.findings)
    for sequence in (1, 2, 3, 4):
        story.deliver(sequence, other)
    for sequence in (1, 2, 4):
        story.deliver(sequence)
    assert story.judge() == ["gap"]


def test_end_of_a_read_that_came_too_early_is_found(story: Story) -> None:
    other = Sightings("other", story.content, story.findings)
    for sequence in story.held:
        story.deliver(sequence, other)
    story.deliver(1)
    story.reader.check_whole(5)
    assert [each.law for each in story.findings.kept] == ["gap"]


def test_filtered_reader_misses_only_what_its_filters_let_through(story: Story) -> None:
    for sequence in story.held:
        story.deliver(sequence)
    filtered = Sightings("filtered", story.content, story.findings, writers={1})
    story.deliver(1, filtered)
    story.deliver(5, filtered)
    filtered.check_whole()
    assert [each.text for each in story.findings.kept] == [
        "filtered: 1 messages were not delivered: 3"
    ]


def test_message_that_filters_should_hold_back_is_found(story: Story) -> None:
    filtered = Sightings("filtered", story.content, story.findings, writers={1})
    story.deliver(2, filtered)
    assert story.judge() == ["filter"]


def test_two_messages_at_one_sequence_are_found(story: Story) -> None:
    story.deliver(1)
    other = Sightings("other", story.content, story.findings)
    other.see(1, *make_letter(0, 2))
    assert story.judge() == ["content"]


def test_message_that_was_read_and_is_gone_in_the_end_is_found(story: Story) -> None:
    story.store(0, 6)
    story.deliver(6)
    del story.held[6]
    assert "content" in story.judge()


def test_acknowledged_message_that_is_not_stored_is_found(story: Story) -> None:
    del story.held[3]
    assert story.judge() == ["acknowledged"]


def test_acknowledged_message_that_is_stored_twice_is_found(story: Story) -> None:
    story.held[6] = story.held[2]
    assert story.judge() == ["acknowledged"]


def test_acknowledgement_with_a_wrong_sequence_is_found(story: Story) -> None:
    number = story.books[0].begin()
    story.books[0].acked(number, 7, duplicate=True)
    story.held[6] = identity_of(0, number)
    assert story.judge() == ["acknowledged"]


def test_refused_message_that_is_stored_is_found(story: Story) -> None:
    number = story.books[0].begin()
    story.books[0].refused(number)
    assert story.judge() == []
    story.held[6] = identity_of(0, number)
    assert story.judge() == ["acknowledged"]


@pytest.mark.parametrize(("copies", "broken"), [(0, 0), (1, 0), (2, 1)])
def test_message_of_unknown_fate_is_stored_once_at_most(
    story: Story, copies: int, broken: int
) -> None:
    number = story.books[0].begin()
    story.books[0].unknown(number)
    for sequence in range(6, 6 + copies):
        story.held[sequence] = identity_of(0, number)
    assert story.judge() == ["acknowledged"] * broken


def test_message_that_never_ended_is_found(story: Story) -> None:
    story.books[0].begin()
    assert story.judge() == ["acknowledged"]


def test_message_that_nobody_sent_is_found(story: Story) -> None:
    story.held[6] = identity_of(0, 77)
    story.held[7] = identity_of(9, 1)
    assert story.judge() == ["content", "content"]


def test_order_counts_only_for_writers_that_promise_it(story: Story) -> None:
    for writer in (0, 1):
        first, second = story.books[writer].begin(), story.books[writer].begin()
        at = 10 * (writer + 1)
        story.books[writer].acked(first, at + 1, duplicate=False)
        story.books[writer].acked(second, at, duplicate=False)
        story.held |= {at + 1: identity_of(writer, first), at: identity_of(writer, second)}
    assert story.judge() == ["order kept"]


def test_failed_message_does_not_count_for_the_order(story: Story) -> None:
    failed = story.books[1].begin()
    story.books[1].unknown(failed)
    story.store(1, 6)
    story.held[7] = identity_of(1, failed)
    assert story.judge() == []


def test_findings_are_all_counted_and_the_first_are_kept() -> None:
    told: list[str] = []
    findings = Findings(told.append)
    for number in range(FINDINGS_MAX + 10):
        findings.add("law", str(number))
    assert (findings.count, len(findings.kept), len(told)) == (
        FINDINGS_MAX + 10,
        FINDINGS_MAX,
        FINDINGS_MAX,
    )
