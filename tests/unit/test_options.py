"""How to reach the servers: what is refused before anything is sent, and what is never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.connection import connect
from natsstream.errors import ConfigError
from natsstream.options import ConnectOptions, public_url

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "s3cret"  # noqa: S105 - It is what the tests look for.


def test_defaults_are_one_local_server() -> None:
    options = ConnectOptions()

    assert list(options.servers) == ["nats://127.0.0.1:4222"]
    assert (options.connect_timeout, options.request_timeout, options.reconnect_timeout) == (
        5.0,
        5.0,
        30.0,
    )


@pytest.mark.parametrize(
    ("servers", "urls"),
    [
        ("nats://a:1", ["nats://a:1"]),
        ("a,b:2", ["a", "b:2"]),
        ("nats://a:1, nats://b:2", ["nats://a:1", "nats://b:2"]),
        (["nats://a:1 ", "b"], ["nats://a:1", "b"]),
        (("tls://a",), ["tls://a"]),
    ],
)
def test_servers_are_one_text_or_a_list(servers: str | list[str], urls: list[str]) -> None:
    assert list(ConnectOptions(servers=servers).servers) == urls
    assert list(connect(servers)._options.servers) == urls  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "servers",
    [
        "",
        ",",
        "nats://a,",
        [],
        [""],
        ["nats://"],
        ["nats://:4222"],
        ["http://a:4222"],
        ["nats://a:0"],
        ["nats://a:70000"],
        ["nats://a:port"],
        ["nats://[::1"],
        ["nats://a b:4222"],
        ["ws://a:80"],
    ],
)
def test_servers_that_can_not_be_are_a_config_error(servers: str | list[str]) -> None:
    with pytest.raises(ConfigError):
        connect(servers)


@pytest.mark.parametrize("field", ["connect_timeout", "request_timeout", "reconnect_timeout"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_timeouts_are_above_zero(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        ConnectOptions(**cast("Any", {field: value}))


def test_missing_credentials_file_is_told_before_connecting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        ConnectOptions(creds=tmp_path / "none.creds")


def test_home_in_the_path_of_credentials_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "user.creds").touch()

    assert ConnectOptions(creds="~/user.creds").creds == tmp_path / "user.creds"


def test_secrets_are_in_no_repr(tmp_path: Path) -> None:
    creds = tmp_path / "user.creds"
    creds.write_text(SECRET)
    options = ConnectOptions(
        servers=[f"nats://bob:{SECRET}@a:4222", f"nats://{SECRET}@b"],
        user="bob",
        password=SECRET,
        token=SECRET,
        creds=creds,
    )

    assert SECRET not in repr(options)
    assert "nats://a:4222" in repr(options)
    assert SECRET not in repr(connect(options))


def test_secrets_are_in_no_error() -> None:
    with pytest.raises(ConfigError) as caught:
        ConnectOptions(servers=[f"http://bob:{SECRET}@a:4222"])

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("nats://bob:pw@a:1", "nats://a:1"),
        ("a", "nats://a:4222"),
        ("tls://[::1]:5", "tls://[::1]:5"),
        ("bob:pw@a:1", "nats://a:1"),
    ],
)
def test_public_url_has_scheme_host_and_port(url: str, public: str) -> None:
    assert public_url(url) == public


@given(st.text(max_size=30))
def test_no_text_raises_anything_but_a_config_error(text: str) -> None:
    try:
        options = ConnectOptions(servers=[text])
    except ConfigError:
        return
    assert repr(options)
