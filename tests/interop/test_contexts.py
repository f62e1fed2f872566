"""Contexts (ADR-21): what `nats context` writes, natsstream connects with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.contexts import context_names, selected_context
from natsstream.testing import NatsServer
from tests.interop.clients.nats_cli import NatsCli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go]

ACCOUNTS = """
accounts {
  A: { jetstream: enabled, users: [{ user: "ann", password: "a secret: ä" }] }
  B: { jetstream: enabled, users: [{ user: "bob", password: "b" }] }
}
"""


@pytest.fixture(scope="module")
def secured() -> Iterator[NatsServer]:
    """A server with two accounts, whose streams do not see each other."""
    with NatsServer(config=ACCOUNTS) as server:
        yield server


@pytest_asyncio.fixture
async def cli(
    nats_program: Path, secured: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> NatsCli:
    """The CLI with a context for each account, ours reading the same folder."""
    cli = NatsCli(nats_program, None, tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", cli.environment["XDG_CONFIG_HOME"])
    for name in ("NATS_URL", "NATS_CONTEXT", "NATS_USER", "NATS_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, user, password in (("team-a", "ann", "a secret: ä"), ("team_b", "bob", "b")):
        flags = (f"--server={secured.url}", f"--user={user}", f"--password={password}")
        await cli.run("context", "add", name, f"--description=Team of {user}", *flags)
    return cli


async def test_context_of_the_cli_leads_us_to_the_same_account(
    cli: NatsCli, stream_name: str
) -> None:
    flags = (f"--subjects={stream_name}.>", "--defaults")
    await cli.run("--context=team-a", "stream", "add", stream_name, *flags)

    async with connect(context="team-a") as team_a, connect(context="team_b") as team_b:
        seen_by_a = [name async for name in team_a.streams.names()]
        seen_by_b = [name async for name in team_b.streams.names()]

    assert stream_name in seen_by_a
    assert stream_name not in seen_by_b


async def test_selected_context_of_the_cli_is_ours(cli: NatsCli, stream_name: str) -> None:
    await cli.run("context", "select", "team_b")

    async with connect() as js:
        await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    assert selected_context() == "team_b"
    shown = await cli.json("--context=team_b", "stream", "info", stream_name, "--no-select")
    assert shown["config"]


async def test_variable_nats_context_wins_over_the_selected_one_in_both(
    cli: NatsCli, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cli.run("context", "select", "team_b")
    cli.environment["NATS_CONTEXT"] = "team-a"
    monkeypatch.setenv("NATS_CONTEXT", "team-a")

    async with connect() as js:
        await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    assert await cli.json("stream", "info", stream_name, "--no-select")


async def test_contexts_have_the_names_that_the_cli_lists(cli: NatsCli) -> None:
    listed = (await cli.run("context", "ls", "--names")).stdout.decode().split()

    assert context_names() == sorted(listed) == ["team-a", "team_b"]
