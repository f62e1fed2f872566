"""Pages of a list: all of them, and an end where a server has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream.api.paging import pages
from natsstream.errors import ProtocolError
from natsstream.fields import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.asyncio

Page = dict[str, Any]


class Told:
    """Answers as a test says, and counts the questions."""

    def __init__(self, answer: Callable[[int], Page]) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, object]] = []

    async def read(self, _: str, body: Mapping[str, object], *, what: str) -> Fields:
        """Answer a question."""
        self.asked.append(body)
        offset = body["offset"]
        assert isinstance(offset, int)
        return Fields(self.answer(offset), what)


async def names(told: Told, **more: Any) -> list[str]:
    """Return all names of a list."""
    found: list[str] = []
    api: Any = told
    question = pages(api, "s", {}, what="names", names=lambda page: page.texts("n"), **more)
    async for page in question:
        found += page.texts("n")
    return found


async def test_every_page_is_asked_for_once() -> None:
    all_names = [f"n{number:03}" for number in range(250)]
    told = Told(lambda at: {"n": all_names[at : at + 100], "limit": 100, "total": 250})

    assert await names(told, at_first={"details": True}) == all_names
    assert told.asked == [{"details": True, "offset": 0}, {"offset": 100}, {"offset": 200}]


async def test_a_list_without_anything_ends() -> None:
    assert await names(Told(lambda _: {"n": None, "limit": 100, "total": 0})) == []
    assert await names(Told(lambda _: {})) == []


async def test_names_that_can_not_be_described_have_their_place_in_a_page() -> None:
    told = Told(
        lambda at: (
            {"n": [], "missing": ["a", "b"], "total": 3} if not at else {"n": ["c"], "total": 3}
        )
    )

    assert await names(told) == ["c"]
    assert [each["offset"] for each in told.asked] == [0, 2]


@pytest.mark.parametrize(
    "page",
    [
        {"n": ["a"], "total": 1 << 62},
        {"n": ["a"], "limit": 1, "total": 1 << 62},
        {"n": [], "limit": 1, "total": 1 << 62},
        {"n": None, "total": 5},
        {"n": [], "missing": ["a"], "limit": 1, "total": 1 << 62},
    ],
)
async def test_a_page_that_comes_for_ever_ends_with_a_protocol_error(page: Page) -> None:
    told = Told(lambda _: page)

    with pytest.raises(ProtocolError, match="nothing new"):
        await names(told)

    assert len(told.asked) <= 2


async def test_pages_that_come_in_a_circle_end_with_a_protocol_error() -> None:
    told = Told(lambda at: {"n": [f"n{at % 3}"], "total": 1 << 62})

    with pytest.raises(ProtocolError, match="nothing new"):
        await names(told)
