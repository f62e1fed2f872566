"""A list of open files, as programs make it from a map that merges.

Source: Conat backend/conat/test/sync/open-files.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from natsstream.conat.undefined import UNDEFINED
from tests.support.conat_layers import new_name, opened, until

if TYPE_CHECKING:
    from natsstream.conat.dkv import DKV
    from natsstream.conat.unsaved_keys import Conflict
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


def merge(conflict: Conflict) -> dict[str, Any]:
    """Keep the fields of both; the newer time counts."""
    remote: dict[str, Any] = {} if conflict.remote is UNDEFINED else conflict.remote
    newest = max(conflict.local["time"], remote.get("time", 0))
    return {**remote, **conflict.local, "time": newest}


class OpenFiles:
    """Which files are open, when they were touched, and their errors."""

    def __init__(self, kv: DKV) -> None:
        self.kv = kv

    def touch(self, path: str) -> None:
        self.kv.set(path, {**self.kv.get(path, {}), "time": time.time()})

    def set_error(self, path: str, error: str | None) -> None:
        self.kv.set(path, {**self.kv.get(path, {}), "error": error})

    def paths(self) -> list[str]:
        return sorted(self.kv, key=lambda path: self.kv[path]["time"])


async def test_OF1_to_OF8_trackers_of_one_project_agree(server: NatsNode) -> None:
    name = new_name()
    options: dict[str, Any] = {"name": name, "merge": merge, "no_autosave": True}
    async with opened("dkv", server, server, **options) as maps:
        one, two = map(OpenFiles, maps)
        one.touch("old")
        await one.kv.save()
        await until(lambda: two.paths() == ["old"])
        one.kv.clear()
        two.kv.clear()
        while one.kv.has_unsaved_changes() or two.kv.has_unsaved_changes():
            await one.kv.save()
            await two.kv.save()
        assert one.kv.get_all() == two.kv.get_all() == {}

        one.touch("1.txt")
        assert abs(one.kv["1.txt"]["time"] - time.time()) < 60
        one.touch("2.txt")
        assert two.kv.get("2.txt") is UNDEFINED
        await one.kv.save()
        await until(lambda: two.paths() == ["1.txt", "2.txt"])

        one.kv.delete("1.txt")
        assert one.paths() == ["2.txt"]
        await one.kv.save()
        async with AsyncExitStack() as stack:
            [third] = await stack.enter_async_context(opened("dkv", server, name=name))
            assert list(third) == ["2.txt"]
            await until(lambda: two.paths() == ["2.txt"])

            two.set_error("2.txt", "test error")
            await two.kv.save()
            await until(lambda: one.kv["2.txt"].get("error") == "test error")
            one.set_error("2.txt", None)
            await one.kv.save()
            await until(lambda: two.kv["2.txt"]["error"] is None)
