"""The judges of the views' crew: every promise that could be broken is found when it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.views.bucket_book import (
    Act,
    Attempt,
    BucketBook,
    Seen,
    make_value,
    matches,
)
from scripts.chaos_runs.views.lock_book import LockBook
from scripts.chaos_runs.views.watch_book import WatchBook


class BucketStory:
    """What a bucket's owners did, told by hand."""

    def __init__(self, *, brief: Sequence[str] = (), swept: Sequence[str] = ()) -> None:
        self.findings: Findings = Findings()
        self.book: BucketBook = BucketBook(self.findings, brief=brief, swept=swept)
        self.revision: int = 0

    def write(self, key: str, act: Act = "put", expects: int | None = None) -> Seen:
        """Let an owner write something that is acknowledged."""
        attempt = self.book.begin(key, act, expects)
        self.revision += 1
        self.book.acked(attempt, self.revision)
        return seen_of(attempt, self.revision)

    def lose(self, key: str, act: Act = "put") -> Attempt:
        """Let an owner write something that nobody knows about."""
        attempt = self.book.begin(key, act)
        self.book.unknown(attempt)
        return attempt

    @property
    def laws(self) -> list[str]:
        """What was found."""
        return [each.law for each in self.findings.kept]


def seen_of(attempt: Attempt, revision: int) -> Seen:
    is_value = attempt.operation == "PUT"
    value = make_value(attempt.key, attempt.number) if is_value else b""
    return Seen(attempt.key, revision, attempt.operation, value)


@pytest.mark.parametrize(
    ("pattern", "key", "is_match"),
    [
        ("a", "a", True),
        ("a", "a.b", False),
        ("a.*", "a.b", True),
        ("a.*", "a", False),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*.b", "a.b", True),
        ("*.b", "a.c", False),
    ],
)
def test_filters_let_keys_through_as_subjects_do(pattern: str, key: str, *, is_match: bool) -> None:
    assert matches(pattern, key) is is_match


def test_story_that_keeps_every_promise_has_no_finding() -> None:
    story = BucketStory()
    first = story.write("a", "create")
    second = story.write("a", "update", expects=first.revision)
    other = story.write("b")
    story.book.see(second, "reader")
    story.book.judge_history("a", [first, second])
    story.book.judge_newest({"a": second, "b": other})
    assert story.laws == []


def test_acknowledged_write_that_is_not_there_is_found() -> None:
    story = BucketStory()
    story.write("a")
    story.book.judge_newest({})
    assert story.laws == ["acknowledged"]


def test_older_revision_than_the_acknowledged_one_is_found() -> None:
    story = BucketStory()
    old = story.write("a")
    story.write("a")
    story.book.judge_newest({"a": old})
    assert story.laws == ["acknowledged"]


def test_write_of_unknown_fate_may_be_there_or_not() -> None:
    story = BucketStory()
    known = story.write("a")
    lost = story.lose("a")
    story.book.judge_newest({"a": known})
    story.book.judge_newest({"a": seen_of(lost, 7)})
    assert story.laws == []
    assert story.book.counts["keys that end with what nobody was told of"] == 1


def test_marker_that_nobody_made_is_found() -> None:
    story = BucketStory()
    story.write("a")
    story.book.judge_newest({"a": Seen("a", 9, "DEL", b"")})
    assert "content" in story.laws


def test_value_that_comes_back_after_its_deletion_is_found() -> None:
    story = BucketStory()
    value = story.write("a")
    story.write("a", "delete")
    story.book.judge_newest({"a": value})
    assert story.laws == ["acknowledged"]


def test_swept_marker_may_be_gone_but_no_other_may() -> None:
    story = BucketStory(swept=["a"])
    story.write("a", "delete")
    story.write("b", "delete")
    story.book.judge_newest({})
    assert [str(each) for each in story.findings.kept] == [
        "acknowledged: b: delete at 2 is not there"
    ]


def test_swept_value_is_found() -> None:
    story = BucketStory(swept=["a"])
    story.write("a", "delete")
    story.write("a", "create")
    story.book.judge_newest({})
    assert story.laws == ["acknowledged"]


def test_brief_key_that_outlives_its_time_is_found() -> None:
    story = BucketStory(brief=["a"])
    value = story.write("a", "create")
    story.book.judge_newest({"a": Seen("a", 5, "PURGE", b"")})
    assert story.laws == []
    story.book.judge_newest({"a": value})
    assert story.laws == ["acknowledged"]


def test_create_over_a_value_is_found() -> None:
    story = BucketStory()
    story.write("a")
    story.write("a", "create")
    assert story.laws == ["demanded"]


def test_update_over_another_revision_is_found() -> None:
    story = BucketStory()
    story.write("a")
    story.write("a")
    story.write("a", "update", expects=1)
    assert story.laws == ["demanded"]


def test_update_that_stands_behind_another_revision_is_found_in_the_history() -> None:
    story = BucketStory()
    first = story.write("a")
    lost = story.lose("a")
    story.revision += 1
    third = story.write("a", "update", expects=first.revision)
    story.book.judge_history("a", [first, seen_of(lost, 2), third])
    assert story.laws == ["demanded"]


