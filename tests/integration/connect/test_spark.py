"""What the Spark connector connects with: files and contexts, so that no plan shows a secret."""

from __future__ import annotations

import json
import logging
import pickle
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from pyspark_natsstream.driver import StreamWatch, open_stream
from pyspark_natsstream.read_options import ReadOptions

from natsstream import blocking
from natsstream.errors import AuthenticationError
from natsstream.testing import NatsServer
from tests.support.accounts import KeyPair
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = "s3cret"  # noqa: S105 - Of a server that lives for this test.
USER = KeyPair.new("user")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that the server's certificate is signed by."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(authority: Authority) -> Iterator[NatsServer]:
    """A server with TLS and two users, and a stream."""
    own = authority.sign("server")
    config = f'tls {{ cert_file: "{own.cert}", key_file: "{own.key}", timeout: 5 }}\n'
    users = f'{{user: "bob", password: "{PASSWORD}"}}, {{nkey: {USER.public}}}'
    with NatsServer(config=f"{config} authorization {{ users: [ {users} ] }}") as server:
        url = server.url
        with blocking.connect(url, ca=authority.ca, user="bob", password=PASSWORD) as js:
            js.streams.ensure("ORDERS")
        yield server


def test_context_brings_a_password_that_no_option_shows(
    guarded: NatsServer, authority: Authority, tmp_path: Path
) -> None:
    context = tmp_path / "staging.json"
    values = {"url": guarded.url, "user": "bob", "password": PASSWORD, "ca": str(authority.ca)}
    context.write_text(json.dumps(values))
    options = ReadOptions.parse({"context": str(context), "stream": "ORDERS"})

    with open_stream(options) as stream:
        assert stream.info().config.name == "ORDERS"
    assert PASSWORD.encode() not in pickle.dumps(options)
    assert PASSWORD not in repr(options)


def test_seed_file_and_authority_are_options(
    guarded: NatsServer, authority: Authority, tmp_path: Path
) -> None:
    seed = tmp_path / "user.nk"
    seed.write_text(USER.seed)
    given = {"servers": guarded.url, "stream": "ORDERS", "ca": str(authority.ca)}

    with open_stream(ReadOptions.parse({**given, "nkey": str(seed)})) as stream:
        assert stream.info().config.name == "ORDERS"
    with pytest.raises(AuthenticationError), open_stream(ReadOptions.parse(given)):
        pass


def test_environment_is_not_looked_at(
    guarded: NatsServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Driver and executors have different ones."""
    monkeypatch.setenv("NATS_USER", "bob")
    monkeypatch.setenv("NATS_PASSWORD", PASSWORD)
    options = {"servers": guarded.url, "stream": "ORDERS", "ca": str(authority.ca)}

    with pytest.raises(AuthenticationError), open_stream(ReadOptions.parse(options)):
        pass


@pytest.mark.parametrize(("subject", "count"), [("ORDER", 1), ("ORDERS", 0)])
def test_driver_logs_subjects_that_can_match_nothing_once(
    caplog: pytest.LogCaptureFixture, subject: str, count: int
) -> None:
    with NatsServer() as server:
        with blocking.connect(server.url) as js:
            js.streams.ensure("ORDERS")
        given = {"servers": server.url, "stream": "ORDERS", "subjects": subject}
        with closing(StreamWatch(ReadOptions.parse(given))) as watch:
            watch.state()
            watch.state()

    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    told = [each.getMessage() for each in warnings if each.name == "natsstream.consumer"]
    assert len(told) == count
    assert all(f"filter {subject} matches none of the subjects of stream ORDERS" in t for t in told)
