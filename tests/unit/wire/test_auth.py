"""From options to what nats-py takes: who signs in, what stays hidden, and when TLS is a must."""

from __future__ import annotations

import pickle
import ssl
import sys
from typing import Any, cast

import pytest

from natsstream._wire.auth import auth_arguments, demand_tls, tls_failure
from natsstream.errors import MissingExtraError
from natsstream.options import ConnectOptions
from tests.support.accounts import KeyPair, Operator, creds_text

USER = KeyPair.new("user")
JWT = Operator().user_jwt(USER)
URL = "nats://127.0.0.1:4222"


def arguments_of(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in auth_arguments(ConnectOptions(**given)).items() if value}


def test_without_credentials_nothing_is_passed() -> None:
    assert arguments_of() == {}


@pytest.mark.parametrize(
    ("servers", "wanted"),
    [
        ("nats://b%40b:p%2F@a", {"user": "b@b", "password": "p/"}),
        ("nats://tok@a", {"token": "tok"}),
        ("nats://u:p@a,nats://u:p@b", {"user": "u", "password": "p"}),
        # nats-py takes the user of each URL by itself.
        ("nats://u:p@a,nats://v:p@b", {}),
        ("nats://u:p@a,nats://b", {}),
    ],
)
def test_user_of_all_urls_holds_for_servers_that_are_told_of_later(
    servers: str, wanted: dict[str, str]
) -> None:
    assert arguments_of(servers=servers) == wanted


@pytest.mark.parametrize(
    "given", [{"creds": creds_text(JWT, USER.seed)}, {"user_jwt": JWT, "user_seed": USER.seed}]
)
def test_seed_is_in_no_text_of_what_is_passed(given: dict[str, str]) -> None:
    passed = arguments_of(**given)["user_credentials"]

    assert USER.seed in passed.data
    assert not any(USER.seed in shown for shown in (repr(passed), str(passed), f"{passed}"))
    assert USER.seed not in repr(vars(cast("object", passed)))


def test_function_is_asked_each_time() -> None:
    tokens = iter(["first", "second"])
    passed = arguments_of(token=lambda: next(tokens))["token"]

    assert [passed(), passed()] == ["first", "second"]


def test_bearer_jwt_is_sent_without_a_signature() -> None:
    passed = arguments_of(user_jwt=JWT)

    assert (passed["user_jwt_cb"](), passed["signature_cb"]("nonce")) == (JWT.encode(), b"")


def test_tls_checks_certificate_and_name() -> None:
    context: ssl.SSLContext = arguments_of(servers="tls://a")["tls"]

    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_tls_that_is_offered_is_demanded_and_none_is_refused() -> None:
    offered: dict[str, Any] = {"tls_available": True}
    demand_tls(offered)
    assert offered["tls_required"]

    with pytest.raises(ssl.SSLError, match="offers no TLS"):
        demand_tls({})


@pytest.mark.parametrize("info", [{}, 5, None, [], {"tls_verify": True}])
def test_failure_that_is_not_of_tls_is_none_whatever_a_stranger_sent(info: object) -> None:
    assert tls_failure(URL, ValueError("x"), ConnectOptions(), info) is None


def test_reason_of_openssl_is_told_without_its_file_and_line() -> None:
    error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
    failure = tls_failure(URL, error, ConnectOptions(), {})

    assert failure is not None
    assert "_ssl.c" not in failure.detail


def test_options_with_functions_are_plain_values() -> None:
    # What can be pickled can go to another process; a lambda can not, a function of a module can.
    options = ConnectOptions(token=str)

    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - Our own bytes.


@pytest.mark.parametrize(
    "given", [{"creds": creds_text(JWT, USER.seed)}, {"nkey": USER.seed}], ids=["creds", "nkey"]
)
def test_missing_nkeys_says_what_to_install(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nkeys", None)

    with pytest.raises(MissingExtraError, match="nkeys") as caught:
        arguments_of(**given)

    assert caught.value.hint == "pip install 'nats-py[nkeys]'"
