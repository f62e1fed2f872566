"""Arguments of the layers over a core stream."""

from __future__ import annotations

import pytest

from natsstream.conat.layer_options import LeaderArguments, check_arguments
from natsstream.errors import ConfigError


def test_autosave_is_answered_with_its_opposite_here() -> None:
    with pytest.raises(ConfigError, match=r"no argument of js\.dkv 'autosave'") as caught:
        check_arguments({"autosave": False}, LeaderArguments, "js.dkv")

    assert caught.value.hint == "in natsstream: no_autosave=True for autosave=False"
