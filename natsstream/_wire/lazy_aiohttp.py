"""Lets nats-py import aiohttp when a WebSocket is opened, instead of with nats-py itself.

aiohttp is two thirds of nats-py's import, and only `ws://` uses it. Each command, and each Python
worker of Spark, would pay for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_NAME = "aiohttp"


@contextmanager
def aiohttp_on_use() -> Generator[None]:
    """Give the modules that are imported meanwhile an aiohttp that is imported on its first use."""
    # Without aiohttp, nats-py has its own words for that.
    if _NAME in sys.modules or importlib.util.find_spec(_NAME) is None:
        yield
        return
    stand_in = _StandIn(_NAME)
    sys.modules[_NAME] = stand_in
    try:
        yield
    finally:
        stand_in.leave()


class _StandIn(ModuleType):
    """Stands for a module; the first look at it imports the module."""

    def leave(self) -> None:
        """Leave the module's name to the module."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name: str) -> object:
        self.leave()
        return getattr(importlib.import_module(self.__name__), name)
