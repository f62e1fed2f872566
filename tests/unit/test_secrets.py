"""No text tells a secret, in whatever form and wherever it was given.

Each way of giving a secret is tried with secrets that are quoted, spaced, cut, in other letters, or
full of what a URL has to escape. All that can be read afterwards is searched for six characters of
the secret in a row: errors with all of their causes as a traceback prints them, reprs, and the log.
"""

from __future__ import annotations

import json
import logging
import random
import string
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark_natsstream.read_options import ReadOptions

import natsstream as ns
from natsstream.contexts import load_context, resolve_options
from natsstream.errors import ConfigError
from natsstream.options import ConnectOptions, public_url
from natsstream.testing import NatsServer, ServerStartError
from tests.support.accounts import KeyPair, Operator, creds_text

_RANDOM = random.Random(7)  # noqa: S311 - The same in every run.
SEED = KeyPair.new("user").seed
JWT = Operator().user_jwt(KeyPair.new("user"))
# Letters that no message has in a row.
WORD = "".join(_RANDOM.choices(string.ascii_letters + string.digits, k=40))
AROUND = creds_text("a.b.c", "").replace("\n", " ").lower()
ODD = "@:/#?,[]%+&= \\\"'`;!$\t"
GRAM = 6

Form = Callable[[str], str]
FORMS: dict[str, Form] = {
    "as it is": lambda text: text,
    "in quotes": lambda text: f'"{text}"',
    "in single quotes": lambda text: f"'{text}'",
    "with a blank before": lambda text: f"  {text}",
    "with a blank in it": lambda text: f"{text[:20]} {text[20:]}",
    "with a line break in it": lambda text: f"{text[:20]}\n{text[20:]}",
    "in small letters": str.lower,
    "with another prefix": lambda text: f"X{text[1:]}",
    "cut to half": lambda text: text[: len(text) // 2],
    "cut to a few": lambda text: text[:12],
    "without its begin": lambda text: text[3:],
    "twice": lambda text: f"{text}{text}",
    "with its name": lambda text: f"NKEY={text}",
    "as a path": lambda text: f"/{text}",
    "as two folders": lambda text: f"{text[:20]}/{text[20:]}",
    "with a semicolon": lambda text: f"{text};",
    "as bytes were shown": lambda text: f"b'{text}'",
    "in dashes": lambda text: f"-----BEGIN USER NKEY SEED-----\n{text}\n",
    "as creds in one line": lambda text: creds_text("a.b.c", text).replace("\n", " "),
}
# One text for each kind, and each form of it.
SECRETS = {
    f"{kind} {how}": form(text)
    for kind, text in (("seed", SEED), ("JWT", JWT), ("word", WORD))
    for how, form in FORMS.items()
}
FIELDS = ("creds", "nkey", "user_jwt", "user_seed", "token", "password", "ca", "cert", "key")


def grams(secret: str) -> set[str]:
    """Return what must not be read: each six characters of a secret, in letters of any size."""
    found = {secret[at : at + GRAM].lower() for at in range(len(secret) - GRAM + 1)}
    # What the forms put around a secret is none.
    return {
        gram
        for gram in found
        if sum(letter.isalnum() for letter in gram) >= GRAM - 1 and gram not in AROUND
    }


def told(call: Callable[[], object], caplog: pytest.LogCaptureFixture | None = None) -> str:
    """Return all that a call lets a reader see."""
    try:
        text = repr(call())
    except ConfigError as error:
        chain: list[BaseException] = []
        cause: BaseException | None = error
        while cause is not None and cause not in chain:
            chain.append(cause)
            hidden = cause.__suppress_context__
            cause = cause.__cause__ or (None if hidden else cause.__context__)
        shown = [*map(str, chain), *map(repr, chain), *(repr(each.args) for each in chain)]
        text = "\n".join([*shown, error.detail, error.hint, *traceback.format_exception(error)])
    return text + ("" if caplog is None else caplog.text)


def leak(text: str, secret: str) -> str:
    """Return what a text tells of a secret."""
    lower = text.lower()
    return next((gram for gram in grams(secret) if gram in lower), "")


def options(**given: Any) -> list[str]:
    """Return what describing a connection shows, in each of the ways to do it."""
    made = ConnectOptions(**given)
    urls = [public_url(url) for url in made.servers]
    return [repr(made), repr(ns.connect(made)), repr(ns.connect(**given)), *urls]


def leaks(way: Callable[[str], object]) -> dict[str, str]:
    """Return which of all secrets are told by a way to give them, and the letters that tell."""
    found = {name: leak(told(lambda: way(secret)), secret) for name, secret in SECRETS.items()}  # noqa: B023 - Called at once.
    return {name: letters for name, letters in found.items() if letters}


@pytest.mark.parametrize("name", FIELDS)
def test_no_option_shows_what_was_given_in_it(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    more = {"password": {"user": "u"}, "user_seed": {"user_jwt": "x"}, "key": {"cert": __file__}}

    assert leaks(lambda secret: options(**{name: secret}, **more.get(name, {}))) == {}
    assert not any(leak(caplog.text, secret) for secret in SECRETS.values())


@pytest.mark.parametrize("name", ["creds", "nkey"])
def test_file_with_a_spoiled_secret_is_not_shown(name: str, tmp_path: Path) -> None:
    held = tmp_path / "held"

    def read(secret: str) -> object:
        held.write_text(secret)
        return options(**{name: held})

    assert leaks(read) == {}


# Letters that no word of a message has six of in a row.
odd_secrets = st.text(st.sampled_from("qwxzjkvQWXZJKV3579" + ODD), min_size=8, max_size=40)
URLS = (
    "nats://ann:{}@h:4222",
    "ann:{}@h",
    "nats://{}@h:4222",
    "{}@h",
    "tls://ann:{}@h1,tls://ann:{}@h2",
    "nats://h1,nats://ann:{}@h2:4222",
    "nats://h1,ann:{}@h2:4222",
    "http://ann:{}@h",
    "nats://ann:{}@h:port",
    "nats://ann:{}",
)


def is_a_host(url: str, secret: str) -> bool:
    """Tell whether a secret stands where only a host can stand, so that none is recognised."""
    return "@" not in url.replace("{}", "") and secret.isalnum()


@given(st.sampled_from(URLS), odd_secrets)
@example("nats://ann:{}@h", "Xq7vPwZt-1,x")
@example("nats://ann:{}@h", "12345,abcdefghij")
@example("nats://ann:{}@h", "12345/abcdefghij")
@example("nats://ann:{}@h", "abcdefgh@ijklmnop,x")
@example("nats://{}@h", "abcdefgh%40ijklmnop,x")
def test_no_url_shows_what_stands_in_it(url: str, secret: str) -> None:
    if "://" in secret or is_a_host(url, secret):
        return
    whole = url.format(*[secret] * url.count("{}"))
    ways: list[Callable[[], object]] = [
        lambda: options(servers=whole),
        lambda: options(servers=[whole]),
        lambda: options(servers=whole.encode()),
        lambda: options(servers={whole}),
        lambda: options(servers=[whole.encode()]),
        lambda: options(servers=[whole, 5]),
        lambda: public_url(whole),
        lambda: ReadOptions.parse({"servers": whole, "stream": "S"}),
    ]

    assert [leak(told(way), secret) for way in ways] == [""] * len(ways)


def _contexts(folder: Path, secret: str) -> Iterator[Callable[[], object]]:
    """Yield the ways in which a context's file may hold a secret."""
    path = folder / "c.json"

    def read(values: dict[str, object]) -> object:
        path.write_text(json.dumps(values))
        context = load_context(path)
        return [repr(context), context.servers, resolve_options({}, context=path)]

    for key in ("token", "password", "creds", "nkey", "user_jwt", "user_seed", "cert", "key", "ca"):
        yield lambda key=key: read({"url": "nats://h", "user": "u", key: secret})
        yield lambda key=key: read({"url": "nats://h", key: [secret]})
        yield lambda key=key: read({"url": "nats://h", key: f"data:;base64,{secret}"})
    for url in URLS:
        whole = url.format(*[secret] * url.count("{}"))
        if not is_a_host(url, secret):
            yield lambda whole=whole: read({"url": whole})
            yield lambda whole=whole: read({"url": [whole]})
    path.write_text(f'{{"url": "nats://h", "password": "{secret}')
    yield lambda: load_context(path)


@settings(max_examples=15)  # Each is some forty contexts and their tracebacks.
@given(odd_secrets | st.sampled_from(list(SECRETS.values())))
def test_no_context_shows_what_stands_in_it(secret: str) -> None:
    if "://" in secret:
        return
    with tempfile.TemporaryDirectory() as folder:
        found = [leak(told(way), secret) for way in _contexts(Path(folder), secret)]

    assert not any(found)


@pytest.mark.parametrize("name", ["creds", "nkey", "key"])
def test_no_option_of_spark_shows_what_was_given_in_it(name: str) -> None:
    def read(secret: str) -> object:
        found = ReadOptions.parse({"servers": "nats://h", "stream": "S", name: secret})
        files = {each: getattr(found, each) for each in ("creds", "nkey", "key")}
        return [repr(found), *options(cert=__file__ if found.key else None, **files)]

    assert leaks(read) == {}


@pytest.mark.parametrize("variable", ["NATS_URL", "NATS_CREDS", "NATS_NKEY", "NATS_TOKEN"])
def test_no_variable_shows_what_stands_in_it(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def read(secret: str) -> object:
        monkeypatch.setenv(
            variable, f"nats://ann:{secret},x@h" if variable == "NATS_URL" else secret
        )
        return ns.connect()

    assert leaks(read) == {}


@pytest.mark.parametrize(
    "config",
    [
        "authorization {{ user: ann, password: ${} }}",
        'authorization {{ users = [{{user: ann, password: "{}"}}, {{token: {}}}]',
        "authorization {{ token ${} }}",
    ],
)
def test_server_of_a_test_that_does_not_start_tells_no_secret_of_its_config(config: str) -> None:
    secret = "Xq7vPwZt19"  # noqa: S105 - It is what the test looks for.
    with (
        pytest.raises(ServerStartError) as caught,
        NatsServer(config=config.format(secret, secret)),
    ):
        pass

    assert not leak(str(caught.value), secret)
