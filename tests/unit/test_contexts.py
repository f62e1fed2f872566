"""Context files of the nats CLI and its environment: what is read, and what wins."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import contexts
from natsstream.connection import connect
from natsstream.contexts import context_names, load_context, resolve_options, selected_context
from natsstream.errors import ConfigError
from natsstream.options import ConnectOptions, option_sources
from tests.support.accounts import KeyPair, Operator, creds_text

SECRET = "s3cret"  # noqa: S105 - It is what the tests look for.
USER = KeyPair.new("user")
JWT = Operator().user_jwt(USER)
CREDS = creds_text(JWT, USER.seed)
# Every key that jsm.go writes, as it writes an empty context.
EMPTY: dict[str, Any] = {
    "description": "", "url": "", "socks_proxy": "", "token": "", "user": "", "password": "",
    "creds": "", "nkey": "", "cert": "", "key": "", "ca": "", "nsc": "", "jetstream_domain": "",
    "jetstream_api_prefix": "", "jetstream_event_prefix": "", "inbox_prefix": "", "user_jwt": "",
    "user_seed": "", "color_scheme": "", "tls_first": False, "windows_cert_store": "",
    "windows_cert_match_by": "", "windows_cert_match": "", "windows_ca_certs_match": None,
}  # fmt: skip


class Home:
    """A home directory with contexts in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nats = folder / ".config" / "nats"
        (self.nats / "context").mkdir(parents=True)

    def write(self, name: str, **values: object) -> Path:
        path = self.nats / "context" / f"{name}.json"
        path.write_text(json.dumps({**EMPTY, **values}))
        return path

    def select(self, name: str) -> None:
        (self.nats / "context.txt").write_text(f"{name}\n")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home directory of its own and none of the CLI's variables."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for source in option_sources().values():
        if source.env:
            monkeypatch.delenv(source.env, raising=False)
    for name in ("XDG_CONFIG_HOME", "NATS_CONTEXT", "NATS_SOCKS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return Home(tmp_path)


def options_of(**given: Any) -> ConnectOptions:
    return connect(**given)._options  # pyright: ignore[reportPrivateUsage] - What was built.


def test_empty_context_is_the_local_server(home: Home) -> None:
    home.write("empty")

    assert options_of(context="empty") == ConnectOptions()


def test_every_key_reaches_its_option(home: Home) -> None:
    for name in ("ca", "cert", "key"):
        (home.folder / name).touch()
    home.write(
        "full", url="tls://a:1, tls://b:2", user="bob", password=SECRET, ca="~/ca", cert="~/cert",
        key="~/key", tls_first=True, jetstream_domain="hub", inbox_prefix="_INBOX_bob",
    )  # fmt: skip

    assert options_of(context="full") == ConnectOptions(
        servers=["tls://a:1", "tls://b:2"], user="bob", password=SECRET, ca=home.folder / "ca",
        cert=home.folder / "cert", key=home.folder / "key", tls_first=True, domain="hub",
        inbox_prefix="_INBOX_bob",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"token": "t"}, {"token": "t"}),
        ({"user": "bob"}, {"user": "bob", "password": ""}),
        ({"user_jwt": JWT, "user_seed": USER.seed}, {"user_jwt": JWT, "user_seed": USER.seed}),
        ({"jetstream_api_prefix": "$JS.acc.API"}, {"api_prefix": "$JS.acc.API"}),
        ({"jetstream_event_prefix": "x", "color_scheme": "red", "of_tomorrow": [1]}, {}),
        ({"windows_cert_store": "user"}, {}),
        ({"nkey": USER.seed}, {"nkey": USER.seed}),
    ],
)
def test_values_of_a_context_are_the_cli_s(
    home: Home, values: dict[str, Any], wanted: dict[str, Any]
) -> None:
    home.write("one", **values)

    assert options_of(context="one") == ConnectOptions(**wanted)


def test_keys_that_are_not_known_are_kept(home: Home) -> None:
    home.write("new", of_tomorrow={"a": 1}, description="what comes", url=f"nats://b:{SECRET}@h")

    context = load_context("new")

    assert context.values["of_tomorrow"] == {"a": 1}
    assert (context.description, context.servers) == ("what comes", ("nats://h:4222",))
    assert SECRET not in repr(context)


