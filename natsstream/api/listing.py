"""Infos that come page by page, with the names that the list lacks.

Law: a stream, a consumer or a view without an info is never left out silently.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Generic, TypeVar

from natsstream.api.paging import Gaps, OnMissing

InfoT = TypeVar("InfoT")


class Listing(Generic[InfoT]):
    """The infos of streams or consumers, or the statuses of buckets or object stores.

    Read it with `async for`; the `list` methods return it. Each loop sends new requests.
    """

    def __init__(
        self, what: str, on_missing: OnMissing, infos: Callable[[Gaps], AsyncGenerator[InfoT]]
    ) -> None:
        self._what = what
        self._on_missing: OnMissing = on_missing
        self._infos = infos
        self._gaps = Gaps(what, on_missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names whose servers have not answered in time, in the loop so far."""
        return self._gaps.missing

    @property
    def offline(self) -> Mapping[str, str]:
        """Names that no server can run now, with the reason, such as a field that is too new."""
        return self._gaps.offline

    def __aiter__(self) -> AsyncGenerator[InfoT]:
        self._gaps = Gaps(self._what, self._on_missing)
        return self._infos(self._gaps)

    def __repr__(self) -> str:
        return f"<Listing of {self._what}>"
