"""The configuration of a core stream, and that of its JetStream stream."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.names import covers
from natsstream.api.stream_config import StreamConfig
from natsstream.conat.configuration import Configuration, check_stream
from natsstream.conat.names import StreamNames
from natsstream.errors import ConfigError, ProtocolError, StreamExistsError

_NAMES = StreamNames("hub/chat")
_SIZES = st.integers(-1, 2**53 - 1)
_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "max_msgs": st.just(-1) | st.integers(1, 2**53 - 1),
        "max_age": st.integers(0, (2**63 - 1) // 10**6) | st.integers(0, 200),
        "max_bytes": _SIZES,
        "max_msg_size": _SIZES | st.integers(0, 2**31),
        "max_bytes_per_second": _SIZES,
        "max_msgs_per_second": _SIZES,
        "discard_policy": st.sampled_from(["old", "new"]),
        "allow_msg_ttl": st.booleans(),
        "desc": st.none() | st.text(max_size=5) | st.dictionaries(st.text(max_size=3), st.none()),
    },
)


def _stored(config: StreamConfig) -> StreamConfig:
    """Return the configuration as a server would send it."""
    return StreamConfig.from_json(
        cast("dict[str, object]", json.loads(json.dumps(config.to_json())))
    )


def _merged(**fields: object) -> Configuration:
    return Configuration().merged(fields)


def test_defaults_are_conats() -> None:
    assert Configuration().to_dict() == {
        "max_msgs": -1, "max_age": 0, "max_bytes": -1, "max_msg_size": -1,
        "max_bytes_per_second": -1, "max_msgs_per_second": -1, "discard_policy": "old",
        "allow_msg_ttl": False, "desc": None,
    }  # fmt: skip
    assert Configuration().limits() == {}


def test_limits_are_the_fields_that_differ_from_the_defaults() -> None:
    config = _merged(max_msgs=5, max_age=0, allow_msg_ttl=True, desc={"a": 1})

    assert config.limits() == {"max_msgs": 5, "allow_msg_ttl": True, "desc": {"a": 1}}


def test_merging_keeps_fields_that_are_absent_or_none() -> None:
    config = _merged(max_msgs=5, desc="x").merged({"max_bytes": 9, "max_msgs": None})

    assert config.limits() == {"max_msgs": 5, "max_bytes": 9, "desc": "x"}
    assert config.merged({"max_msgs": -1}).max_msgs == -1


@pytest.mark.parametrize(
    ("name", "given_value", "value"),
    [
        ("max_msgs", "12", 12),
        ("max_msgs", 12.0, 12),
        ("max_msgs", -9, -1),
        ("max_age", -9, 0),
        ("max_bytes_per_second", 0, 0),
        ("discard_policy", "new", "new"),
    ],
)
def test_values_are_read_as_conat_reads_them(name: str, given_value: object, value: object) -> None:
    assert _merged(**{name: given_value}).to_dict()[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_msgs", 0),
        ("max_msgs", "0"),
        ("max_msgs", "many"),
        ("max_msgs", True),
        ("max_msgs", 12.7),
        ("max_age", 0.5),
        ("max_msgs", float("nan")),
        ("max_msgs", float("inf")),
        ("max_msgs", 2**53),
        ("max_age", 2**63 // 10**6 + 1),
        ("discard_policy", "New"),
        ("discard_policy", "none"),
        ("discard_policy", 5),
        ("allow_msg_ttl", "false"),
        ("allow_msg_ttl", ""),
        ("allow_msg_ttl", 1),
        ("desc", b"bytes"),
        ("desc", "x" * 100_001),
        ("max_messages", 5),
    ],
)
def test_illegal_values_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        _merged(**{name: value})


@pytest.mark.parametrize(
    ("given_value", "value"),
    [(-1, 64_000_000), (0, 64_000_000), (64_000_001, 64_000_000), (64_000_000, 64_000_000), (5, 5)],
)
def test_an_ephemeral_stream_has_at_most_64_megabytes(given_value: int, value: int) -> None:
    assert _merged(max_bytes=given_value).capped().max_bytes == value


@given(_FIELDS)
def test_a_configuration_comes_back_from_its_stream(fields: dict[str, object]) -> None:
    config = _merged(**fields)
    for ephemeral, wanted in ((False, config), (True, config.capped())):
        stream = _stored(config.to_stream(_NAMES, ephemeral=ephemeral))
        assert Configuration.from_stream(stream) == wanted
        check_stream(_NAMES, stream)


@given(_FIELDS)
def test_a_native_limit_never_fires_before_the_logical_one(fields: dict[str, object]) -> None:
    config = _merged(**fields)
    body = config.to_stream(_NAMES).to_json()

    assert body["max_bytes"] == -1
    assert body["max_msgs_per_subject"] == -1
    assert body["max_msgs"] == config.max_msgs
    age_ns = cast("int", body["max_age"])
    assert age_ns == 0 or (age_ns >= config.max_age * 10**6 and age_ns >= 10**8)
    size = cast("int", body["max_msg_size"])
    # The longest headers that servers take come on top of the value.
    assert size == -1 or size >= config.max_msg_size + 65_535
    assert size < 2**31
    window_ns = cast("int", body["duplicate_window"])
    assert window_ns == min(120 * 10**9, age_ns or 120 * 10**9)


def test_the_stream_of_a_core_stream() -> None:
    stream = _merged(max_msgs=7, max_bytes=9, discard_policy="new").to_stream(
        _NAMES, replicas=3, metadata={"mine": "1", "conat.path": "stale"}
    )
    body = stream.to_json()

    assert body == {
        "name": _NAMES.stream,
        "subjects": [_NAMES.unkeyed, _NAMES.keys_filter],
        "retention": "limits",
        "storage": "file",
        "num_replicas": 3,
        "max_msgs": 7,
        "max_age": 0,
        "max_bytes": -1,
        "max_msgs_per_subject": -1,
        "max_msg_size": -1,
        "discard": "new",
        "duplicate_window": 120 * 10**9,
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "allow_msg_ttl": True,
        "republish": {"src": _NAMES.data_filter, "dest": _NAMES.feed_filter},
        "metadata": {
            "mine": "1",
            "conat.path": "hub/chat",
            "conat.service": "persist",
            "conat.config": '{"max_bytes":9}',
        },
    }


def test_an_announcement_is_neither_stored_nor_copied_from_a_stored_message() -> None:
    subjects = Configuration().to_stream(_NAMES).subjects or ()
    stored_control = _NAMES.control.replace(".f.", ".d.")

    assert _NAMES.feed_of(stored_control) == _NAMES.control
    assert not any(covers(each, stored_control) for each in subjects)


def test_a_foreign_stream_has_the_limits_of_its_native_fields() -> None:
    stream = StreamConfig(
        name="ORDERS", max_msgs=5, max_age=0.5, max_msg_size=9, discard="new", max_bytes=100
    )

    assert Configuration.from_stream(stream).limits() == {
        "max_msgs": 5, "max_age": 500, "max_msg_size": 9, "discard_policy": "new",
    }  # fmt: skip
    assert Configuration.from_stream(StreamConfig(name="ORDERS", storage="memory")).limits() == {}


def test_a_limit_that_an_operator_has_changed_counts() -> None:
    held = _merged(max_msgs=5, max_bytes=9).to_stream(_NAMES).with_json({"max_msgs": 3})

    assert Configuration.from_stream(held).limits() == {"max_msgs": 3, "max_bytes": 9}


def test_fields_of_later_versions_are_passed_over() -> None:
    metadata = {"conat.config": '{"max_bytes":9,"max_fun":1}'}

    config = Configuration.from_stream(StreamConfig(name="CN_x", metadata=metadata))
    assert config.limits() == {"max_bytes": 9}


@pytest.mark.parametrize(
    ("text", "error"),
    [("{", ProtocolError), ("[]", ProtocolError), ('{"max_bytes":"x"}', ConfigError)],
)
def test_metadata_that_cannot_be_read_is_an_error(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Configuration.from_stream(StreamConfig(name="CN_x", metadata={"conat.config": text}))


@pytest.mark.parametrize(
    "other",
    [
        StreamNames("hub/other"),
        StreamNames("hub/chat", service="other"),
        StreamNames("hub/chat", prefix="other"),
    ],
)
def test_a_stream_of_another_path_service_or_prefix_is_refused(other: StreamNames) -> None:
    held = Configuration().to_stream(other)

    with pytest.raises(StreamExistsError, match="is not core stream 'hub/chat'") as caught:
        check_stream(_NAMES, held)
    assert caught.value.differences


def test_a_stream_that_is_no_core_stream_is_refused() -> None:
    with pytest.raises(StreamExistsError, match="CN_"):
        check_stream(_NAMES, StreamConfig(name=_NAMES.stream))


@pytest.mark.parametrize("age", ["1h", timedelta(hours=1), 1 << 53])
def test_an_illegal_age_is_answered_with_its_unit(age: object) -> None:
    with pytest.raises(ConfigError, match="max_age is") as caught:
        _merged(max_age=age)
    assert caught.value.hint.startswith("give a whole number of milliseconds to ")
