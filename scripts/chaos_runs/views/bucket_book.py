"""What was written to the keys of a bucket, and what everybody has seen of them; pure rules.

Law: each key has one owner, who writes one thing after the other. So what may stand in a key is
what its owner was acknowledged last, or an attempt that nobody knows about. What is wrong is
written down as a finding and never raised.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from scripts.chaos_runs.ledger import Findings

EXAMPLES = 5
_SIZE_STEP = 37
_SIZE_MAX = 400
# One in so many is larger than what one read of the socket brings.
_LARGE_EVERY = 97
_LARGE_BYTES = 40_000

Act: TypeAlias = Literal["put", "create", "update", "delete", "purge"]
Operation: TypeAlias = Literal["PUT", "DEL", "PURGE"]
End: TypeAlias = Literal["open", "acked", "refused", "unknown"]
"""What became of an attempt: under way, acknowledged, certainly not stored, or nobody knows."""

_STORED_AS: dict[Act, Operation] = {
    "put": "PUT",
    "create": "PUT",
    "update": "PUT",
    "delete": "DEL",
    "purge": "PURGE",
}


@dataclass(slots=True)
class Attempt:
    """One call that changes a key.

    Attributes:
        number: Counts up from 1, through all keys.
        key: The key.
        act: Which call.
        expects: The revision that it demands; None where it demands none that is known here.
        end: What became of it.
        revision: Where it stands: as acknowledged, or as seen; 0 while nobody knows.
        kills: How often the only server had been killed when it began.
    """

    number: int
    key: str
    act: Act
    expects: int | None
    end: End = "open"
    revision: int = 0
    kills: int = 0

    @property
    def operation(self) -> Operation:
        """What is stored of it."""
        return _STORED_AS[self.act]

    @property
    def is_possible(self) -> bool:
        """True when it may be stored though nobody was told so."""
        return self.end in ("open", "unknown")


@dataclass(frozen=True, slots=True)
class Seen:
    """One revision as somebody read it.

    Attributes:
        key: The key.
        revision: Its revision.
        operation: "PUT" for a value.
        value: The value; None where only its headers were asked for.
    """

    key: str
    revision: int
    operation: Operation
    value: bytes | None


def make_value(key: str, number: int) -> bytes:
    """Return the value that the attempt with this number writes to a key."""
    size = _LARGE_BYTES if number % _LARGE_EVERY == 0 else number * _SIZE_STEP % _SIZE_MAX
    return f"{key} {number} ".encode() + bytes((33 + number % 90,)) * size


def matches(pattern: str, key: str) -> bool:
    """Tell whether a filter of keys lets a key through, as the server's subjects do."""
    words, parts = pattern.split("."), key.split(".")
    for index, word in enumerate(words):
        if word == ">":
            return len(parts) > index
        if index >= len(parts) or word not in ("*", parts[index]):
            return False
    return len(words) == len(parts)


