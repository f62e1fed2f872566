"""Each key once, in a listing that reads while others write; pure rules.

Law: a listing keeps 8 bytes a key while each key can come only once. It keeps some 80 bytes a key
once keys can come again: when others write while it reads. It keeps hashes of 64 bits: two of a
million keys share one in one of 40 million listings, and only one of them is listed then.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence


class KeysOnce:
    """Chooses the keys that a listing has not yielded yet.

    Args:
        horizon: The bucket's last revision when the listing began.
    """

    def __init__(self, horizon: int) -> None:
        self._horizon = horizon
        self._hashes = array("q")
        self._seen: set[int] | None = None

    def choose(self, keys: Sequence[str], *, first: int) -> list[int]:
        """Return which of the keys come for the first time, as indexes.

        Args:
            keys: Keys that have a value, in the order of their revisions.
            first: The revision of the first one; all of them are on the same side of the horizon.
        """
        if self._seen is None and first <= self._horizon:
            self._hashes.extend(map(hash, keys))
            return list(range(len(keys)))
        if self._seen is None:
            self._seen = set(self._hashes)
            self._hashes = array("q")
        seen, chosen = self._seen, list[int]()
        for index, key in enumerate(keys):
            if (hashed := hash(key)) not in seen:
                seen.add(hashed)
                chosen.append(index)
        return chosen
