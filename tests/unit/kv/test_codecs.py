"""Codecs: without loss, and in the forms of other clients."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import CodecError, ConfigError, KeyNameError
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.codecs import (
    Base64Keys,
    Base64Values,
    ChainedKeys,
    ChainedValues,
    KeyCodec,
    PathKeys,
    checked_key_codec,
    checked_value_codec,
)

_CODECS: tuple[KeyCodec, ...] = (
    Base64Keys(),
    Base64Keys("standard"),
    PathKeys(),
    ChainedKeys(PathKeys(), Base64Keys()),
)


class _Upper:
    """A codec of a user's own, which knows no wildcards."""

    def encode(self, key: str) -> str:
        return key.upper()

    def decode(self, stored: str) -> str:
        return stored.lower()


def _place(keys: KeyCodec) -> BucketSubjects:
    return BucketSubjects("b", "KV_b", "$KV.b.", "$KV.b.", key_codec=keys)


@given(st.sampled_from(_CODECS), st.text(max_size=20) | st.text(alphabet="ab./_*>+é\n", max_size=9))
def test_a_key_comes_back_as_it_was_or_is_refused(codec: KeyCodec, key: str) -> None:
    place = _place(codec)
    try:
        subject = place.write_subject(key)
    except KeyNameError:
        return
    assert place.key_of(subject) == key
    assert not {"*", ">", ""} & set(subject.split("."))


@given(st.sampled_from(_CODECS), st.text(max_size=8), st.text(max_size=8))
def test_two_keys_are_never_stored_under_one_subject(codec: KeyCodec, one: str, two: str) -> None:
    place = _place(codec)
    try:
        subjects = place.write_subject(one), place.write_subject(two)
    except KeyNameError:
        return
    assert (subjects[0] == subjects[1]) == (one == two)


@given(st.text(min_size=1, max_size=20).filter(lambda key: all(key.split("."))))
def test_base64_takes_every_text_without_empty_tokens(key: str) -> None:
    assert _place(Base64Keys()).key_of(_place(Base64Keys()).write_subject(key)) == key


@pytest.mark.parametrize("codec", _CODECS)
def test_text_that_is_no_unicode_is_refused(codec: KeyCodec) -> None:
    with pytest.raises(KeyNameError):
        _place(codec).write_subject("a\ud800")


def test_base64_keys_are_those_of_orbit() -> None:
    """kvcodec's base64_codec.go: each token, RawURLEncoding."""
    codec = Base64Keys()

    assert codec.encode("Acme Inc.contact") == "QWNtZSBJbmM.Y29udGFjdA"
    assert codec.encode("ÿþ?>.é") == "w7_Dvj8-.w6k"
    assert codec.encode_filter("Acme Inc.*.x.>") == "QWNtZSBJbmM.*.eA.>"


def test_standard_base64_keys_are_those_of_nats_js() -> None:
    """btoa, with padding, of characters as Latin-1 bytes."""
    codec = Base64Keys("standard")

    assert codec.encode("Acme Inc.contact") == "QWNtZSBJbmM=.Y29udGFjdA=="
    assert codec.encode("é") == "6Q=="
    with pytest.raises(KeyNameError, match="cannot be encoded"):
        codec.encode("€")


def test_standard_base64_with_a_plus_is_refused_as_nats_js_does() -> None:
    assert "+" in Base64Keys("standard").encode("~~>")
    with pytest.raises(KeyNameError):
        _place(Base64Keys("standard")).write_subject("~~>")


@pytest.mark.parametrize(
    ("path", "stored"),
    [("/", "_root_"), ("/config/app", "_root_.config.app"), ("a/b", "a.b"), ("a", "a")],
)
def test_paths_are_those_of_orbit(path: str, stored: str) -> None:
    assert PathKeys().encode(path) == stored
    assert PathKeys().decode(stored) == path


@pytest.mark.parametrize("path", ["a/", "/a/", "a.b", "_root_/a", "_root_", "a//b", "//"])
def test_paths_that_would_come_back_as_others_are_refused(path: str) -> None:
    with pytest.raises(KeyNameError):
        _place(PathKeys()).write_subject(path)


def test_wildcards_stay_wildcards_in_filters_and_become_text_in_keys() -> None:
    place = _place(Base64Keys())

    assert place.read_filter("a.*") == "$KV.b.YQ.*"
    assert place.read_subject("a.*") == "$KV.b.YQ.Kg"
    assert _place(PathKeys()).read_filter("/config/>") == "$KV.b._root_.config.>"
    assert _place(_CODECS[3]).read_filter("/a/*") == "$KV.b.X3Jvb3Rf.YQ.*"


def test_a_codec_without_filters_takes_keys_but_no_wildcards() -> None:
    place = _place(_Upper())

    assert place.read_filter("a.b") == "$KV.b.A.B"
    for codec in (_Upper(), ChainedKeys(Base64Keys(), _Upper())):
        with pytest.raises(KeyNameError, match="takes no wildcards"):
            _place(codec).read_filter("a.*")


@pytest.mark.parametrize("stored", ["plain key", "YQ==", "Y", "YR", "a+b"])
def test_a_stored_key_of_another_form_is_a_codec_error(stored: str) -> None:
    with pytest.raises(CodecError) as caught:
        _place(Base64Keys()).key_of(f"$KV.b.{stored}")
    assert caught.value.key == stored


@given(st.binary(max_size=40))
def test_values_come_back_and_are_those_of_orbit(value: bytes) -> None:
    codec = Base64Values()

    assert codec.decode(codec.encode(value)) == value
    assert codec.encode(value) == base64.urlsafe_b64encode(value).rstrip(b"=")
    chain = ChainedValues(codec, codec)
    assert chain.decode(chain.encode(value)) == value


@pytest.mark.parametrize("codec", [Base64Keys, "text", b"bytes", 3, None])
def test_what_is_no_codec_is_refused(codec: object) -> None:
    with pytest.raises(ConfigError):
        ChainedKeys(codec)  # pyright: ignore[reportArgumentType] - The point of the test.
    with pytest.raises(ConfigError):
        ChainedValues(codec)  # pyright: ignore[reportArgumentType] - As above.


def test_a_codec_in_the_other_place_is_told_its_own() -> None:
    keys, values = ChainedKeys(Base64Keys()), ChainedValues(Base64Values())
    for codec in (Base64Keys(), PathKeys(), keys):
        with pytest.raises(ConfigError, match="encodes keys") as told:
            checked_value_codec(codec)
        assert told.value.hint == f"with_codec(keys={codec!r})"
    for codec in (Base64Values(), values):
        with pytest.raises(ConfigError, match="encodes values") as told:
            checked_key_codec(codec)
        assert told.value.hint == f"with_codec(values={codec!r})"


def test_a_chain_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError):
        ChainedKeys()
    with pytest.raises(ConfigError):
        ChainedValues()


def test_the_alphabet_has_two_names() -> None:
    with pytest.raises(ConfigError, match="alphabet"):
        Base64Keys("urlsafe")  # pyright: ignore[reportArgumentType] - The point of the test.
