"""Which keys and filters a bucket takes, and how long they may be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import KeyNameError
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.keys import check_key, check_key_filter

# As nats.go jetstream/kv.go has them; written anew, so that a slip in ours shows.
_GO_KEY = re.compile(r"\A[-/_=\.a-zA-Z0-9]+\Z")
_PLACE = BucketSubjects("b", "KV_b", "$KV.b.", "$KV.b.")


def _go_takes(key: str) -> bool:
    return bool(_GO_KEY.match(key)) and not (
        key.startswith(".") or key.endswith(".") or ".." in key
    )


def _takes(key: str) -> bool:
    try:
        return check_key(key) == key
    except KeyNameError:
        return False


@pytest.mark.proves("1d", "key validation on every op")
@given(st.one_of(st.text(max_size=12), st.text(alphabet="a.-/_=*>\n é", max_size=8)))
def test_a_key_is_taken_exactly_when_go_takes_it(key: str) -> None:
    assert _takes(key) == _go_takes(key)


def test_each_character_is_taken_exactly_when_go_takes_it() -> None:
    for number in range(0x180):
        assert _takes(f"a{chr(number)}b") == _go_takes(f"a{chr(number)}b"), number


@pytest.mark.parametrize("key", ["a\n", "a.b\n", "\n", "\uff41", "k\u0660"])
def test_what_a_sloppy_expression_would_let_through_is_refused(key: str) -> None:
    with pytest.raises(KeyNameError):
        check_key(key)


@pytest.mark.parametrize("key", ["*", ">", "a.*", "a.>", "a*b"])
def test_a_wildcard_is_no_key_and_the_hint_names_the_calls_for_filters(key: str) -> None:
    with pytest.raises(KeyNameError, match="wildcard") as caught:
        check_key(key)
    assert "purge_matching" in caught.value.hint


@pytest.mark.parametrize("key", [None, 3, b"a", ["a"]])
def test_a_key_of_another_type_is_a_key_name_error(key: object) -> None:
    with pytest.raises(KeyNameError):
        check_key(key)


@pytest.mark.parametrize("name", ["*", ">", "a.*", "a.>", "*.b", "a", "a/b=c.*.d"])
def test_filters_take_whole_tokens_as_wildcards(name: str) -> None:
    assert check_key_filter(name) == name


@pytest.mark.parametrize("name", ["", ".a", "a.", "a..b", "a*", "a.b>", ">.a", "a.>.b", "a b", "é"])
def test_what_is_no_filter_is_refused(name: str) -> None:
    with pytest.raises(KeyNameError):
        check_key_filter(name)


def test_a_key_may_fill_the_subject_to_its_last_byte() -> None:
    room = 3_584 - len("$KV.b.")

    assert len(_PLACE.write_subject("x" * room)) == 3_584
    with pytest.raises(KeyNameError, match=f"room for {room}"):
        _PLACE.write_subject("x" * (room + 1))


def test_the_longer_of_both_prefixes_bounds_a_key() -> None:
    """Else a key could be written and not be read, or the other way round."""
    under_domain = BucketSubjects("b", "KV_b", "$KV.b.", "$JS.hub.API.$KV.b.")
    key = "x" * (3_584 - len("$KV.b."))

    with pytest.raises(KeyNameError):
        under_domain.read_subject(key)
