"""Which subjects a stream's configuration captures, and how many of its own are looked at."""

from __future__ import annotations

import pytest

from natsstream.api.names import covers
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.publish import destination
from natsstream.publish.destination import captures

OTHER = StreamSource(name="OTHER")


@pytest.mark.parametrize(
    ("config", "captured", "others"),
    [
        (StreamConfig(name="S"), ["S"], ["s", "S.a"]),
        (StreamConfig(name="S", subjects=["a", "b.*", "c.>"]), ["a", "b.x", "c.x.y"], ["b", "S"]),
        (StreamConfig(name="S", mirror=OTHER), [], ["S"]),
        (StreamConfig(name="S", sources=[OTHER]), [], ["S"]),
    ],
    ids=["name", "subjects", "mirror", "sources"],
)
def test_answer_is_the_same_when_it_is_asked_again(
    config: StreamConfig, captured: list[str], others: list[str]
) -> None:
    for _ in range(2):
        assert [captures(config, each) for each in captured] == [True] * len(captured)
        assert [captures(config, each) for each in others] == [False] * len(others)


def test_another_configuration_has_its_own_answers() -> None:
    before, after = (StreamConfig(name="S", subjects=subjects) for subjects in (["a.*"], ["b.*"]))

    assert [captures(each, "a.x") for each in (before, after, before)] == [True, False, True]


def test_each_subject_of_a_stream_is_looked_at_once_for_a_subject(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counts comparisons of subjects."""
    looks = 0

    def noted(wide: str, narrow: str) -> bool:
        nonlocal looks
        looks += 1
        return covers(wide, narrow)

    monkeypatch.setattr(destination, "covers", noted)
    config = StreamConfig(name="S", subjects=[f"site{at}.*" for at in range(100)])

    for _ in range(50):
        assert captures(config, "site99.x")
        assert not captures(config, "nowhere.x")

    assert looks == 200


def test_answers_beyond_a_thousand_are_right_too() -> None:
    config = StreamConfig(name="S", subjects=["site.*"])

    for at in range(3_000):
        assert captures(config, f"site.{at}")
        assert not captures(config, f"nowhere.{at}")
