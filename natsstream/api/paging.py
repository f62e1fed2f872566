"""Lists that come page by page, and the names in them that servers cannot describe.

Law: a name that the servers cannot describe is never left out in silence.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from natsstream.arguments import check_choice
from natsstream.errors import ProtocolError, UnavailableError

if TYPE_CHECKING:
    from natsstream.api.requests import Api
    from natsstream.fields import Fields

OnMissing: TypeAlias = Literal["raise", "report"]
_SHOWN_MAX = 5


async def pages(
    api: Api,
    api_subject: str,
    body: Mapping[str, object],
    *,
    what: str,
    names: Callable[[Fields], Collection[str]],
    at_first: Mapping[str, object] | None = None,
) -> AsyncGenerator[Fields]:
    """Yield the answers to a list request, one for each page.

    The servers sort by name and keep nothing between two pages: a stream or a consumer that is
    created or deleted meanwhile may be listed or not.

    Args:
        api: The connection's API.
        api_subject: The API subject of the list.
        body: The JSON of the request, without the offset.
        what: Name of the list, for errors.
        names: Returns the names on a page.
        at_first: Extra JSON of the first request.

    Raises:
        ProtocolError: A page repeats, or is empty before the end, so the list would never end.
    """
    offset = 0
    seen: set[int] = set()
    while True:
        asked = {**body, **({} if offset else at_first or {}), "offset": offset}
        answer = await api.read(api_subject, asked, what=what)
        # Names that the servers cannot describe count in the offset as well.
        named = frozenset((*names(answer), *answer.texts("missing"), *answer.words("offline")))
        page = hash(named)
        size, total = answer.count("limit") or len(named), answer.count("total")
        has_more = offset + size < total
        if page in seen or (has_more and not named):
            raise ProtocolError(
                f"{what}: the page at {offset} has nothing new, but the list has {total}"
            )
        seen.add(page)
        yield answer
        offset += size
        if not has_more:
            return


def listed_streams(answer: Fields) -> list[str]:
    """Return the names of the streams on a page of infos."""
    return [each.part("config").text("name") for each in answer.parts("streams")]


class Gaps:
    """The names that a list lacks so far.

    Args:
        what: Name of the list, for errors.
        on_missing: "raise" makes `check` raise.

    Attributes:
        missing: Names whose servers did not answer in time.
        offline: Names that no server can run now, with the reason.

    Raises:
        ConfigError: `on_missing` is neither "raise" nor "report".
    """

    def __init__(self, what: str, on_missing: OnMissing) -> None:
        check_on_missing(on_missing)
        self.missing: tuple[str, ...] = ()
        self.offline: Mapping[str, str] = {}
        self._what = what
        self._raises = on_missing == "raise"
        self._named: list[str] = []

    def add(self, answer: Fields) -> None:
        """Add the gaps of a page."""
        self._named += answer.texts("missing")
        self.offline = {**self.offline, **answer.words("offline")}
        # An offline one did not answer either; its reason says more.
        self.missing = tuple(name for name in self._named if name not in self.offline)

    async def gathered(self, answers: AsyncGenerator[Fields]) -> AsyncGenerator[Fields]:
        """Yield the pages of a list and gather what they lack; raise as `check` does at the end."""
        async for answer in answers:
            self.add(answer)
            yield answer
        self.check()

    def check(self) -> None:
        """Raise if the list lacks names and `on_missing` is "raise"; for the end of the list.

        Raises:
            UnavailableError: The list lacks names.
        """
        if self._raises:
            check_whole(self._what, self.missing, self.offline)


def check_on_missing(on_missing: object) -> None:
    """Refuse another value of `on_missing`.

    Raises:
        ConfigError: The value is neither "raise" nor "report".
    """
    check_choice(on_missing, "on_missing", ("raise", "report"))


def check_whole(what: str, missing: Sequence[str], offline: Mapping[str, str]) -> None:
    """Raise if a list lacks names.

    Args:
        what: Name of the list.
        missing: Names whose servers did not answer in time.
        offline: Names that no server can run now, with the reason.

    Raises:
        UnavailableError: The list lacks names.
    """
    names = [*missing, *offline]
    if not names:
        return
    shown = ", ".join(names[:_SHOWN_MAX]) + (", ..." if len(names) > _SHOWN_MAX else "")
    raise UnavailableError(
        f"the list of {what} lacks {len(names)}: {shown}",
        detail="; ".join(f"{name}: {why}" for name, why in list(offline.items())[:1]),
        hint="check their servers; list(on_missing='report') skips them and names them in "
        "`missing` and `offline`",
        retryable=not offline,
    )
