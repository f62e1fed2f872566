"""The judges of the crew on core streams find each promise that is broken."""

from __future__ import annotations

import pytest

from scripts.chaos_runs.cores.core_book import ClientBook, CoreBook, Told, brief
from scripts.chaos_runs.cores.layer_book import LogBook, MapBook
from scripts.chaos_runs.ledger import Findings


class CoreStory:
    """What was written to a core stream and told to one client, by hand."""

    def __init__(self) -> None:
        self.findings: Findings = Findings()
        self.book: CoreBook = CoreBook(self.findings)
        self.client: ClientBook = ClientBook("client", self.book, self.findings)

    def store(self, seq: int, key: str | None = None, *, expires: bool = False) -> Told:
        """Let somebody write a message that is acknowledged."""
        value = f"w-{seq}"
        self.book.send(key, value, expires=expires)
        self.book.ack(seq, key, value, expires=expires)
        return Told(seq, key, value)

    def tell(self, seq: int, key: str | None = None, prev: str | None = None) -> None:
        """Let the client be told of it."""
        self.client.take(Told(seq, key, f"w-{seq}", prev))

    @property
    def laws(self) -> list[str]:
        """What was found."""
        return [each.law for each in self.findings.kept]


@pytest.fixture
def story() -> CoreStory:
    """Two messages without a key and three of one key, all of them told."""
    made = CoreStory()
    for seq, key in enumerate((None, "a", "a", None, "a"), 1):
        made.store(seq, key)
    made.tell(1)
    made.tell(2, "a")
    made.tell(3, "a", "w-2")
    made.tell(4)
    made.tell(5, "a", "w-3")
    return made


def test_all_is_well(story: CoreStory) -> None:
    story.book.judge([Told(1, None, "w-1"), Told(4, None, "w-4"), Told(5, "a", "w-5")])
    story.client.judge()
    story.client.compare([1, 4, 5])
    assert story.laws == []


def test_values_are_kept_short() -> None:
    assert brief("x" * 100) == "x" * 40 + "~100"
    assert brief("x") == "x"
    assert brief(None) is None


def test_lost_messages_are_found(story: CoreStory) -> None:
    story.book.judge([Told(4, None, "w-4")])
    assert story.laws == ["acknowledged"] * 4


def test_removed_and_expired_messages_are_not_lost(story: CoreStory) -> None:
    story.store(6, expires=True)
    story.book.deleted.add(5)
    story.book.purged = 1
    story.book.judge([Told(4, None, "w-4")])
    assert story.laws == []


@pytest.mark.parametrize(("key", "laws"), [("a", []), ("b", ["acknowledged"] * 3)])
def test_a_write_without_an_ack_may_have_replaced_others_and_expired(
    story: CoreStory, key: str, laws: list[str]
) -> None:
    story.book.send(key, "w-6", expires=True)
    story.book.judge([Told(1, None, "w-1"), Told(4, None, "w-4")])
    assert story.laws == laws


def test_a_write_that_expires_excuses_none_behind_it(story: CoreStory) -> None:
    story.store(6, "a", expires=True)
    story.store(7, "a")
    story.book.judge([Told(1, None, "w-1"), Told(4, None, "w-4")])
    assert story.laws == ["acknowledged"]


def test_another_value_is_found(story: CoreStory) -> None:
    story.book.judge([Told(1, None, "w-4"), Told(4, None, "w-4"), Told(5, "a", "w-5")])
    assert story.laws == ["content"]


def test_two_messages_with_one_sequence_are_found(story: CoreStory) -> None:
    story.store(4)
    assert story.laws == ["acknowledged"]


@pytest.mark.parametrize("seq", [5, 4])
def test_changes_that_are_told_twice_or_late_are_found(story: CoreStory, seq: int) -> None:
    story.tell(seq, "a" if seq == 5 else None, "w-5" if seq == 5 else None)
    assert "order" in story.laws


def test_messages_that_were_never_told_are_found(story: CoreStory) -> None:
    story.store(6)
    story.client.judge()
    assert story.laws == ["once"]


def test_a_removal_of_nothing_is_found(story: CoreStory) -> None:
    story.client.take(Told(1, is_removal=True))
    story.client.take(Told(1, is_removal=True))
    assert story.laws == ["once"]


def test_a_wrong_value_before_is_found(story: CoreStory) -> None:
    story.store(6, "a")
    story.tell(6, "a", "w-3")
    assert story.laws == ["previous"]


def test_what_nobody_sent_is_found(story: CoreStory) -> None:
    story.client.take(Told(6, None, "w-77"))
    story.client.take(Told(7, None, "w-5"))  # Of a key.
    assert story.laws == ["content", "content"]


def test_unseen_values_that_are_not_marked_are_found(story: CoreStory) -> None:
    story.store(6, "a")
    story.store(7, "a")
    story.tell(7, "a", "w-5")
    story.client.judge()
    assert story.laws == ["conflated"]


def test_a_mark_without_unseen_values_is_found(story: CoreStory) -> None:
    story.store(6, "a")
    story.client.take(Told(6, "a", "w-6", "w-5", is_conflated=True))
    story.client.take(Told(7, None, None, is_conflated=True))
    story.client.judge()
    assert story.laws == ["conflated", "conflated"]


def test_arrays_that_are_not_what_was_told_are_found(story: CoreStory) -> None:
    story.client.compare([1, 4])
    assert story.laws == ["arrays"]


def test_lies_about_a_map_are_found() -> None:
    findings = Findings()
    book = MapBook(findings)
    book.wanted = {"k": "w-2"}
    for number in (1, 2):
        book.take("client", "k", f"w-{number}")
    book.compare("client", {"k": "w-2"})
    book.take("owner", "k", "w-2")
    book.take("owner", "k", "w-2", is_owner=True)
    assert findings.count == 0

    book.take("client", "k", "w-2")
    book.compare("client", {})
    book.take("client", "k", None)
    book.compare("client", {"k": "w-2"})
    assert [each.law for each in findings.kept] == ["order", "acknowledged", "once"]


@pytest.mark.parametrize(
    ("held", "laws"),
    [
        (["w-1", "w-2", "v-1"], []),
        (["w-2", "w-1", "v-1"], ["acknowledged", "once"]),
        (["w-1", "v-1"], ["acknowledged", "once"]),
        (["w-1", "w-2", "w-2", "v-1"], ["acknowledged", "once"]),
        (["w-1", "v-1", "w-2"], ["once"]),
    ],
)
def test_lies_about_a_log_are_found(held: list[str], laws: list[str]) -> None:
    findings = Findings()
    book = LogBook(findings)
    for value in ("w-1", "w-2", "v-1"):
        book.write(value[0], value)
        book.take("client", value)
    book.compare("client", held)
    assert [each.law for each in findings.kept] == laws
