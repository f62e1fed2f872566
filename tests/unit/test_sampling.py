"""The share of a large table that a seed chooses."""

from __future__ import annotations

from datetime import date

import pytest

from tests.support.sampling import choose, choose_variants, is_chosen, seed_of

NAMES = [f"tests/interop/test_x.py::test_y[{number}]" for number in range(3_000)]


def test_seed_chooses_about_a_fifth() -> None:
    for seed in range(5):
        assert 520 < sum(is_chosen(name, seed) for name in NAMES) < 680


def test_seeds_choose_different_fifths() -> None:
    first, second = ({name for name in NAMES if is_chosen(name, seed)} for seed in (1, 2))

    assert len(first & second) < 300


def test_five_days_in_a_row_choose_every_test_once() -> None:
    assert all(sum(is_chosen(name, seed) for seed in range(7, 12)) == 1 for name in NAMES)


def test_of_a_functions_variants_at_least_one_is_chosen() -> None:
    pairs = [f"tests/test_x.py::test_{number}[{kind}]" for number in range(99) for kind in "ab"]

    for seed in range(4):
        chosen = choose_variants(pairs, seed)
        assert chosen >= choose(pairs, seed)
        assert {name.partition("[")[0] for name in chosen} == {
            name.partition("[")[0] for name in pairs
        }
        assert len(chosen) < 120
    assert set().union(*(choose_variants(pairs, seed) for seed in range(5))) == set(pairs)


def test_option_names_a_seed_all_tests_or_the_day() -> None:
    day = date(2026, 3, 1)

    assert seed_of("7", day) == 7
    assert seed_of("all", day) is None
    assert seed_of("", day) != seed_of("", date(2026, 3, 2))
    with pytest.raises(ValueError, match="some"):
        seed_of("some", day)