def test_refusal_without_a_reason_is_found() -> None:
    story = BucketStory()
    value = story.write("a")
    story.book.refused(story.book.begin("a", "update", value.revision), by_key=True)
    story.book.refused(story.book.begin("b", "create"), by_key=True)
    assert story.laws == ["refused", "refused"]


def test_refusal_is_right_when_an_unknown_write_may_be_there() -> None:
    story = BucketStory()
    value = story.write("a")
    story.lose("a")
    story.book.refused(story.book.begin("a", "update", value.revision), by_key=True)
    assert story.laws == []


def test_refusal_is_right_when_the_demanded_marker_may_be_swept_away() -> None:
    story = BucketStory(swept=["a"])
    for key in ("a", "b"):
        marker = story.write(key, "delete")
        story.book.refused(story.book.begin(key, "update", marker.revision), by_key=True)
    assert [str(each) for each in story.findings.kept] == [
        "refused: update 4 of b: demands 2, and the key holds delete at 2"
    ]


def test_refused_write_that_is_stored_is_found() -> None:
    story = BucketStory()
    attempt = story.book.begin("a", "put")
    story.book.refused(attempt)
    story.book.see(seen_of(attempt, 3), "reader")
    assert story.laws == ["refused"]


def test_write_that_is_stored_twice_is_found() -> None:
    story = BucketStory()
    lost = story.lose("a")
    story.book.see(seen_of(lost, 3), "reader")
    story.book.see(seen_of(lost, 4), "reader")
    assert story.laws == ["stored twice"]


def test_revision_that_two_readers_see_differently_is_found() -> None:
    story = BucketStory()
    value = story.write("a")
    story.book.see(replace(value, key="b"), "reader")
    assert story.laws == ["content"]


@pytest.mark.parametrize("value", [b"", b"a 1 x", b"b 1 ", b"a 99 "])
def test_value_that_nobody_wrote_is_found(value: bytes) -> None:
    story = BucketStory()
    written = story.write("a")
    story.book.see(replace(written, value=value), "reader")
    assert story.laws == ["payload"]


def test_acknowledged_revision_that_history_skips_is_found() -> None:
    story = BucketStory()
    first, _, third = story.write("a"), story.write("a"), story.write("a")
    story.book.judge_history("a", [first, third])
    assert story.laws == ["acknowledged"]


def test_revision_under_a_purge_is_found() -> None:
    story = BucketStory()
    old, purge = story.write("a"), story.write("a", "purge")
    story.book.judge_history("a", [old, purge])
    assert story.laws == ["acknowledged"]


# A single server that was killed brings back what a removed marker had covered.


def test_value_that_a_kill_brings_back_over_a_swept_marker_is_excused() -> None:
    story = BucketStory(swept=["a"])
    watch = watch_of(story)
    watch.begin_at(0)
    old = story.write("a")
    watch.follow()
    watch.see(old)
    watch.see(story.write("a", "delete"))
    story.book.note_kill()
    story.book.judge_newest({"a": old})
    story.book.judge_history("a", [old])
    watch.judge({"a": old}, [old])
    story.write("a", "update", expects=old.revision)
    assert story.laws == []


@pytest.mark.parametrize("act", ["delete", "put"])
def test_value_that_comes_back_without_a_kill_after_its_removal_is_found(act: Act) -> None:
    story = BucketStory(swept=["a"])
    old = story.write("a")
    story.book.note_kill()
    story.write("a", act)
    story.book.judge_newest({"a": old})
    assert story.laws == ["acknowledged"]


def test_value_that_a_kill_brings_back_over_a_kept_marker_is_found() -> None:
    story = BucketStory()
    old = story.write("a")
    story.write("a", "delete")
    story.book.note_kill()
    story.book.judge_newest({"a": old})
    story.write("a", "update", expects=old.revision)
    assert story.laws == ["acknowledged", "demanded"]


def test_history_that_a_kill_brings_back_under_a_purge_is_excused() -> None:
    story = BucketStory()
    old, held = story.write("a"), story.write("a")
    purge = story.write("a", "purge", expects=held.revision)
    story.book.note_kill()
    new = story.write("a", "create")
    late = watch_of(story)
    late.begin_at(0)
    late.follow()
    late.see(purge)
    late.see(new)
    story.book.judge_history("a", [old, purge, new])
    late.judge({"a": new}, [old, purge, new])
    assert story.laws == []
    story.write("a")
    story.book.judge_history("a", [old, purge, new, story.write("a")])
    assert story.laws == ["acknowledged"]


# Watches.


def watch_of(
    story: BucketStory, *, filters: Sequence[str] = (), ignores_deletes: bool = False
) -> WatchBook:
    return WatchBook(
        "watch", story.book, story.findings, filters=filters, ignores_deletes=ignores_deletes
    )


