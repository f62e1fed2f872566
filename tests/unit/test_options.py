"""How to reach the servers: what is refused before anything is sent, and what is never shown."""

from __future__ import annotations

import dataclasses
import inspect
import math
import pickle
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.connection import connect
from natsstream.errors import ConfigError
from natsstream.options import ConnectOptions, option_sources, public_url, url_sign_in
from tests.support.accounts import KeyPair, Operator, creds_text

SECRET = "s3cret"  # noqa: S105 - It is what the tests look for.
USER = KeyPair.new("user")
JWT = Operator().user_jwt(USER)
PEM = "-----BEGIN CERTIFICATE-----\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a credentials file, a seed file, and files where certificates could be."""
    (tmp_path / "user.creds").write_text(creds_text(JWT, USER.seed))
    (tmp_path / "user.nk").write_text(f"{USER.seed}\n")
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text(PEM)
    return tmp_path


def options_of(**given: Any) -> ConnectOptions:
    return connect(**given)._options  # pyright: ignore[reportPrivateUsage] - What was built.


def test_defaults_are_one_local_server() -> None:
    options = ConnectOptions()

    assert list(options.servers) == ["nats://127.0.0.1:4222"]
    assert (options.connect_timeout, options.request_timeout, options.reconnect_timeout) == (
        5.0,
        5.0,
        None,
    )


def test_reads_with_an_end_have_a_bound_and_others_only_one_that_was_given() -> None:
    options, given = ConnectOptions(), ConnectOptions(reconnect_timeout=7)

    assert (options.bounded_reconnect_s, options.running_reconnect_s) == (30.0, math.inf)
    assert (given.bounded_reconnect_s, given.running_reconnect_s) == (7, 7)


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
    assert list(options_of(servers=servers).servers) == urls


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


@pytest.mark.parametrize(
    "field", ["connect_timeout", "request_timeout", "reconnect_timeout", "ping_interval"]
)
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_timeouts_are_above_zero(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        ConnectOptions(**cast("Any", {field: value}))


def test_missing_credentials_file_is_told_before_connecting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        ConnectOptions(creds=tmp_path / "none.creds")


def test_missing_file_at_an_absolute_path_has_a_way_out() -> None:
    for option in ("creds", "nkey", "ca"):
        with pytest.raises(ConfigError, match="does not exist") as caught:
            ConnectOptions(**cast("Any", {option: "/nope/x.creds"}))
        assert "check the path" in caught.value.hint


def test_missing_credentials_file_is_told_with_the_path_that_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"file {tmp_path}/none.creds does not") as caught:
        ConnectOptions(creds="none.creds")

    assert "relative paths" in caught.value.hint


def test_home_in_the_path_of_credentials_is_expanded(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(files))

    assert ConnectOptions(creds="~/user.creds").creds == files / "user.creds"
    assert ConnectOptions(nkey="~/user.nk").nkey == files / "user.nk"
    assert ConnectOptions(ca="~/ca.pem").ca == files / "ca.pem"


def test_credentials_may_be_given_as_their_text() -> None:
    options = ConnectOptions(creds=creds_text(JWT, USER.seed))

    assert options.creds_pair() == (JWT, USER.seed)
    assert ConnectOptions(nkey=USER.seed).nkey_seed() == USER.seed


def test_credentials_file_is_read_again_each_time(files: Path) -> None:
    options = ConnectOptions(creds=files / "user.creds")
    renewed = Operator().user_jwt(USER)
    (files / "user.creds").write_text(creds_text(renewed, USER.seed))

    assert options.creds_pair() == (renewed, USER.seed)


@pytest.mark.parametrize(
    "given",
    [
        {"servers": [f"nats://bob:{SECRET}@a:4222", f"nats://{SECRET}@b"]},
        {"user": "bob", "password": SECRET},
        {"token": SECRET},
        {"user_jwt": JWT, "user_seed": USER.seed},
        {"nkey": USER.seed},
        {"creds": creds_text(JWT, USER.seed)},
    ],
)
def test_secrets_are_in_no_repr(given: dict[str, Any]) -> None:
    options = ConnectOptions(**given)

    for shown in (repr(options), repr(connect(options)), repr(connect(**given))):
        assert not any(secret in shown for secret in (SECRET, USER.seed, JWT))
    host = "a" if "servers" in given else "127.0.0.1"
    assert f"nats://{host}:4222" in repr(options)


def test_options_survive_a_pickle() -> None:
    options = ConnectOptions(servers="nats://a:1", user="bob", password=SECRET)

    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - Our own bytes.


