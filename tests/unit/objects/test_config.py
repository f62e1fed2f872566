"""An object store's configuration as a stream's, and back."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream.api.stream_config import StreamConfig
from natsstream.errors import BucketNameError, ConfigError
from natsstream.objects.config import ObjectBucketConfig
from natsstream.objects.kind import STORE

GIVEN: list[dict[str, Any]] = [
    {},
    {"description": "d", "ttl": 60, "max_bytes": 1_000, "storage": "memory", "replicas": 3},
    {"compression": True, "metadata": {"a": "b"}, "placement": {"cluster": "c", "tags": ["t"]}},
    {"extra": {"deny_delete": True}},
    {"extra": {"allow_direct": False}},
]


def test_a_new_store_is_what_nats_go_makes() -> None:
    assert ObjectBucketConfig(name="files").to_stream().to_json() == {
        "name": "OBJ_files",
        "subjects": ["$O.files.C.>", "$O.files.M.>"],
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": -1,
        "discard": "new",
        "storage": "file",
        "num_replicas": 1,
        "allow_direct": True,
        "allow_rollup_hdrs": True,
    }


@pytest.mark.parametrize("fields", GIVEN)
def test_there_and_back_nothing_is_lost(fields: dict[str, Any]) -> None:
    config = ObjectBucketConfig(name="files", **fields)

    stream = config.to_stream()
    back = ObjectBucketConfig.from_stream(stream)

    assert back.to_stream().to_json() == stream.to_json()
    assert config.differences(stream) == {}


def test_what_was_not_given_is_no_change() -> None:
    held = ObjectBucketConfig(name="files", max_bytes=5, description="d").to_stream()

    changes = ObjectBucketConfig(name="files", compression=True).to_changes(held)

    assert changes.given() == {"name": "OBJ_files", "compression": "s2"}


def test_ids_are_remembered_no_longer_than_objects() -> None:
    held = ObjectBucketConfig(name="files").to_stream()

    def window(ttl: float) -> object:
        return ObjectBucketConfig(name="files", ttl=ttl).to_changes(held).duplicate_window

    assert [window(5), window(3_600)] == [5, 120]
    assert window(0) is None


def test_the_server_s_own_metadata_and_a_mirror_s_window_are_nobody_s_wish() -> None:
    held = ObjectBucketConfig(name="files", metadata={"a": "b"}).to_stream()
    held = held.with_json({"metadata": {"a": "b", "_nats.level": "1"}})
    mirror = held.with_json({"mirror": {"name": "OBJ_origin"}, "subjects": []})

    assert ObjectBucketConfig.from_stream(held).metadata == {"a": "b"}
    assert ObjectBucketConfig(name="files", ttl=5).to_changes(mirror).duplicate_window is None


def test_differences_have_the_names_of_a_store() -> None:
    held = ObjectBucketConfig(name="files", ttl=5, compression=True).to_stream()

    assert ObjectBucketConfig(name="files", max_bytes=7).differences(held) == {
        "compression": (True, None),
        "max_bytes": (-1, 7),
        "ttl": (5, None),
    }


def test_a_stream_is_a_store_by_what_it_captures() -> None:
    assert STORE.is_one(ObjectBucketConfig(name="files").to_stream())
    assert not STORE.is_one(StreamConfig(name="OBJ_files", subjects=["a"]))
    assert not STORE.is_one(StreamConfig(name="files", subjects=["$O.files.C.>", "$O.files.M.>"]))


@pytest.mark.parametrize(
    "fields",
    [
        {"max_bytes": -2},
        {"max_bytes": "5"},
        {"ttl": -1},
        {"ttl": "60"},
        {"ttl": True},
        {"ttl": 1e30},
        {"description": "\ud800"},
        {"metadata": {"a": "\ud800"}},
        {"compression": 1},
        {"storage": "tape"},
        {"replicas": "3"},
        {"placement": 5},
        {"metadata": {"a": 1}},
        {"extra": {"max_age": 5}},
        {"extra": {"num_replicas": 5}},
        {"extra": {"subjects": []}},
        {"extra": {"name": "x"}},
        {"extra": {5: "x"}},
        {"extra": {"allow_atomic": object()}},
        {"extra": 5},
    ],
)
def test_what_can_not_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        ObjectBucketConfig(name="files", **fields)

    assert str(next(iter(fields))) in str(refused.value)


def test_a_misspelt_field_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        ObjectBucketConfig.from_call("files", {"max_byte": 5})

    assert "max_bytes" in caught.value.hint


def test_a_configuration_is_given_one_way() -> None:
    config = ObjectBucketConfig(name="files")

    assert ObjectBucketConfig.from_call(config, {}) is config
    with pytest.raises(ConfigError):
        ObjectBucketConfig.from_call(config, {"ttl": 5})
    with pytest.raises(BucketNameError):
        ObjectBucketConfig.from_call("a.b", {})