def test_watch_that_gives_everything_once_has_no_finding() -> None:
    story = BucketStory()
    watch = watch_of(story)
    watch.begin_at(0)
    all_seen = [story.write("a"), story.write("b"), story.write("a", "delete")]
    for each in all_seen:
        watch.see(each)
    watch.judge({"a": all_seen[2], "b": all_seen[1]}, all_seen)
    assert story.laws == []
    assert watch.last == 3


def test_revision_that_a_watch_repeats_is_found() -> None:
    story = BucketStory()
    watch, value = watch_of(story), story.write("a")
    watch.see(value)
    watch.see(value)
    assert story.laws == ["order"]


def test_revision_that_a_watch_misses_is_found_though_its_fold_is_right() -> None:
    story = BucketStory()
    watch = watch_of(story)
    watch.begin_at(0)
    first, second = story.write("a"), story.write("a")
    watch.see(second)
    watch.judge({"a": second}, [first, second])
    assert story.laws == ["gap"]


def test_what_was_stored_before_a_watch_began_it_may_leave_out() -> None:
    story = BucketStory()
    watch = watch_of(story)
    first, second = story.write("a"), story.write("a")
    watch.see(second)
    watch.follow()
    third = story.write("b")
    watch.see(third)
    watch.judge({"a": second, "b": third}, [first, second, third])
    assert story.laws == []


def test_what_a_watch_misses_once_it_follows_is_found() -> None:
    story = BucketStory()
    watch = watch_of(story)
    watch.follow()
    all_seen = [story.write("a"), story.write("a"), story.write("a")]
    watch.see(all_seen[0])
    watch.see(all_seen[2])
    watch.judge({"a": all_seen[2]}, all_seen)
    assert story.laws == ["gap"]


def test_watch_that_was_left_is_judged_as_far_as_it_came() -> None:
    story = BucketStory()
    watch = watch_of(story)
    watch.begin_at(0)
    all_seen = [story.write("a"), story.write("a"), story.write("a")]
    watch.see(all_seen[0])
    watch.judge_part(all_seen)
    assert story.laws == []
    watch.see(all_seen[2])
    watch.judge_part(all_seen)
    assert story.laws == ["gap"]


def test_watch_with_updates_only_need_not_know_what_was_before() -> None:
    story = BucketStory()
    watch = WatchBook("watch", story.book, story.findings, has_no_initial=True)
    old = story.write("a")
    watch.follow()
    new = story.write("b")
    watch.see(new)
    watch.judge({"a": old, "b": new}, [old, new])
    assert story.laws == []


def test_key_that_is_alive_in_a_fold_alone_is_found() -> None:
    story = BucketStory()
    watch = watch_of(story)
    watch.follow()
    value = story.write("a")
    marker = story.write("a", "delete")
    watch.see(value)
    watch.judge({"a": marker}, [])
    assert story.laws == ["fold"]


def test_key_outside_of_the_filters_is_found() -> None:
    story = BucketStory()
    watch = watch_of(story, filters=["a.*"])
    watch.see(story.write("b.c"))
    assert story.laws == ["filter"]


def test_marker_in_a_watch_that_ignores_them_is_found() -> None:
    story = BucketStory()
    watch = watch_of(story, ignores_deletes=True)
    watch.begin_at(0)
    watch.see(story.write("a"))
    assert story.laws == []
    watch.see(story.write("a", "delete"))
    assert story.laws == ["filter"]


# Locks.


@pytest.fixture
def findings() -> Findings:
    return Findings()


def laws_of(findings: Findings) -> list[str]:
    return [each.law for each in findings.kept]


def test_holders_one_after_the_other_have_no_finding(findings: Findings) -> None:
    book = LockBook("lock", findings)
    for token in (3, 8):
        book.acquired("one", token)
        book.held("one", token)
        book.left(token, "released")
    assert laws_of(findings) == []


def test_holder_that_goes_on_after_another_has_begun_is_found(findings: Findings) -> None:
    book = LockBook("lock", findings)
    book.acquired("one", 3)
    book.acquired("two", 5)
    book.held("one", 3)
    assert laws_of(findings) == ["two holders"]


@pytest.mark.parametrize("token", [3, 2])
def test_token_that_does_not_grow_is_found(findings: Findings, token: int) -> None:
    book = LockBook("lock", findings)
    book.acquired("one", 3)
    book.acquired("two", token)
    assert laws_of(findings) == ["token"]


def test_holder_that_believes_what_it_has_left_is_found(findings: Findings) -> None:
    book = LockBook("lock", findings)
    book.acquired("one", 3)
    book.left(3, "lost")
    book.held("one", 3)
    assert laws_of(findings) == ["two holders"]


def test_guarded_write_behind_that_of_a_later_holder_is_found(findings: Findings) -> None:
    book = LockBook("lock", findings)
    book.wrote(5, 12)
    book.wrote(3, 10)
    book.judge()
    assert laws_of(findings) == []
    book.wrote(3, 13)
    book.judge()
    assert laws_of(findings) == ["fence"]
