"""Where a core stream is: paths, streams, subjects and tokens of keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.names import covers
from natsstream.conat.keys import key_of_token, token_of
from natsstream.conat.names import StreamNames, check_path, owner_path, storage_path
from natsstream.errors import ConfigError, StoragePathError, SubjectError

_ID = "00000000-0000-4000-8000-00000000000a"
_OTHER_ID = "00000000-0000-4000-8000-00000000000b"
_NAMES = StreamNames("hub/chat")
_KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=400)


def test_a_path_begins_with_its_owner() -> None:
    assert storage_path("chat") == "hub/chat"
    assert storage_path("a/b c", project_id=_ID) == f"projects/{_ID}/a/b c"
    assert storage_path("a", account_id=_ID) == f"accounts/{_ID}/a"


def test_an_empty_name_is_told_as_empty() -> None:
    with pytest.raises(StoragePathError, match="the name is empty"):
        storage_path("")


def test_an_account_counts_before_a_project() -> None:
    path = storage_path("a", account_id=_ID, project_id=_OTHER_ID)

    assert path == f"accounts/{_ID}/a"


@pytest.mark.parametrize("name", ["a/b", "/a/b", "a//b", "./a/b", "a/./b", "x/../a/b"])
def test_name_and_owner_are_joined_as_node_joins_them(name: str) -> None:
    assert storage_path(name) == "hub/a/b"


@pytest.mark.parametrize("name", ["a/", "..", "../hubs", "../../x", "/", "a/../..", "."])
def test_a_name_that_is_none_of_the_owners_is_denied(name: str) -> None:
    with pytest.raises(StoragePathError, match="permission denied"):
        storage_path(name)


def test_a_path_has_at_most_4000_characters_of_javascript() -> None:
    assert storage_path("x" * 3_996) == f"hub/{'x' * 3_996}"
    assert storage_path("\U0001f600" * 1_998)
    for name in ("x" * 3_997, "\U0001f600" * 1_999):
        with pytest.raises(StoragePathError, match="4,000"):
            storage_path(name)


def test_a_name_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(ConfigError):
        storage_path("\ud800")


@pytest.mark.parametrize("owner", ["", "x", "../hub", _ID[:-1], f"{_ID}/b", f"{_ID}\n"])
def test_an_owner_without_a_uuid_is_denied(owner: str) -> None:
    with pytest.raises(StoragePathError, match="no UUID"):
        owner_path(account_id=owner)
    with pytest.raises(StoragePathError, match="no UUID"):
        storage_path("a", project_id=owner)


@pytest.mark.parametrize(
    "path",
    [
        "/hub/a", "hub/a/", "hub//a", "hub/./a", "hub/../a", "hub", "hubs/a", f"accounts/{_ID}/a",
        f"projects/{_ID}/a", "",
    ],
)  # fmt: skip
def test_a_path_of_another_owner_is_denied(path: str) -> None:
    with pytest.raises(StoragePathError, match="permission denied"):
        check_path(path, "hub")


def test_a_path_of_another_account_is_denied() -> None:
    owner = owner_path(account_id=_ID)

    assert check_path(f"accounts/{_ID}/a", owner) == f"accounts/{_ID}/a"
    for path in (f"accounts/{_OTHER_ID}/a", f"projects/{_ID}/a", "hub/a"):
        with pytest.raises(StoragePathError, match="not under"):
            check_path(path, owner)


def test_the_stream_of_a_path_never_changes() -> None:
    """The name is stored on servers: another hash would lose every stream."""
    assert _NAMES.stream == "CN_b3fhh5tc3stha565md4od3z5vboxmo6j"
    assert _NAMES.blob_stream == f"CNB_{_NAMES.id}"
    assert StreamNames("hub/chat", prefix="other").stream == _NAMES.stream


@given(st.lists(st.tuples(_KEYS, _KEYS), unique=True, min_size=2, max_size=4))
def test_each_service_and_path_has_its_own_stream(places: list[tuple[str, str]]) -> None:
    safe = [(path, service) for path, service in places if "\0" not in path + service]

    assert len({StreamNames(*place).id for place in safe}) == len(safe)


def test_subjects_of_a_stream() -> None:
    names = StreamNames("hub/chat", prefix="app.cn")
    found = [names.unkeyed, names.control, names.blob("9"), names.data_filter, names.feed_filter]

    assert found == [
        f"app.cn.d.{names.id}.m", f"app.cn.f.{names.id}.ctl", f"app.cn.b.{names.id}.9",
        f"app.cn.d.{names.id}.>", f"app.cn.f.{names.id}.>",
    ]  # fmt: skip


@given(st.none() | _KEYS)
def test_the_feed_of_a_subject_leads_back_and_is_no_announcement(key: str | None) -> None:
    subject = _NAMES.subject_of(key)
    feed = _NAMES.feed_of(subject)

    assert covers(_NAMES.data_filter, subject)
    assert covers(_NAMES.unkeyed if key is None else _NAMES.keys_filter, subject)
    assert covers(_NAMES.feed_filter, feed)
    assert _NAMES.data_of(feed) == subject
    assert feed != _NAMES.control
    assert _NAMES.is_keyed(subject) == (key is not None)


def test_an_announcement_has_no_stored_subject() -> None:
    assert covers(_NAMES.feed_filter, _NAMES.control)
    assert _NAMES.data_of(_NAMES.control) is None
    assert not covers(_NAMES.keys_filter, _NAMES.data_filter.replace(">", "ctl"))


@pytest.mark.parametrize(
    ("prefix", "error"),
    [("", SubjectError), ("a b", SubjectError), ("a.>", SubjectError), ("x" * 201, ConfigError)],
)
def test_a_prefix_that_is_no_part_of_a_subject_is_refused(
    prefix: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        StreamNames("hub/a", prefix=prefix)


@pytest.mark.parametrize(
    ("key", "token"), [("", "b"), ("a", "bYQ"), ("*", "bKg"), ("\n.", "bCi4"), ("ÿ?", "bw78_")]
)
def test_a_token_is_the_keys_base64(key: str, token: str) -> None:
    assert token_of(key) == token
    assert key_of_token(token) == key


@given(_KEYS)
def test_a_token_leads_back_to_a_short_key(key: str) -> None:
    token = token_of(key)
    is_short = len(key.encode()) <= 190

    assert len(token) <= 255
    assert set(token).isdisjoint(".*> ")
    assert key_of_token(token) == (key if is_short else None)
    assert _NAMES.key_of(_NAMES.subject_of(key)) == (key if is_short else None)


@given(st.lists(_KEYS | st.text("xy", min_size=189, max_size=193), unique=True))
def test_each_key_has_its_own_token(keys: list[str]) -> None:
    assert len({token_of(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    "token", ["", "x", "b=", "bYQ==", "bY", "b/w", "b_w", "hello", "bYR", "bé"]
)
def test_a_token_of_another_program_has_no_key(token: str) -> None:
    assert key_of_token(token) is None


@pytest.mark.parametrize("key", ["\ud800", "a\udfff"])
def test_a_key_that_is_no_utf8_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="key"):
        token_of(key)
