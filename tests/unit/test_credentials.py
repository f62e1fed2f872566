"""What a seed and a `.creds` file look like, and what is told of those that are damaged."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.credentials import check_user_seed, existing_file, find_user_seed, parse_creds
from natsstream.errors import ConfigError
from tests.support.accounts import KeyPair, Operator, creds_text

if TYPE_CHECKING:
    from pathlib import Path

USER = KeyPair.new("user")
JWT = Operator().user_jwt(USER)


def test_creds_hold_jwt_and_seed() -> None:
    assert parse_creds(creds_text(JWT, USER.seed), source="a file") == (JWT, USER.seed)


@pytest.mark.parametrize(
    ("old", "new"),
    [("\n", "\r\n"), ("------END", "-----END"), ("-----BEGIN NATS", "\n\n-----BEGIN NATS")],
)
def test_creds_are_read_however_they_were_saved(old: str, new: str) -> None:
    text = creds_text(JWT, USER.seed).replace(old, new)

    for saved in (text, text.rstrip()):
        assert parse_creds(saved, source="f") == (JWT, USER.seed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        creds_text("", USER.seed),
        creds_text(JWT, ""),
        creds_text("no-jwt", USER.seed),
        creds_text(JWT, USER.seed[:-1]),
        creds_text(JWT, KeyPair.new("account").seed),
    ],
)
def test_creds_that_are_none_are_a_config_error_without_their_text(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_creds(text, source="user.creds")

    assert "user.creds" in str(caught.value)
    assert JWT not in str(caught.value)
    assert USER.seed not in str(caught.value)


def test_folder_is_not_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"creds: {tmp_path} is a folder"):
        existing_file(tmp_path, option="creds")


def test_seed_of_an_account_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="not a user's"):
        check_user_seed(KeyPair.new("account").seed, source="nkey")


@given(st.integers(0, 57), st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))
def test_seed_with_one_wrong_letter_is_refused(index: int, letter: str) -> None:
    damaged = USER.seed[:index] + letter + USER.seed[index + 1 :]
    if damaged == USER.seed:
        return
    with pytest.raises(ConfigError):
        check_user_seed(damaged, source="nkey")


@given(st.text(max_size=80))
def test_no_text_raises_anything_but_a_config_error(text: str) -> None:
    for check in (check_user_seed, find_user_seed, parse_creds):
        try:
            check(text, source="text")
        except ConfigError:
            continue
        except binascii.Error:  # pragma: no cover - What must not happen.
            pytest.fail("a codec's error escaped")


def test_seed_is_found_between_lines_of_dashes() -> None:
    text = f"-----BEGIN USER NKEY SEED-----\n{USER.seed}\n------END USER NKEY SEED------\n"

    assert find_user_seed(text, source="f") == USER.seed
    assert find_user_seed(f"\n {USER.seed}\n", source="f") == USER.seed
