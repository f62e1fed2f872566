# The part of pytest-xdist that tests/conftest.py uses; the package has no types.

import pytest

class LoadFileScheduling:
    def __init__(self, config: pytest.Config, log: object = None) -> None: ...
    def _split_scope(self, nodeid: str) -> str: ...
