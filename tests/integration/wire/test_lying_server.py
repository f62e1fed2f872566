"""A server that lies: whatever it answers, a call ends in time, with a result or a typed error.

A seeded part of all lies is told; `NATSSTREAM_LIES=all` tells all of them, `NATSSTREAM_LIES=500` as
many for each call.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import traceback
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.errors import NatsStreamError
from natsstream.testing import NatsServer
from tests.support.liars import Told, lying
from tests.support.lied_to import ASKED, make_things
from tests.support.lies import Untruth, lies_about

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.liars import Liar

pytestmark = pytest.mark.asyncio(loop_scope="module")

# No call may take longer, whatever it is told.
DEADLINE_S = 15.0
FEW = 5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Liar, Path]]:
    """A liar before a server that has everything that is asked about."""
    folder = tmp_path_factory.mktemp("lied")
    with NatsServer() as server:
        async with connect(server.url) as js:
            await make_things(js, folder)
        async with lying(server.port) as liar:
            yield liar, folder


async def hear(
    liar: Liar, folder: Path, name: str, *, truly: bool = False, gathers: bool = False
) -> list[str]:
    """Make one call, and return what was wrong with how it ended."""
    loop = asyncio.get_running_loop()
    wrong: list[str] = []

    def note(_: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, NatsStreamError | OSError):
            wrong.append(f"in the background: {context.get('message')} {error!r}")

    loop.set_exception_handler(note)
    try:
        async with asyncio.timeout(DEADLINE_S):
            async with connect(liar.url, request_timeout=0.5, reconnect_timeout=0.5) as js:
                try:
                    await ASKED[name](js, folder)
                except NatsStreamError as error:
                    if truly:
                        wrong.append(f"refused: {error}")
                if not js.is_connected:
                    wrong.append("the connection is gone")
    except TimeoutError:
        wrong.append("it hangs")
    except NatsStreamError:
        wrong.append("the connection failed")
    except Exception as error:  # noqa: BLE001 - That is what is looked for.
        where = traceback.extract_tb(error.__traceback__)[-1]
        wrong.append(
            f"{type(error).__name__} at {where.filename}:{where.lineno}: {str(error)[:90]}"
        )
    if gathers:  # A failed task that was not awaited reports it when it is freed.
        gc.collect()
        await asyncio.sleep(0)
    loop.set_exception_handler(None)
    return wrong


@pytest.mark.sampled
@pytest.mark.timeout(36_000 if os.environ.get("NATSSTREAM_LIES") else 300)
@pytest.mark.parametrize("name", ASKED)
async def test_whatever_a_server_answers_a_call_ends_typed_and_in_time(
    told: tuple[Liar, Path], name: str
) -> None:
    liar, folder = told
    heard: dict[str, Told] = {}

    def listen(said: Told) -> Told:
        # The longest answer of a kind has the most places.
        held = heard.get(said.kind)
        if held is None or len(held.payload + held.headers) < len(said.payload + said.headers):
            heard[said.kind] = said
        return said

    liar.lie = listen
    assert await hear(liar, folder, name, truly=True) == []
    lies = list(dict.fromkeys(lie for said in heard.values() for lie in lies_about(said)))
    amount = os.environ.get("NATSSTREAM_LIES", str(FEW))
    if amount != "all":
        lies = random.Random(name).sample(lies, min(int(amount), len(lies)))  # noqa: S311 - no secret.
    wrong: list[str] = []
    for number, lie in enumerate(lies, 1):
        liar.lie = lie
        said = await hear(liar, folder, name, gathers=number % 50 == 0 or number == len(lies))
        wrong += [f"{lie}: {each}" for each in said]
    assert not wrong, "\n".join(wrong)


async def test_a_lie_says_where_it_stands() -> None:
    said = Told("STREAM.INFO", b"a", b"", b"", b'{"config":{"name":"A"}}')
    lie = Untruth("STREAM.INFO", ("json", ("config", "name")), b"5")

    assert lie(said).payload == b'{"config": {"name": 5}}'
    assert str(lie).startswith("STREAM.INFO json config.name")