class BucketBook:
    """The book of one bucket.

    Args:
        findings: Where a broken promise is written down.
        name: The bucket's.
        brief: Keys that expire: what the server has stored in them is nobody's attempt.
        swept: Keys whose old markers somebody removes.

    Attributes:
        ends: How many attempts ended how.
        counts: Other figures.
    """

    def __init__(
        self,
        findings: Findings,
        *,
        name: str = "",
        brief: Collection[str] = (),
        swept: Collection[str] = (),
    ) -> None:
        self._findings = findings
        self._name = name
        self._brief = frozenset(brief)
        self._swept = frozenset(swept)
        self._attempts: list[Attempt] = []
        self._of_key: dict[str, list[Attempt]] = defaultdict(list)
        self._last_acked: dict[str, Attempt] = {}
        self._standing: dict[int, tuple[str, Operation]] = {}
        self._kills = 0
        self.ends: Counter[End] = Counter()
        self.counts: Counter[str] = Counter()

    # What owners write.

    def begin(self, key: str, act: Act, expects: int | None = None) -> Attempt:
        """Take down that a key is about to be changed."""
        attempt = Attempt(len(self._attempts) + 1, key, act, expects, kills=self._kills)
        self._attempts.append(attempt)
        self._of_key[key].append(attempt)
        return attempt

    def acked(self, attempt: Attempt, revision: int) -> None:
        """Take down an acknowledgement."""
        self._end(attempt, "acked")
        if attempt.revision not in (0, revision):
            self._add(
                "acknowledged", attempt, f"seen at {attempt.revision}, acknowledged at {revision}"
            )
        attempt.revision = revision
        self._stand(revision, attempt.key, attempt.operation, "its acknowledgement")
        last = self._last_acked.get(attempt.key)
        self._judge_grant(attempt, last)
        if last is not None and revision <= last.revision:
            self._add(
                "order", attempt, f"at {revision}, and {last.act} before it at {last.revision}"
            )
        self._last_acked[attempt.key] = attempt

    def refused(self, attempt: Attempt, *, by_key: bool = False) -> None:
        """Take down that an attempt is certainly not stored.

        Args:
            attempt: The attempt.
            by_key: The server said that the key holds something else than was demanded.
        """
        self._end(attempt, "refused")
        if attempt.revision:
            self._add("refused", attempt, f"and stored at {attempt.revision}")
        if by_key and not self._may_hold_another(attempt):
            last = self._last_acked.get(attempt.key)
            held = f"{last.act} at {last.revision}" if last is not None else "nothing"
            self._add("refused", attempt, f"demands {attempt.expects}, and the key holds {held}")

    def unknown(self, attempt: Attempt) -> None:
        """Take down that nobody knows whether an attempt is stored."""
        self._end(attempt, "unknown")

    def _end(self, attempt: Attempt, end: End) -> None:
        attempt.end = end
        self.ends[end] += 1

    def _judge_grant(self, attempt: Attempt, last: Attempt | None) -> None:
        """What demands something is not granted while the key holds something else."""
        if last is None or self._is_open(attempt.key, besides=attempt):
            return
        if attempt.act == "create" and last.operation == "PUT":
            self._add("demanded", attempt, f"granted over {last.act} at {last.revision}")
        if attempt.expects is not None and attempt.expects != last.revision:
            held = f"{last.act} at {last.revision}"
            text = f"{attempt.expects}, granted at {attempt.revision} over {held}"
            self._add("demanded", attempt, text)

    def _is_open(self, key: str, *, besides: Attempt | None = None) -> bool:
        """Tell whether a key may hold something else than its owner was acknowledged last."""
        last = self._last_acked.get(key)
        if key in self._brief or (last is not None and self._may_be_undone(last)):
            return True
        since = last.revision if last is not None else 0
        return any(
            each.is_possible and (not each.revision or each.revision > since)
            for each in self._of_key[key]
            if each is not besides
        )

    def _may_hold_another(self, attempt: Attempt) -> bool:
        """Tell whether the key may hold what makes the refusal of a demand right."""
        if self._is_open(attempt.key):
            return True
        last = self._last_acked.get(attempt.key)
        if attempt.act == "create":
            return last is not None and last.operation == "PUT"
        if last is not None and last.operation != "PUT" and attempt.key in self._swept:
            return True
        return attempt.expects != (last.revision if last is not None else 0)

    def is_swept(self, key: str) -> bool:
        """Tell whether somebody removes the markers of a key."""
        return key in self._swept

    def may_be_gone(self, key: str) -> bool:
        """Tell whether a key may have no value though its owner was acknowledged one."""
        return self._is_open(key)

    def last_acked(self, key: str) -> Attempt | None:
        """Return what a key's owner was acknowledged last."""
        return self._last_acked.get(key)

    # What a kill brings back.

    def note_kill(self) -> None:
        """Take down that the only server is killed.

        When it starts again it reads its files, and those do not say which revisions had to go
        because a key had too many. So what a marker had covered comes back where the marker itself
        was removed, and under a purge (nats-server issue 8505; on replicas it was not seen).
        """
        self._kills += 1

    def may_be_back(self, seen: Seen) -> bool:
        """Tell whether a kill may have brought back a revision that was gone."""
        return any(
            self._may_be_undone(each) and (not each.revision or each.revision > seen.revision)
            for each in self._of_key[seen.key]
        )

    def _may_be_undone(self, attempt: Attempt) -> bool:
        """Tell whether a kill may have brought back what an attempt has taken away."""
        is_removal = attempt.act == "purge" or (
            attempt.act == "delete" and attempt.key in self._swept
        )
        return is_removal and attempt.end != "refused" and attempt.kills < self._kills

    # What everybody sees.

    def see(self, seen: Seen, reader: str) -> None:
        """Compare one revision with what was written, and with what others have seen there."""
        if not self._stand(seen.revision, seen.key, seen.operation, reader):
            return
        if seen.operation == "PUT":
            self._see_value(seen, reader)
        elif seen.key not in self._brief:
            self._see_marker(seen, reader)

    def _stand(self, revision: int, key: str, operation: Operation, reader: str) -> bool:
        known = self._standing.setdefault(revision, (key, operation))
        if known != (key, operation):
            self._findings.add(
                "content", f"{reader}: {revision} was {known}, and is {(key, operation)} now"
            )
            return False
        return True

    def _see_value(self, seen: Seen, reader: str) -> None:
        if seen.value is None:
            return
        attempt = self._attempt_of(seen)
        if attempt is None:
            self._findings.add(
                "payload",
                f"{reader}: {seen.key} at {seen.revision} holds {seen.value[:40]!r}, "
                f"{len(seen.value)} bytes, which nobody has written there",
            )
        elif attempt.end == "refused":
            self._add("refused", attempt, f"{reader} has it at {seen.revision}")
        elif attempt.revision not in (0, seen.revision):
            word = "stored twice" if attempt.end != "acked" else "acknowledged"
            self._add(word, attempt, f"at {attempt.revision}, {reader} has it at {seen.revision}")
        else:
            attempt.revision = seen.revision

    def _attempt_of(self, seen: Seen) -> Attempt | None:
        assert seen.value is not None  # noqa: S101 - The caller has asked.
        try:
            key, number_text, _ = seen.value.split(b" ", 2)
            number = int(number_text)
        except ValueError:
            return None
        if key != seen.key.encode() or not 0 < number <= len(self._attempts):
            return None
        attempt = self._attempts[number - 1]
        is_whole = attempt.key == seen.key and seen.value == make_value(seen.key, number)
        return attempt if is_whole and attempt.operation == "PUT" else None

    def _see_marker(self, seen: Seen, reader: str) -> None:
        """A marker does not tell whose it is: one of its kind must be acknowledged, or possible."""
        if any(
            each.operation == seen.operation
            and (each.revision == seen.revision or (each.is_possible and not each.revision))
            for each in self._of_key[seen.key]
        ):
            return
        self._findings.add(
            "content",
            f"{reader}: {seen.key} has {seen.operation} at {seen.revision}, which nobody has made",
        )

    # At the end.

    def judge_newest(self, newest: Mapping[str, Seen]) -> None:
        """Compare the newest revision of each key, markers too, with what was acknowledged."""
        for key in newest.keys() - self._of_key.keys():
            self._findings.add("content", f"{key} is there, and nobody has written it")
        for key, attempts in self._of_key.items():
            problem = self._problem_of(key, attempts, newest.get(key))
            if problem:
                self._findings.add("acknowledged", f"{self._name} {key}: {problem}".strip())

    def _problem_of(self, key: str, attempts: Sequence[Attempt], now: Seen | None) -> str:
        last = self._last_acked.get(key)
        if now is not None:
            self.see(now, "the end")
        if key in self._brief:
            is_live = now is not None and now.operation == "PUT"
            return f"is there at {now.revision}, long expired" if is_live and now else ""
        revisions = (0, now.revision if now is not None else 0)
        is_possible = any(each.is_possible and each.revision in revisions for each in attempts)
        if now is None:
            if last is None:
                return ""
            may_be_gone = key in self._swept and (last.operation != "PUT" or is_possible)
            return "" if may_be_gone else f"{last.act} at {last.revision} is not there"
        if last is not None and now.revision < last.revision:
            if key in self._swept and self._may_be_undone(last):
                self.counts["values that a kill brought back"] += 1
                return ""
            return f"{last.act} was acknowledged at {last.revision}, found is {now.revision}"
        if last is not None and now.revision == last.revision:
            return ""
        if not is_possible:
            told = f"{last.act} at {last.revision}" if last is not None else "nothing"
            return f"holds {now.operation} at {now.revision}, acknowledged was {told}"
        self.counts["keys that end with what nobody was told of"] += 1
        return ""

    def judge_history(self, key: str, history: Sequence[Seen]) -> None:
        """Compare the kept revisions of a key, oldest first, with what was demanded of each."""
        found = {each.revision: each for each in history}
        for each in history:
            self.see(each, "history")
        if [*found] != sorted(found) or len(found) != len(history):
            self._findings.add("order", f"history of {key}: {[each.revision for each in history]}")
        before: Seen | None = None
        by_revision = {each.revision: each for each in self._of_key[key] if each.revision}
        # What is there though it was gone says nothing of what came behind it.
        for each in [each for each in history if not self.may_be_back(each)]:
            attempt = by_revision.get(each.revision)
            if before is not None and attempt is not None and attempt.end == "acked":
                self._judge_demand(attempt, before)
            before = each
        if history and key not in self._brief:
            self._judge_gaps(key, history)

    def _judge_gaps(self, key: str, history: Sequence[Seen]) -> None:
        """Nothing is lost behind the oldest kept revision, and a purge leaves nothing before it."""
        found = {each.revision for each in history}
        undone = [each.revision for each in self._of_key[key] if self._may_be_undone(each)]
        since = max(history[0].revision, *undone, 0)
        gone = [
            each.revision
            for each in self._of_key[key]
            if each.end == "acked" and each.revision > since and each.revision not in found
        ]
        if gone:
            self._findings.add(
                "acknowledged", f"history of {key}: {len(gone)} are not there: {gone[:EXAMPLES]}"
            )
        purged = max((each.revision for each in history if each.operation == "PURGE"), default=0)
        under = [
            each.revision
            for each in history
            if each.revision < purged and not self.may_be_back(each)
        ]
        if under:
            self._findings.add(
                "acknowledged", f"history of {key}: under the purge at {purged}: {under[:EXAMPLES]}"
            )

    def _judge_demand(self, attempt: Attempt, before: Seen) -> None:
        if attempt.act == "create" and before.operation == "PUT":
            self._add("demanded", attempt, f"stands behind a value at {before.revision}")
        if attempt.expects is not None and attempt.expects not in (0, before.revision):
            self._add("demanded", attempt, f"{attempt.expects}, stands behind {before.revision}")

    def _add(self, law: str, attempt: Attempt, text: str) -> None:
        where = f"{self._name} {attempt.key}".strip()
        self._findings.add(law, f"{attempt.act} {attempt.number} of {where}: {text}")