@pytest.mark.parametrize("path", ["~/a/my.creds", "$HOME/a/my.creds", "${HOME}/a/my.creds"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_home_and_variables_in_paths_are_expanded(home: Home, path: str, scheme: str) -> None:
    (home.folder / "a").mkdir()
    (home.folder / "a" / "my.creds").write_text(CREDS)
    home.write("c", creds=scheme + path)

    assert options_of(context="c").creds == home.folder / "a" / "my.creds"


def test_references_are_followed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    (home.folder / "pw").write_text(f"{SECRET}\n")
    inline = "data:;base64," + base64.b64encode(CREDS.encode()).decode()
    home.write("env", token="env://MY_TOKEN")  # noqa: S106 - A reference.
    home.write("file", user="bob", password=f"file://{home.folder}/pw")
    home.write("data", creds=inline)

    assert options_of(context="env").token == SECRET
    assert options_of(context="file").password == SECRET
    assert options_of(context="data").creds_pair() == (JWT, USER.seed)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"nsc": "nsc://o/a/u"}, "nsc generate creds"),
        ({"creds": "nsc://o/a/u"}, "nsc generate creds"),
        ({"password": "op://vault/item/field", "user": "bob"}, "op read"),
        ({"socks_proxy": "socks5://h:1"}, "SOCKS proxy"),
        ({"token": "env://NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"creds": "data:,hello"}, "not base64"),
        ({"creds": "~/none.creds"}, "does not exist"),
        ({"url": 5}, "not a text"),
        ({"tls_first": "yes"}, "neither true nor false"),
        ({"token": "t", "user": "u", "password": "p"}, "given together"),
        ({"creds": "~/x", "nkey": "~/y"}, "given together"),
    ],
)
def test_what_can_not_be_honoured_is_an_error(
    home: Home, values: dict[str, Any], said: str
) -> None:
    home.write("odd", **values)

    with pytest.raises(ConfigError, match=said):
        options_of(context="odd")


def test_nsc_is_not_asked_where_the_context_has_credentials(home: Home) -> None:
    (home.folder / "my.creds").write_text(CREDS)
    home.write("both", nsc="nsc://o/a/u", creds="~/my.creds")
    home.write("nsc", nsc="nsc://o/a/u")

    assert options_of(context="both").creds == home.folder / "my.creds"
    assert options_of(context="nsc", nkey=USER.seed).nkey == USER.seed


def test_contexts_are_listed_and_the_selected_one_is_told(home: Home) -> None:
    assert (context_names(), selected_context()) == ([], None)
    home.write("staging")
    home.write("prod")
    (home.nats / "context" / "notes.txt").touch()
    home.select("prod")

    assert (context_names(), selected_context()) == (["prod", "staging"], "prod")


def test_xdg_config_home_moves_the_folder(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    assert context_names() == []
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    assert context_names() == ["here"]


def test_unknown_context_is_told_with_the_closest_and_all_names(home: Home) -> None:
    home.write("staging")
    home.write("prod")

    with pytest.raises(ConfigError, match="no context 'stagin'") as caught:
        connect(context="stagin")

    assert "did you mean staging?" in caught.value.hint
    assert "known: prod, staging" in caught.value.hint


@pytest.mark.parametrize("name", ["", "..", "a/b", "../x", "a\\b", "a\0"])
def test_name_that_leaves_the_folder_is_refused(home: Home, name: str) -> None:
    del home
    with pytest.raises(ConfigError, match="not a context name"):
        connect(context=name)


def test_context_may_be_a_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write("staging", url="nats://s:1").rename(home.folder / "mine.json")
    monkeypatch.chdir(home.folder)

    for given_path in (path, str(path), "mine.json", "~/mine.json", Path("mine.json")):
        assert options_of(context=given_path).servers == ("nats://s:1",)
        assert load_context(given_path).name == "mine"
    with pytest.raises(ConfigError, match="does not exist"):
        connect(context=home.folder / "none.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"password": "' + SECRET])
def test_file_that_is_no_context_is_refused_without_its_text(home: Home, text: str) -> None:
    home.write("bad").write_text(text)

    with pytest.raises(ConfigError, match=r"bad\.json") as caught:
        connect(context="bad")

    assert SECRET not in str(caught.value)


# What wins.


def test_nothing_given_and_nothing_around_is_the_local_server(home: Home) -> None:
    del home
    assert options_of() == ConnectOptions()


def test_selected_context_is_used_when_nothing_is_given(home: Home) -> None:
    home.write("prod", url="nats://prod:1", token=SECRET)
    home.select("prod")

    assert options_of() == ConnectOptions(servers="nats://prod:1", token=SECRET)
    assert options_of(name="me").servers == ("nats://prod:1",)


def test_explicit_servers_look_at_nothing_else(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write("prod", url="nats://prod:1", token=SECRET)
    home.select("prod")
    monkeypatch.setenv("NATS_CREDS", "~/none.creds")
    monkeypatch.setenv("NATS_CONTEXT", "none")

    assert options_of(servers="nats://mine:1") == ConnectOptions(servers="nats://mine:1")


def test_explicit_context_does_not_look_at_the_environment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("prod", url="nats://prod:1")
    monkeypatch.setenv("NATS_URL", "nats://env:1")

    assert options_of(context="prod").servers == ("nats://prod:1",)


def test_environment_goes_over_the_selected_context(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write("prod", url="nats://prod:1", token=SECRET, inbox_prefix="_I")
    home.write("other", url="nats://other:1", jetstream_domain="hub")
    home.select("prod")
    monkeypatch.setenv("NATS_URL", "nats://env:1,nats://env:2")

    # As with the CLI, the context's token goes to the server of the environment.
    servers = ("nats://env:1", "nats://env:2")
    assert options_of() == ConnectOptions(servers=servers, token=SECRET, inbox_prefix="_I")
    monkeypatch.setenv("NATS_CONTEXT", "other")
    assert options_of() == ConnectOptions(servers=servers, domain="hub")
    assert options_of(domain="leaf").domain == "leaf"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"NATS_USER": "bob", "NATS_PASSWORD": "pw"}, {"user": "bob", "password": "pw"}),
        ({"NATS_USER": "tok"}, {"token": "tok"}),
        ({"NATS_TOKEN": "tok"}, {"token": "tok"}),
        ({"NATS_NKEY": USER.seed}, {"nkey": USER.seed}),
        ({"NATS_JWT": JWT, "NATS_SEED": USER.seed}, {"user_jwt": JWT, "user_seed": USER.seed}),
        ({"NATS_CA": __file__}, {"ca": __file__}),
        ({"NATS_CERT": __file__, "NATS_KEY": __file__}, {"cert": __file__, "key": __file__}),
        ({"NATS_TIMEOUT": "1m1.5s"}, {"request_timeout": 61.5}),
        ({"NATS_TIMEOUT": "250ms"}, {"request_timeout": 0.25}),
        ({"NATS_URL": "", "NATS_TOKEN": ""}, {}),
    ],
)
def test_environment_variables_are_the_cli_s(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    wanted: dict[str, Any],
) -> None:
    del home
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert options_of() == ConnectOptions(**wanted)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NATS_TIMEOUT", "5", "NATS_TIMEOUT: '5' is not a duration"),
        ("NATS_TIMEOUT", "-5s", "not a duration"),
        ("NATS_SOCKS_PROXY", "socks5://h", "SOCKS proxy"),
        ("NATS_CREDS", "op://a/b/c", "NATS_CREDS: creds refers to op://"),
        ("NATS_CREDS", "/none/x.creds", "does not exist"),
        ("NATS_CONTEXT", "none", "no context 'none'"),
        ("NATS_URL", "http://h", "not a server URL"),
    ],
)
def test_variable_that_can_not_be_honoured_is_an_error(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    del home
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=said):
        connect()


