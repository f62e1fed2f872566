"""Names of stores and objects, and the subjects that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.names import STREAM_NAME_BYTES_MAX, SUBJECT_BYTES_MAX, check_subject
from natsstream.errors import BucketNameError, ConfigError, ObjectNameError
from natsstream.objects.describing import Description
from natsstream.objects.info import ObjectInfo, is_nuid, new_nuid
from natsstream.objects.kind import STORE
from natsstream.objects.store_subjects import StoreSubjects

SUBJECTS = StoreSubjects("files")
STORE_NAME_CHARS_MAX = STREAM_NAME_BYTES_MAX - len("OBJ_")


def test_subjects_are_those_of_every_client() -> None:
    assert SUBJECTS.stream == "OBJ_files"
    assert SUBJECTS.chunk_filter == "$O.files.C.>"
    assert SUBJECTS.meta_filter == "$O.files.M.>"
    assert SUBJECTS.chunk_subject("N1") == "$O.files.C.N1"
    # Base64 for URLs, with its padding.
    assert SUBJECTS.meta_subject("a.bin") == "$O.files.M.YS5iaW4="
    assert SUBJECTS.meta_subject("ÿÿ>>>") == "$O.files.M.w7_Dvz4-Pg=="


@given(st.text())
def test_a_name_comes_back_from_its_subject_or_is_refused(name: str) -> None:
    try:
        checked = SUBJECTS.check_object_name(name)
    except ObjectNameError:
        assert not name
        return

    subject = SUBJECTS.meta_subject(checked)

    assert check_subject(subject) == subject
    assert subject.count(".") == 3
    assert SUBJECTS.name_of(subject) == name


@pytest.mark.parametrize(
    "name", ["*", ">", "..", " ", "a/b", "\x00", "\r\n", "é", "💾", "a" * 1024]
)
def test_names_that_no_subject_could_have_are_legal(name: str) -> None:
    assert SUBJECTS.name_of(SUBJECTS.meta_subject(SUBJECTS.check_object_name(name))) == name


@pytest.mark.parametrize("name", ["", "\ud800", "a\udcff", b"a", None, 5])
def test_what_is_no_text_is_no_name(name: object) -> None:
    with pytest.raises(ObjectNameError):
        SUBJECTS.check_object_name(name)


def test_the_longest_name_fits_and_one_more_byte_does_not() -> None:
    longest = "n" * SUBJECTS.name_bytes_max

    assert len(SUBJECTS.meta_subject(SUBJECTS.check_object_name(longest))) <= SUBJECT_BYTES_MAX
    with pytest.raises(ObjectNameError):
        SUBJECTS.check_object_name(longest + "n")


@pytest.mark.parametrize("subject", ["YS5i!", "YQ", "YQ==.x", "", "YR==", "_w==", "é"])
def test_a_subject_that_no_client_would_write_has_no_name(subject: str) -> None:
    assert SUBJECTS.name_of(f"$O.files.M.{subject}") is None


@pytest.mark.parametrize("bucket", ["a", "A-b_9", "x" * STORE_NAME_CHARS_MAX])
def test_names_of_stores_are_letters_digits_dashes(bucket: str) -> None:
    assert STORE.check_name(bucket) == bucket


@pytest.mark.parametrize(
    "bucket", ["", "a.b", "a b", "a*", ">", "é", "a\n", "x" * (STORE_NAME_CHARS_MAX + 1), 5, None]
)
def test_other_names_of_stores_are_refused(bucket: object) -> None:
    with pytest.raises(BucketNameError):
        STORE.check_name(bucket)


def test_nuids_are_tokens_and_no_two_are_the_same() -> None:
    made = {new_nuid() for _ in range(1_000)}

    assert len(made) == 1_000
    assert all(is_nuid(nuid) and len(nuid) == 22 for nuid in made)


def test_headers_are_texts_or_lists_of_them() -> None:
    given = Description(None, {"A": "x", "B": ["y", "z"], "C": []}, None)

    info = given.apply(ObjectInfo(name="a", bucket="files", nuid="N"))

    assert info.headers == {"A": ("x",), "B": ("y", "z"), "C": ()}


@pytest.mark.parametrize(
    "headers", [{"A": 1}, {"A": b"x"}, {"A": [1]}, {1: "x"}, "A", {"A": "\ud800"}]
)
def test_other_headers_are_refused(headers: object) -> None:
    with pytest.raises(ConfigError):
        Description(None, headers, None)


@pytest.mark.parametrize("metadata", [{"A": ["x"]}, {"A": None}, {1: "x"}, ["A"], {"\udcff": "x"}])
def test_metadata_is_text_by_text(metadata: object) -> None:
    with pytest.raises(ConfigError):
        Description(None, None, metadata)


def test_a_description_is_text() -> None:
    with pytest.raises(ConfigError):
        Description(b"x", None, None)
