"""The judge of the objects: every promise of a store that could be broken is found when it is."""

from __future__ import annotations

import pytest

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.views.object_book import ObjectBook, make_data


def laws_of(findings: Findings) -> list[str]:
    return [each.law for each in findings.kept]


class StoreStory:
    """What the owners of a store's objects did, told by hand."""

    def __init__(self) -> None:
        self.findings: Findings = Findings()
        self.book: ObjectBook = ObjectBook(self.findings)

    def put(self, name: str = "a", size: int = 5_000, *, is_known: bool = True) -> bytes:
        deal = self.book.begin(name, "put", size)
        self.book.end(deal, "acked" if is_known else "unknown")
        return make_data(name, deal.number, size)

    def delete(self, name: str = "a", *, is_known: bool = True) -> None:
        self.book.end(self.book.begin(name, "delete"), "acked" if is_known else "unknown")


def test_objects_as_they_were_put_have_no_finding() -> None:
    story = StoreStory()
    story.put()
    now = story.put()
    assert story.book.see("a", now, "reader") is not None
    assert story.book.see("a", now[4_000:4_100], "reader", offset=4_000) is not None
    story.book.judge({"a": now})
    assert laws_of(story.findings) == []


def test_acknowledged_object_that_is_gone_is_found() -> None:
    story = StoreStory()
    story.put()
    story.book.judge({"a": None})
    assert laws_of(story.findings) == ["acknowledged"]


def test_object_that_comes_back_is_found() -> None:
    story = StoreStory()
    old = story.put()
    story.put()
    story.book.judge({"a": old})
    assert laws_of(story.findings) == ["acknowledged"]


def test_deleted_object_that_is_there_is_found() -> None:
    story = StoreStory()
    old = story.put()
    story.delete()
    story.book.judge({"a": old})
    assert laws_of(story.findings) == ["acknowledged"]


def test_put_of_unknown_fate_may_be_there_or_not() -> None:
    story = StoreStory()
    known = story.put()
    lost = story.put(is_known=False)
    story.book.judge({"a": known})
    story.book.judge({"a": lost})
    assert laws_of(story.findings) == []


def test_delete_of_unknown_fate_may_have_happened() -> None:
    story = StoreStory()
    known = story.put()
    story.delete(is_known=False)
    story.book.judge({"a": known})
    story.book.judge({"a": None})
    assert laws_of(story.findings) == []


@pytest.mark.parametrize("part", [slice(0, 4_999), slice(0, 0), slice(1, None)])
def test_part_of_an_object_is_found(part: slice) -> None:
    story = StoreStory()
    now = story.put()
    story.book.see("a", now[part], "reader")
    assert laws_of(story.findings) == ["payload"]


def test_mix_of_two_objects_is_found() -> None:
    story = StoreStory()
    first, second = story.put(), story.put()
    story.book.see("a", first[:2_048] + second[2_048:], "reader")
    assert laws_of(story.findings) == ["payload"]


def test_swapped_chunks_are_found() -> None:
    story = StoreStory()
    now = story.put(size=8_192)
    story.book.see("a", now[:1_024] + now[2_048:3_072] + now[1_024:2_048] + now[3_072:], "reader")
    assert laws_of(story.findings) == ["payload"]


def test_range_from_another_place_is_found() -> None:
    story = StoreStory()
    now = story.put(size=8_192)
    story.book.see("a", now[1_024:2_048], "reader", offset=2_048)
    assert laws_of(story.findings) == ["payload"]


def test_bytes_of_another_name_are_found() -> None:
    story = StoreStory()
    now = story.put("a")
    story.put("b")
    story.book.see("b", now, "reader")
    assert laws_of(story.findings) == ["payload"]
