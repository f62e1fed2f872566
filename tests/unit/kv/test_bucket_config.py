"""A bucket's configuration as its stream's, and back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import BucketConfig, Placement, Republish, StreamConfig, StreamSource
from natsstream.api.change_plan import changed
from natsstream.api.settings.mapping import SubjectTransform
from natsstream.api.settings.source import ExternalStream
from natsstream.api.stream_rules import STREAM_RULES
from natsstream.errors import BucketNameError, ConfigError
from natsstream.kv.conventions import BUCKET

MINUTE_NS = 60_000_000_000

# What nats.go's prepareKeyValueConfig fills in for CreateKeyValue({Bucket: "b"}).
PLAIN: dict[str, object] = {
    "name": "KV_b",
    "subjects": ["$KV.b.>"],
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "discard": "new",
    "max_age": 0,
    "max_msgs_per_subject": 1,
    "max_msg_size": -1,
    "storage": "file",
    "num_replicas": 1,
    "duplicate_window": 2 * MINUTE_NS,
    "compression": "none",
    "sealed": False,
    "deny_delete": True,
    "deny_purge": False,
    "allow_rollup_hdrs": True,
    "allow_direct": True,
    "mirror_direct": False,
}


@pytest.mark.proves("1d", "config equal to Go's (CreateKeyValue idempotent)")
@pytest.mark.parametrize(
    ("fields", "different"),
    [
        ({}, {}),
        ({"description": "d"}, {"description": "d"}),
        ({"history": 64}, {"max_msgs_per_subject": 64}),
        ({"ttl": 30}, {"max_age": MINUTE_NS // 2, "duplicate_window": MINUTE_NS // 2}),
        ({"ttl": timedelta(hours=1)}, {"max_age": 60 * MINUTE_NS}),
        ({"ttl": 0}, {}),
        ({"max_bytes": 7, "max_value_size": 5}, {"max_bytes": 7, "max_msg_size": 5}),
        ({"max_bytes": -1, "max_value_size": -1}, {}),
        ({"storage": "memory", "replicas": 3}, {"storage": "memory", "num_replicas": 3}),
        ({"compression": True}, {"compression": "s2"}),
        ({"compression": False}, {}),
        ({"metadata": {"a": "b"}}, {"metadata": {"a": "b"}}),
        (
            {"limit_marker_ttl": 60},
            {"allow_msg_ttl": True, "subject_delete_marker_ttl": MINUTE_NS},
        ),
        ({"limit_marker_ttl": 0}, {}),
        (
            {"placement": Placement(cluster="c", tags=["t"])},
            {"placement": {"cluster": "c", "tags": ["t"]}},
        ),
        (
            {"republish": Republish(source=">", destination="copy.>")},
            {"republish": {"src": ">", "dest": "copy.>"}},
        ),
        ({"extra": {"allow_atomic": True}}, {"allow_atomic": True}),
    ],
)
def test_stream_of_a_bucket_is_the_one_of_nats_go(
    fields: dict[str, Any], different: dict[str, object]
) -> None:
    config = BucketConfig(name="b", **fields)

    assert config.to_stream().to_json() == {**PLAIN, **different}


@pytest.mark.parametrize("origin", ["a", "KV_a"])
def test_mirror_names_the_stream_of_its_origin_and_has_no_subjects(origin: str) -> None:
    external = ExternalStream(api="$JS.hub.API")

    body = (
        BucketConfig(name="b", mirror=StreamSource(name=origin, external=external))
        .to_stream()
        .to_json()
    )

    without = {name: value for name, value in PLAIN.items() if name != "subjects"}
    assert body == {
        **without,
        "mirror_direct": True,
        "mirror": {"name": "KV_a", "external": {"api": "$JS.hub.API"}},
    }


def test_sources_map_their_keys_unless_they_say_how_themselves() -> None:
    own = SubjectTransform(source="orders.*", destination="$KV.b.{{wildcard(1)}}")
    away = ExternalStream(api="$JS.hub.API")

    body = (
        BucketConfig(
            name="b",
            sources=[
                StreamSource(name="a"),
                StreamSource(name="KV_c", start_seq=7),
                StreamSource(name="ORDERS", transforms=[own]),
                StreamSource(name="b", external=away),
                StreamSource(name="d", external=away),
            ],
        )
        .to_stream()
        .to_json()
    )

    assert body["subjects"] == ["$KV.b.>"]
    assert body["sources"] == [
        {"name": "KV_a", "subject_transforms": [{"src": "$KV.a.>", "dest": "$KV.b.>"}]},
        {
            "name": "KV_c",
            "opt_start_seq": 7,
            "subject_transforms": [{"src": "$KV.c.>", "dest": "$KV.b.>"}],
        },
        {
            "name": "ORDERS",
            "subject_transforms": [{"src": "orders.*", "dest": "$KV.b.{{wildcard(1)}}"}],
        },
        {"name": "KV_b", "external": {"api": "$JS.hub.API"}},
        {
            "name": "KV_d",
            "external": {"api": "$JS.hub.API"},
            "subject_transforms": [{"src": "$KV.d.>", "dest": "$KV.b.>"}],
        },
    ]


@pytest.mark.parametrize(
    ("given", "keys", "same"),
    [
        ("eu.>", "eu.>", "eu.>"),
        ("eu.a", "eu.a", "eu.a"),
        ("*.size.*", "*.size.*", "{{wildcard(1)}}.size.{{wildcard(2)}}"),
        ("*.>", "*.>", "{{wildcard(1)}}.>"),
        ("$KV.a.eu.*", "eu.*", "eu.{{wildcard(1)}}"),
        ("", ">", ">"),
    ],
)
@pytest.mark.parametrize("name", ["a", "KV_a"])
def test_filter_of_a_source_selects_keys(name: str, given: str, keys: str, same: str) -> None:
    config = BucketConfig(name="b", sources=[StreamSource(name=name, filter=given)])

    assert config.to_stream().to_json()["sources"] == [
        {"name": "KV_a", "subject_transforms": [{"src": f"$KV.a.{keys}", "dest": f"$KV.b.{same}"}]}
    ]


def test_filter_of_a_source_of_the_same_name_elsewhere_selects_keys_too() -> None:
    away = StreamSource(name="b", external=ExternalStream(api="$JS.hub.API"), filter="eu.>")

    assert BucketConfig(name="b", sources=[away]).to_stream().to_json()["sources"] == [
        {
            "name": "KV_b",
            "external": {"api": "$JS.hub.API"},
            "subject_transforms": [{"src": "$KV.b.eu.>", "dest": "$KV.b.eu.>"}],
        }
    ]


@pytest.mark.parametrize("filter_", ["$KV.other.>", "eu.*a", "a$"])
def test_filter_of_a_source_that_is_none_of_keys_is_refused(filter_: str) -> None:
    with pytest.raises(ConfigError, match="source a of bucket b: filter") as caught:
        BucketConfig(name="b", sources=[StreamSource(name="a", filter=filter_)])

    assert "without their prefix, such as filter='eu.>'" in caught.value.hint


def test_names_alone_are_taken_as_mirror_and_sources() -> None:
    assert BucketConfig(name="b", mirror="a").mirror == StreamSource(name="a")  # pyright: ignore[reportArgumentType] - What keywords of js.kv may be.
    sources: Any = ["a", {"name": "c"}]
    assert BucketConfig(name="b", sources=sources).sources == (
        StreamSource(name="a"),
        StreamSource(name="c"),
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"history": 0},
        {"history": 65},
        {"history": "5"},
        {"ttl": -1},
        {"ttl": "1h"},
        {"ttl": 1e30},
        {"ttl": timedelta.max},
        {"limit_marker_ttl": 1e30},
        {"max_bytes": -2},
        {"max_value_size": 1.5},
        {"storage": "disk"},
        {"replicas": 6},
        {"compression": "s2"},
        {"metadata": ["a"]},
        {"description": 5},
        {"description": "\ud800"},
        {"metadata": {"a": "\ud800"}},
        {"limit_marker_ttl": 0.5},
        {"limit_marker_ttl": "x"},
        {"mirror": 5},
        {"sources": "a"},
        {"sources": 5},
        {"sources": [5]},
        {"mirror": "a", "sources": ["c"]},
        {"limit_marker_ttl": 5, "mirror": "a"},
        {"placement": "c"},
        {"republish": 5},
        {"extra": 5},
        {"extra": {5: "x"}},
        {"extra": {"allow_atomic": {1}}},
        {"extra": {"max_msgs": float("nan")}},
        {"extra": {"max_age": 5}},
        {"extra": {"num_replicas": 5}},
        {"extra": {"name": "x"}},
        {"histroy": 5},
    ],
    ids=str,
)
def test_values_that_can_not_work_are_refused_by_the_bucket_s_own_words(
    fields: dict[str, Any],
) -> None:
    with pytest.raises(ConfigError) as refused:
        BucketConfig.from_call("b", fields)

    assert str(next(iter(fields))) in str(refused.value)


def test_field_that_is_given_by_its_stream_s_name_in_extra_is_told_the_right_one() -> None:
    with pytest.raises(ConfigError, match="give history instead"):
        BucketConfig(name="b", extra={"max_msgs_per_subject": 5})


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a*", ">", "ä", "a/b", "x" * 253, 5, None])
def test_name_that_some_client_refuses_is_refused(name: Any) -> None:
    with pytest.raises(BucketNameError):
        BucketConfig(name=name)


def test_config_and_keywords_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="not both") as caught:
        BucketConfig.from_call(BucketConfig(name="b"), {"history": 5})
    assert "put the keywords into BucketConfig(...)" in caught.value.hint


def test_changes_have_only_what_is_given_and_the_window_follows_a_new_ttl() -> None:
    held = StreamConfig.from_json({**PLAIN, "allow_direct": False, "strange": 5})

    def changes(**fields: Any) -> dict[str, object]:
        return BucketConfig(name="b", **fields).to_changes(held).to_json()

    assert changes() == {"name": "KV_b"}
    assert changes(history=5) == {"name": "KV_b", "max_msgs_per_subject": 5}
    assert changes(ttl=0, history=1) == {"name": "KV_b"}
    assert changes(ttl=60) == {
        "name": "KV_b",
        "max_age": MINUTE_NS,
        "duplicate_window": MINUTE_NS,
    }
    assert changes(limit_marker_ttl=60) == {
        "name": "KV_b",
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": MINUTE_NS,
    }


def test_mirror_can_not_be_given_up_since_its_keys_would_not_be_found() -> None:
    held = BucketConfig(name="b", mirror=StreamSource(name="a")).to_stream()
    none: Any = {}

    with pytest.raises(ConfigError, match="cannot stop being a mirror") as caught:
        BucketConfig(name="b", mirror=none).to_changes(held)

    assert "js.kv.create('b-copy', sources=['b'])" in caught.value.hint
    assert "js.streams.restore(path, mirror={}, name=..., subjects=[...])" in caught.value.hint


SERVERS = st.fixed_dictionaries(
    {},
    optional={
        "description": st.text(max_size=5),
        "max_msgs_per_subject": st.integers(1, 200),
        "max_age": st.integers(0, 10**18),
        "max_bytes": st.integers(-1, 9).filter(bool),
        "max_msg_size": st.integers(-1, 9).filter(bool),
        "storage": st.sampled_from(["file", "memory"]),
        "num_replicas": st.integers(1, 5),
        "duplicate_window": st.integers(1, 10**12),
        "compression": st.sampled_from(["none", "s2"]),
        "discard": st.sampled_from(["new", "old"]),
        "sealed": st.booleans(),
        "deny_delete": st.booleans(),
        "allow_direct": st.booleans(),
        "mirror_direct": st.booleans(),
        "allow_rollup_hdrs": st.booleans(),
        "allow_msg_ttl": st.booleans(),
        "subject_delete_marker_ttl": st.integers(10**9, 10**12),
        "metadata": st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
        "strange": st.dictionaries(st.text(max_size=3), st.integers(1), max_size=3),
    },
)
FOREIGN: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        {},
        {"subjects": ["$KV.b.>", "more"]},
        {"num_replicas": 9},
        {"mirror": {"name": "ORDERS", "filter_subject": "x", "novel": 1}},
        {"sources": [{"name": "ORDERS", "filter_subject": "x", "novel": 1}]},
    ]
)


@given(known=SERVERS, foreign=FOREIGN)
def test_bucket_s_own_configuration_changes_nothing_of_it(
    known: dict[str, object], foreign: dict[str, object]
) -> None:
    held = StreamConfig.from_json({**PLAIN, **known, **foreign})

    config = BucketConfig.from_stream(held)

    assert not changed(STREAM_RULES, config.to_changes(held), held.to_json())


@pytest.mark.proves("1d", "compression / metadata / placement")
@given(known=SERVERS)
def test_stream_of_a_bucket_that_a_server_has_is_made_again_as_it_was(
    known: dict[str, object],
) -> None:
    held = StreamConfig.from_json({**PLAIN, **known})

    again = BucketConfig.from_stream(held).to_stream()

    assert not changed(STREAM_RULES, again, held.to_json())
    assert not changed(STREAM_RULES, held, again.to_json())


def test_bucket_of_another_client_differs_in_what_it_does() -> None:
    theirs = StreamConfig.from_json({**PLAIN, "allow_direct": False, "duplicate_window": 1})

    assert BucketConfig.from_stream(theirs).extra == {
        "allow_direct": False,
        "duplicate_window": 1,
    }


def test_differences_speak_of_the_bucket_and_not_of_what_follows() -> None:
    wanted = BucketConfig(name="b", history=5, ttl=30, compression=True)
    held = BucketConfig(name="b", limit_marker_ttl=9, metadata={"a": "b", "_nats.level": "5"})

    found = wanted.differences(held.to_stream())

    assert found == {
        "history": (1, 5),
        "ttl": (0, 30),
        "compression": (False, True),
        "limit_marker_ttl": (9, None),
        "metadata": ({"a": "b"}, None),
    }


def test_bucket_is_known_by_its_name_and_its_history() -> None:
    def known(**fields: Any) -> bool:
        given: dict[str, Any] = {"name": "KV_b", "max_msgs_per_subject": 1, **fields}
        return BUCKET.is_one(StreamConfig(**given))

    assert known()
    assert not known(name="b")
    assert not known(name="KV_")
    assert not known(name="KV_ä")
    assert not known(max_msgs_per_subject=-1)
    assert not known(max_msgs_per_subject=None)