@pytest.mark.parametrize(
    "given",
    [
        {"user": "a", "password": "b", "token": "c"},
        {"user": "a", "password": "b", "nkey": USER.seed},
        {"user": "a", "password": "b", "creds": creds_text(JWT, USER.seed)},
        {"nkey": USER.seed, "creds": creds_text(JWT, USER.seed)},
        {"nkey": USER.seed, "user_jwt": JWT, "user_seed": USER.seed},
        {"servers": "nats://a:b@h", "token": "c"},
        {"servers": "nats://a:b@h", "user": "a", "password": "b"},
        {"servers": "nats://tok@h", "nkey": USER.seed},
    ],
)
def test_two_ways_to_sign_in_are_refused_with_the_way_out(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="given together") as caught:
        ConnectOptions(**given)

    assert "leave the others out" in caught.value.hint
    assert USER.seed not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"nkey": USER.seed},
        {"creds": creds_text(JWT, USER.seed)},
        {"user_jwt": JWT, "user_seed": USER.seed},
    ],
)
def test_token_may_stand_beside_a_signature_for_auth_callouts(given: dict[str, Any]) -> None:
    assert ConnectOptions(token=SECRET, **given).token == SECRET


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": "bob"}, "user and password belong together"),
        ({"password": SECRET}, "user and password belong together"),
        ({"user": "", "password": SECRET}, "user is empty"),
        ({"token": ""}, "token is empty"),
        ({"creds": ""}, "creds is empty"),
        ({"user_seed": USER.seed}, "user_seed without user_jwt"),
        ({"user_jwt": JWT, "user_seed": "SUABC"}, "seed in user_seed is damaged"),
        ({"nkey": USER.seed[:-1]}, "seed in nkey is damaged"),
        ({"nkey": KeyPair.new("account").seed}, "not a user's"),
        ({"creds": USER.seed}, "creds is not the path of a file"),
        ({"creds": JWT}, "creds is not the path of a file"),
        ({"nkey": JWT}, "nkey is not the path of a file"),
        ({"creds": "~nobody.at.all/x"}, "not a valid path"),
        ({"ca": "none.pem"}, "does not exist"),
        ({"cert": __file__}, "cert and key belong together"),
        ({"key": __file__}, "cert and key belong together"),
        ({"key_password": SECRET}, "key_password without key"),
        ({"domain": "a.b"}, "not one token"),
        ({"domain": ""}, "not one token"),
        ({"api_prefix": "$JS.*.API"}, "not a subject prefix"),
        ({"api_prefix": "$JS.hub.API."}, "not a subject prefix"),
        ({"domain": "hub", "api_prefix": "$JS.hub.API"}, "given together"),
        ({"inbox_prefix": ""}, "not a subject prefix"),
        ({"inbox_prefix": "a.>"}, "not a subject prefix"),
        ({"inbox_prefix": "a b"}, "not a subject prefix"),
        ({"max_missed_pings": 0}, "max_missed_pings is 0"),
    ],
)
def test_value_that_can_not_work_is_told_and_no_secret_repeated(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        ConnectOptions(**given)

    assert not any(secret in str(caught.value) for secret in (SECRET, USER.seed[:-1], JWT))


@pytest.mark.parametrize("name", ["user.creds", "user.nk"])
def test_file_that_holds_no_credentials_is_told_by_its_path(files: Path, name: str) -> None:
    (files / name).write_text(SECRET)
    field = "creds" if name == "user.creds" else "nkey"

    with pytest.raises(ConfigError, match=name) as caught:
        ConnectOptions(**cast("Any", {field: files / name}))

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, False),
        ({"servers": "tls://a"}, True),
        ({"servers": ["nats://a", "tls://b"]}, True),
        ({"tls_first": True}, True),
        ({"ca": __file__}, True),
        ({"cert": __file__, "key": __file__}, True),
    ],
)
def test_tls_is_demanded_by_whatever_speaks_of_it(given: dict[str, Any], *, wanted: bool) -> None:
    assert ConnectOptions(**given).wants_tls is wanted


def test_connect_takes_every_option_and_nothing_else() -> None:
    options = [field.name for field in dataclasses.fields(ConnectOptions)]

    assert list(inspect.signature(connect).parameters) == [
        *("servers", "context", *options[1:]),
        "unknown",  # Names of other clients, to answer with the name here.
    ]


def test_connect_hands_every_option_on(files: Path) -> None:
    given: dict[str, Any] = {
        "servers": ["tls://a:1"], "name": "n", "token": "t", "nkey": files / "user.nk",
        "ca": files / "ca.pem", "cert": files / "cert.pem", "key": files / "key.pem",
        "key_password": "p", "tls_first": True, "inbox_prefix": "i", "domain": "d",
        "connect_timeout": 1.0, "request_timeout": 2.0, "reconnect_timeout": 3.0,
        "ping_interval": 4.0, "max_missed_pings": 5,
    }  # fmt: skip

    assert options_of(**given) == ConnectOptions(**given)
    ways: list[dict[str, Any]] = [
        {"user": "u", "password": "p", "api_prefix": "a"},
        {"user_jwt": JWT, "user_seed": USER.seed},
        {"creds": creds_text(JWT, USER.seed)},
    ]
    for way in ways:
        assert options_of(servers="a", **way) == ConnectOptions(servers="a", **way)


@pytest.mark.parametrize("given", [{"name": "x"}, {"context": "x"}, {"tls_first": False}])
def test_options_as_one_object_and_beside_it_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="single options are given together"):
        connect(ConnectOptions(), **given)


def test_no_two_options_share_a_variable_or_a_key() -> None:
    for names in zip(*option_sources().values(), strict=True):
        given = [name for name in names if name]
        assert len(given) == len(set(given))


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("nats://a", None),
        ("nats://bob:pw@a", ("bob", "pw")),
        ("bob:@a", ("bob", "")),
        ("nats://tok@a", ("tok", None)),
        ("nats://b%40b:p%2Fw@a", ("b@b", "p/w")),
    ],
)
def test_user_and_password_of_a_url_are_decoded(
    url: str, found: tuple[str, str | None] | None
) -> None:
    assert url_sign_in(url) == found


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


@pytest.mark.parametrize("url", ["4222", "nats://4222", ":4222"])
def test_port_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="number 1 is not a server URL: it is a port") as caught:
        ConnectOptions(servers=url)

    assert caught.value.hint == "write nats://127.0.0.1: before the port"