def test_selected_context_that_is_gone_is_an_error(home: Home) -> None:
    home.select("gone")

    with pytest.raises(ConfigError, match="selected context 'gone' does not exist") as caught:
        connect()

    assert "nats context select" in caught.value.hint


@pytest.mark.parametrize(
    ("values", "given", "wanted"),
    [
        # A way to sign in replaces another way whole.
        ({"user": "bob", "password": "pw"}, {"token": "t"}, {"token": "t"}),
        ({"creds": "~/none"}, {"nkey": USER.seed}, {"nkey": USER.seed}),
        ({"token": "env://NOT_SET"}, {"nkey": USER.seed}, {"nkey": USER.seed}),
        ({"token": "t"}, {"servers": "nats://a:b@h"}, {"servers": "nats://a:b@h"}),
        ({"url": "nats://a:b@h:1"}, {"token": "t"}, {"servers": "nats://h:1", "token": "t"}),
        # A password or a seed completes what the context has.
        ({"user": "bob"}, {"password": "pw"}, {"user": "bob", "password": "pw"}),
        ({"user_jwt": JWT}, {"user_seed": USER.seed}, {"user_jwt": JWT, "user_seed": USER.seed}),
        # What stands for one thing is replaced as one thing.
        ({"cert": "~/c", "key": "~/k"}, {"cert": __file__, "key": __file__},
         {"cert": __file__, "key": __file__}),
        ({"jetstream_domain": "hub"}, {"api_prefix": "$JS.x.API"}, {"api_prefix": "$JS.x.API"}),
        # Everything else is replaced by itself.
        ({"url": "nats://a", "token": "t"}, {"servers": "b"}, {"servers": "b", "token": "t"}),
        ({"inbox_prefix": "a"}, {"inbox_prefix": "b"}, {"inbox_prefix": "b"}),
        ({"tls_first": True}, {"tls_first": False}, {}),
    ],
)  # fmt: skip
def test_arguments_go_over_the_named_context(
    home: Home, values: dict[str, Any], given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    home.write("base", **values)

    assert options_of(context="base", **given) == ConnectOptions(**wanted)


def test_every_key_of_the_table_is_one_that_the_cli_writes() -> None:
    assert {source.context for source in option_sources().values()} - {""} <= EMPTY.keys()


@given(
    st.dictionaries(
        st.sampled_from(sorted(EMPTY)),
        st.none() | st.text(max_size=20) | st.integers() | st.lists(st.text(max_size=3)),
    )
)
def test_no_context_raises_anything_but_a_config_error(values: dict[str, Any]) -> None:
    context = contexts.Context("any", Path("any.json"), {**EMPTY, **values})
    try:
        options = ConnectOptions(**context.options())  # pyright: ignore[reportArgumentType]
    except ConfigError:
        return
    assert replace(options) == options


def test_resolve_options_is_what_connect_does(home: Home) -> None:
    home.write("base", url="nats://a:1")

    assert resolve_options({"name": "x"}, context="base") == options_of(context="base", name="x")
