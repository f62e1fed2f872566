"""The pages leave out no public name and no feature that older servers lack."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import natsstream
from natsstream import errors
from natsstream.api import features
from natsstream.api.features import Feature

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGES = Path(__file__).parents[2] / "docs" / "pages"
DESCRIBED: set[str] = {
    name
    for page in [*PAGES.rglob("*.md")]
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
}
OPTIONS: dict[str, str] = {
    name: options
    for page in PAGES.rglob("*.md")
    for name, options in re.findall(
        r"^::: (\S+)\n((?:    .*\n)*)", f"{page.read_text()}\n", re.MULTILINE
    )
}
TABLE = re.findall(
    r"^\| (\d\.\d+) (\|.*)$", (PAGES / "server-versions.md").read_text(), re.MULTILINE
)
SINCE: dict[str, str] = dict(TABLE)


def wanted_of(fields: Mapping[str, Feature]) -> list[tuple[str, str]]:
    """Return the last name of each path, or its value, with the release that brought it."""
    return [(re.split(r"[.=]", path)[-1], each.needs_text) for path, each in fields.items()]


@pytest.mark.parametrize("name", natsstream.__all__)
def test_every_public_class_is_in_the_reference(name: str) -> None:
    found = getattr(natsstream, name)
    if not isinstance(found, type) or issubclass(found, errors.NatsStreamError):
        return  # Functions and modules have pages of their own; errors.md has all errors.

    home = found.__module__

    assert {f"{home}.{found.__qualname__}", home} & DESCRIBED


@pytest.mark.parametrize("name", natsstream.__all__)
def test_reference_shows_inherited_methods(name: str) -> None:
    """The pages show what stands in the class itself; an option adds what it inherits."""
    found = getattr(natsstream, name)
    if not isinstance(found, type) or issubclass(found, errors.NatsStreamError):
        return
    kind = cast("type[object]", found)
    inherited = [
        member
        for base in kind.__mro__[1:]
        if base.__module__.startswith("natsstream")
        for member, value in vars(base).items()
        if not member.startswith("_") and member not in vars(kind)
        if inspect.isfunction(value) or isinstance(value, property)
    ]
    home = kind.__module__
    options = OPTIONS.get(f"{home}.{kind.__qualname__}", OPTIONS.get(home, ""))

    assert not inherited or "inherited_members: true" in options, inherited


def test_every_gated_field_is_in_the_row_of_its_release() -> None:
    gated = [*wanted_of(features.STREAM_FIELDS), *wanted_of(features.CONSUMER_FIELDS)]

    assert [(name, needs) for name, needs in gated if name not in SINCE[needs]] == []


def test_every_gated_ability_is_in_the_row_of_its_release() -> None:
    abilities = [
        each for name, each in vars(features).items() if isinstance(each, Feature) and name != "ALL"
    ]

    assert abilities
    assert [each for each in abilities if each.name not in SINCE[each.needs_text]] == []


def test_index_and_navigation_name_every_guide() -> None:
    index = (PAGES / "index.md").read_text()
    navigation = (PAGES.parent / "mkdocs.yml").read_text()
    guides = [f"guides/{page.name}" for page in (PAGES / "guides").glob("*.md")]

    assert guides
    assert [guide for guide in guides if f"]({guide})" not in index] == []
    assert [guide for guide in guides if guide not in navigation] == []
