"""What one watch of a bucket has delivered; pure rules.

Law: a watch gives each revision once, in ascending order; what is in the bucket at the end and was
stored after its begin, it has given, unless its options say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.views.bucket_book import EXAMPLES, BucketBook, Seen, matches


class WatchBook:
    """The book of one watch, or of several that each resume where the one before ended.

    Args:
        name: For findings.
        bucket: What everybody has seen of the bucket.
        findings: Where a broken promise is written down.
        filters: Of keys; none for all.
        ignores_deletes: It gives no markers.
        has_no_initial: It gives only what is stored after its begin.

    Attributes:
        name: As given.
        count: How many revisions it gave.
        last: The newest of them; 0 before the first.
    """

    def __init__(
        self,
        name: str,
        bucket: BucketBook,
        findings: Findings,
        *,
        filters: Sequence[str] = (),
        ignores_deletes: bool = False,
        has_no_initial: bool = False,
    ) -> None:
        self.name: str = name
        self.count: int = 0
        self.last: int = 0
        self._bucket = bucket
        self._findings = findings
        self._filters = filters
        self._ignores_deletes = ignores_deletes
        self._has_no_initial = has_no_initial
        self._is_caught_up = False
        self._since: int | None = None
        self._revisions: set[int] = set()
        self._newest: dict[str, Seen] = {}

    def see(self, seen: Seen) -> None:
        """Take down one revision."""
        self._bucket.see(seen, self.name)
        if self._is_caught_up or self._has_no_initial:
            self.begin_at(seen.revision)
        if seen.revision <= self.last:
            word = "again" if seen.revision in self._revisions else "late"
            self._findings.add("order", f"{self.name}: {seen.revision} came {word}: {self.last}")
            return
        if not self._lets_through(seen.key):
            self._findings.add("filter", f"{self.name}: got {seen.key} at {seen.revision}")
        if self._ignores_deletes and seen.operation != "PUT":
            self._findings.add("filter", f"{self.name}: got {seen.operation} of {seen.key}")
        self.count += 1
        self.last = seen.revision
        self._revisions.add(seen.revision)
        self._newest[seen.key] = seen

    def begin_at(self, revision: int) -> None:
        """Take down that it has to give everything behind a revision; the first call counts."""
        if self._since is None:
            self._since = revision

    def follow(self) -> None:
        """Take down that it is caught up: from the next revision on it gives all, as it comes."""
        self._is_caught_up = True

    def _lets_through(self, key: str) -> bool:
        return not self._filters or any(matches(each, key) for each in self._filters)

    def wants(self, seen: Seen) -> bool:
        """Tell whether its options let a revision through."""
        is_hidden = self._ignores_deletes and seen.operation != "PUT"
        return self._lets_through(seen.key) and not is_hidden

    def judge(self, newest: Mapping[str, Seen], kept: Sequence[Seen]) -> None:
        """Compare it with the bucket; call it when everything was given.

        Args:
            newest: The newest revision of each key of the bucket, markers too.
            kept: Every revision that the bucket holds.
        """
        self._judge_gap(kept, max((each.revision for each in kept), default=0))
        if self._is_caught_up:
            self._judge_fold(newest)

    def judge_part(self, kept: Sequence[Seen]) -> None:
        """Compare one that was left before the end, as far as it came."""
        self._judge_gap(kept, self.last)

    def _judge_gap(self, kept: Sequence[Seen], until: int) -> None:
        if self._since is None:
            return
        missing = [
            each.revision
            for each in kept
            if self._since < each.revision <= until
            and each.revision not in self._revisions
            and self.wants(each)
            and not self._bucket.may_be_back(each)
        ]
        if missing:
            self._findings.add(
                "gap",
                f"{self.name}, since {self._since}: {len(missing)} revisions that are still there "
                f"were not given: {missing[:EXAMPLES]}",
            )

    def _judge_fold(self, newest: Mapping[str, Seen]) -> None:
        """Each key stands in the fold as in the bucket; what is gone from there is gone here."""
        wrong: list[str] = []
        for key in newest.keys() | self._newest.keys():
            if not self._lets_through(key):
                continue
            here, there = self._newest.get(key), newest.get(key)
            held, found = _live(here), _live(there)
            if self._ignores_deletes and not found:
                continue
            # Its marker may have been swept away while the watch was cut off: nobody can know.
            if not found and self._bucket.is_swept(key) and key not in newest:
                continue
            # A server that was killed has brought it back, and nobody is told of that.
            if there is not None and self._bucket.may_be_back(there):
                continue
            # One that began with updates only has not been told of what was there before.
            is_told = not self._has_no_initial or here is not None
            if held != found and (is_told or found > (self._since or found)):
                wrong.append(f"{key} is {held or 'gone'}, in the bucket {found or 'gone'}")
        for text in wrong[:EXAMPLES]:
            self._findings.add("fold", f"{self.name}: {text}")


def _live(seen: Seen | None) -> int:
    """Return the revision of a value, 0 for none and for a marker."""
    return seen.revision if seen is not None and seen.operation == "PUT" else 0
