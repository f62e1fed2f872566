"""UNDEFINED: one falsy object."""

from __future__ import annotations

import copy
import pickle

from natsstream.conat.undefined import UNDEFINED


def test_undefined_is_falsy_and_shows_its_name() -> None:
    assert not UNDEFINED
    assert repr(UNDEFINED) == "UNDEFINED"


def test_undefined_stays_itself_when_it_is_copied_or_pickled() -> None:
    assert copy.copy(UNDEFINED) is UNDEFINED
    assert copy.deepcopy({"a": [UNDEFINED]})["a"][0] is UNDEFINED
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(UNDEFINED, protocol)) is UNDEFINED  # noqa: S301 - Our own bytes.
