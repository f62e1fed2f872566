"""A connection shows no secret while it signs in, breaks and is refused."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import nats
import pytest

from natsstream import attach, connect
from natsstream.errors import AuthenticationError, ConnectError
from natsstream.testing import NatsServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.events import ConnectionEvent

pytestmark = pytest.mark.asyncio

# With all that a URL has to escape.
SECRET = "Xq7v@Pw:Zt/19#k?9,[%]Wq3"  # noqa: S105 - Of a server that lives for these tests.


@pytest.fixture(scope="module")
def guarded() -> Iterator[NatsServer]:
    """A server with a user whose password has what a URL has to escape."""
    with NatsServer(config=f'authorization {{ user: "ann", password: "{SECRET}" }}') as server:
        yield server


def tells(text: str) -> list[str]:
    """Return each six characters of the secret, plain or escaped, that stand in a text."""
    forms = (SECRET, quote(SECRET, safe=""))
    return [
        form[at : at + 6]
        for form in forms
        for at in range(len(form) - 5)
        if form[at : at + 6] in text
    ]


def url_of(server: NatsServer, secret: str) -> str:
    return server.url.replace("nats://", f"nats://ann:{quote(secret, safe='')}@")


async def test_connection_and_its_events_show_no_password(
    guarded: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url, seen = url_of(guarded, SECRET), list["ConnectionEvent"]()

    async with connect(url) as js, js.events() as events:
        await js.account()
        shown = [js.url, repr(js), repr(js.core), repr(events)]
        guarded.restart()
        seen += [await anext(events), await anext(events)]
        await js.account()

    shown += [repr(event) for event in seen]
    assert tells("\n".join([*shown, caplog.text])) == []
    assert len(seen) == 2


async def test_attached_connection_shows_no_password(
    guarded: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = await cast("Any", nats).connect(guarded.url, user="ann", password=SECRET)
    async with attach(client) as js:
        shown = [js.url, repr(js)]
    await client.close()

    assert tells("\n".join([*shown, caplog.text])) == []


@pytest.mark.parametrize("wrong", [SECRET[:-1], SECRET.lower(), f'"{SECRET}"', f"{SECRET} "])
async def test_refused_password_is_in_no_traceback(
    guarded: NatsServer, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    nobody = url_of(guarded, wrong).rpartition(":")[0] + ":1"
    for url in (url_of(guarded, wrong), nobody):
        with pytest.raises((AuthenticationError, ConnectError)) as refused:
            await connect(url, connect_timeout=5).open()
        error = refused.value
        told += ["".join(traceback.format_exception(error)), repr(error), repr(error.__cause__)]

    assert tells("\n".join([*told, caplog.text])) == []
