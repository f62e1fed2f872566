"""Infos of objects: the JSON that is written, and the JSON that is read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from natsstream.errors import ObjectMetaError
from natsstream.objects.info import (
    ObjectInfo,
    ObjectLink,
    ObjectOptions,
    read_digest,
    write_digest,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUIDS = st.text("abcABC123", min_size=1, max_size=22)


def read(data: bytes | str) -> ObjectInfo:
    """Return what a message of the store "files" says of the object "a"."""
    body = data.encode() if isinstance(data, str) else data
    return ObjectInfo.from_json(body, bucket="files", name="a", revision=7, mtime_ns=9)


def test_the_json_is_that_of_nats_go_byte_for_byte() -> None:
    # As json.Marshal of its ObjectInfo writes it: order, zero time, sorted keys, escapes.
    info = ObjectInfo(
        name="a<b>&é",
        description="d",
        headers={"Z": ("1", "2"), "A": ("x",)},
        metadata={"k2": "v", "k1": "w"},
        options=ObjectOptions(max_chunk_size=131072),
        bucket="files",
        nuid="N1",
        size=3,
        chunks=1,
        digest="SHA-256=abc=",
    )

    assert (
        info.to_json()
        == (
            '{"name":"a\\u003cb\\u003e\\u0026é","description":"d","headers":{"A":["x"],"Z":["1","2"]},'
            '"metadata":{"k1":"w","k2":"v"},"options":{"max_chunk_size":131072},"bucket":"files",'
            '"nuid":"N1","size":3,"mtime":"0001-01-01T00:00:00Z","chunks":1,"digest":"SHA-256=abc="}'
        ).encode()
    )


def test_the_marker_of_a_deleted_object_is_that_of_nats_go() -> None:
    info = ObjectInfo(name="a", bucket="files", nuid="N1", deleted=True)

    assert info.to_json() == (
        b'{"name":"a","bucket":"files","nuid":"N1","size":0,"mtime":"0001-01-01T00:00:00Z",'
        b'"chunks":0,"deleted":true}'
    )


def test_repr_is_one_line_with_what_people_look_for() -> None:
    info = ObjectInfo(name="a\nb", bucket="files", nuid="N1", size=7, mtime_ns=10**9)

    assert repr(info) == r"<ObjectInfo 'a\nb' in files: 7 bytes, 1970-01-01 00:00:01Z>"
    assert repr(replace(info, deleted=True, mtime_ns=0)) == r"<ObjectInfo 'a\nb' in files: deleted>"
    link = ObjectOptions(link=ObjectLink("other", "b"))
    assert "a link, 1970" in repr(replace(info, options=link))


def test_links_are_those_of_nats_go() -> None:
    info = ObjectInfo(name="a", bucket="files", nuid="N1")

    one = replace(info, options=ObjectOptions(link=ObjectLink("other", "b")))
    all_of_it = replace(info, options=ObjectOptions(link=ObjectLink("other")))

    assert b'"options":{"link":{"bucket":"other","name":"b"}},' in one.to_json()
    assert b'"options":{"link":{"bucket":"other"}},' in all_of_it.to_json()


def test_headers_that_are_no_lists_are_taken() -> None:
    # nats-py writes them so.
    assert read('{"nuid":"N","headers":{"K":"V","L":["x","y"]}}').headers == {
        "K": ("V",),
        "L": ("x", "y"),
    }


@pytest.mark.parametrize("mtime", ['""', "null", '"2024-01-01T00:00:00Z"', "5", '"nonsense"'])
def test_any_mtime_is_taken_and_the_messages_time_counts(mtime: str) -> None:
    info = read(f'{{"nuid":"N","mtime":{mtime}}}')

    assert info.mtime_ns == 9
    assert json.loads(info.to_json())["mtime"] == "0001-01-01T00:00:00Z"


def test_missing_fields_are_taken() -> None:
    info = read("{}")

    assert (info.name, info.bucket, info.revision, info.size, info.nuid) == ("a", "files", 7, 0, "")


def test_the_subjects_name_counts_where_the_json_has_another_one() -> None:
    # nats-py stores a new name under the old subject.
    assert read('{"name":"b","bucket":"x","nuid":"N"}').name == "a"


def test_fields_that_are_not_known_go_back_as_they_came() -> None:
    body = {"nuid": "N", "new": {"x": [1]}, "options": {"later": 1, "max_chunk_size": 5}}

    written = json.loads(read(json.dumps(body)).to_json())

    assert written["new"] == {"x": [1]}
    assert written["options"] == {"max_chunk_size": 5, "later": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"[]",
        b"\xff",
        b'{"nuid":"N","size":"3"}',
        b'{"nuid":"N","size":-3}',
        b'{"nuid":"N","size":1.5}',
        b'{"nuid":"N","chunks":true}',
        b'{"nuid":"N","headers":{"K":[1]}}',
        b'{"nuid":"N","headers":[]}',
        b'{"nuid":"N","metadata":{"K":1}}',
        b'{"nuid":"N","options":"x"}',
        b'{"nuid":"N","options":{"link":"x"}}',
        b'{"nuid":"N","deleted":"yes"}',
        b'{"chunks":3}',
        b'{"nuid":"N","x":NaN}',
        b"[" * 100_000,
    ],
)
def test_what_describes_no_object_is_refused_with_its_place(data: bytes) -> None:
    with pytest.raises(ObjectMetaError) as caught:
        read(data)

    assert (caught.value.name, caught.value.revision) == ("a", 7)


@pytest.mark.parametrize("nuid", [">", "*", "a.b", "a b", "a\n", ".", "x" * 300])
def test_a_nuid_that_could_name_the_chunks_of_others_is_refused(nuid: str) -> None:
    # A purge of its subject would take them.
    with pytest.raises(ObjectMetaError):
        read(json.dumps({"nuid": nuid}))


@given(
    description=TEXTS,
    headers=st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3).map(tuple), max_size=3),
    metadata=st.dictionaries(TEXTS, TEXTS, max_size=3),
    nuid=NUIDS,
    size=st.integers(0, 2**63),
    deleted=st.booleans(),
)
def test_what_is_written_is_read(
    description: str,
    headers: dict[str, tuple[str, ...]],
    metadata: dict[str, str],
    nuid: str,
    size: int,
    deleted: bool,  # noqa: FBT001 - Hypothesis gives it by name.
) -> None:
    info = ObjectInfo(
        name="a",
        bucket="files",
        nuid=nuid,
        size=size,
        description=description,
        headers=headers,
        metadata=metadata,
        deleted=deleted,
        revision=7,
        mtime_ns=9,
    )

    assert read(info.to_json()) == info


@settings(max_examples=50)
@given(st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, st.lists))
def test_any_json_is_read_or_refused(value: object) -> None:
    for body in (value, {"nuid": value}, {"options": value}, {"headers": {"K": value}}):
        try:
            info = read(json.dumps(body))
        except ObjectMetaError:
            continue
        assert read(info.to_json()) == info


def test_half_of_a_surrogate_pair_goes_back_as_the_escape_that_it_was() -> None:
    info = read('{"nuid":"N","description":"\\ud800"}')

    assert b'"description":"\\ud800"' in info.to_json()


@pytest.mark.proves("1e", "digest check")
def test_digests_are_written_with_padding_and_read_in_any_base64() -> None:
    digest = bytes(range(224, 256))

    text = write_digest(digest)

    assert text.startswith("SHA-256=")
    assert text.endswith("=")
    standard = text.replace("-", "+").replace("_", "/").replace("SHA+", "SHA-")
    for form in (text, text.rstrip("="), standard, text.replace("SHA", "sha")):
        assert read_digest(form) == digest


@pytest.mark.parametrize("text", ["", "MD5=abc", "SHA-256=", "SHA-256=ab", "SHA-256=\u00e9"])
def test_what_is_no_digest_is_told_apart(text: str) -> None:
    assert read_digest(text) is None
