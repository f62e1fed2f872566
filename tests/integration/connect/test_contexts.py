"""Contexts and the environment with a real server: where a program goes that names nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from natsstream import blocking, connect
from natsstream.errors import AuthenticationError, ConnectError
from natsstream.options import option_sources
from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

PASSWORD = "s3cret"  # noqa: S105 - Of a server that lives for this test.


@pytest.fixture(scope="module")
def guarded() -> Iterator[NatsServer]:
    """A server with one user."""
    with NatsServer(config=f'authorization {{ user: "bob", password: "{PASSWORD}" }}') as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The CLI's folder, empty, and none of its variables."""
    for source in option_sources().values():
        if source.env:
            monkeypatch.delenv(source.env, raising=False)
    monkeypatch.delenv("NATS_CONTEXT", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "nats" / "context").mkdir(parents=True)
    return tmp_path / "nats"


def write(folder: Path, name: str, **values: object) -> None:
    (folder / "context" / f"{name}.json").write_text(json.dumps(values))


async def test_named_context_connects(guarded: NatsServer, folder: Path) -> None:
    write(folder, "staging", url=guarded.url, user="bob", password=PASSWORD)

    async with connect(context="staging") as js:
        assert js.is_connected
    with blocking.connect(context="staging") as js:
        assert js.is_connected
    with pytest.raises(AuthenticationError):
        await connect(context="staging", password="wrong").open()  # noqa: S106 - A wrong one.


async def test_nothing_named_goes_where_the_selected_context_says(
    guarded: NatsServer, folder: Path
) -> None:
    write(folder, "staging", url=guarded.url, user="bob", password=PASSWORD)
    (folder / "context.txt").write_text("staging")

    async with connect() as js:
        assert js.url == guarded.url


async def test_nothing_named_goes_where_the_environment_says(
    guarded: NatsServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "staging", url="nats://127.0.0.1:1", user="bob", password="old")  # noqa: S106 - A wrong one.
    (folder / "context.txt").write_text("staging")
    monkeypatch.setenv("NATS_URL", guarded.url)
    monkeypatch.setenv("NATS_PASSWORD", PASSWORD)

    async with connect() as js:
        assert js.url == guarded.url


async def test_named_server_gets_nothing_from_around(
    guarded: NatsServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "staging", url=guarded.url, user="bob", password=PASSWORD)
    (folder / "context.txt").write_text("staging")
    monkeypatch.setenv("NATS_USER", "bob")
    monkeypatch.setenv("NATS_PASSWORD", PASSWORD)

    with pytest.raises(AuthenticationError):
        await connect(guarded.url).open()
    with pytest.raises(ConnectError):
        await connect("nats://127.0.0.1:1").open()


async def test_inbox_prefix_of_a_context_is_what_replies_come_to(
    guarded: NatsServer, folder: Path
) -> None:
    write(folder, "own", url=guarded.url, user="bob", password=PASSWORD, inbox_prefix="_INBOX_bob")

    async with connect(context="own") as js:
        inbox = js._client.new_inbox()  # pyright: ignore[reportPrivateUsage] - Of no door yet.
        assert inbox.startswith("_INBOX_bob.")
        await js.streams.ensure("OWN")
