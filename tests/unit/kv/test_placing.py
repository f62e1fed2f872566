"""Where the keys of a bucket are, by its stream and by the connection."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream import BucketConfig, StreamSource
from natsstream.api.settings.mapping import SubjectTransform
from natsstream.api.settings.source import ExternalStream
from natsstream.kv.bucket_subjects import BucketSubjects, subjects_of

HERE, HUB = "$JS.API", "$JS.hub.API"
EXTERNAL = ExternalStream(api=HUB)


def prefixes(place: BucketSubjects) -> tuple[str, str]:
    return place.read_prefix, place.write_prefix


@pytest.mark.parametrize(
    ("fields", "api_prefix", "read", "write"),
    [
        ({}, HERE, "$KV.b.", "$KV.b."),
        ({}, HUB, "$KV.b.", "$JS.hub.API.$KV.b."),
        ({}, "fromA", "$KV.b.", "fromA.$KV.b."),
        ({"mirror": StreamSource(name="a")}, HERE, "$KV.a.", "$KV.a."),
        ({"mirror": StreamSource(name="KV_a")}, HUB, "$KV.a.", "$JS.hub.API.$KV.a."),
        ({"mirror": StreamSource(name="a", external=EXTERNAL)}, HERE, "$KV.a.", f"{HUB}.$KV.a."),
        ({"mirror": StreamSource(name="a", external=EXTERNAL)}, "x", "$KV.a.", f"{HUB}.$KV.a."),
        ({"mirror": StreamSource(name="a", domain="hub")}, HERE, "$KV.a.", f"{HUB}.$KV.a."),
        ({"sources": [StreamSource(name="a", external=EXTERNAL)]}, HERE, "$KV.b.", "$KV.b."),
    ],
)
def test_keys_are_read_here_and_written_where_they_are_kept(
    fields: dict[str, Any], api_prefix: str, read: str, write: str
) -> None:
    # As a server sends it: a domain is an external there.
    config = BucketConfig(name="b", **fields).to_stream()
    held = type(config).from_json(config.to_json())

    assert prefixes(subjects_of(held, api_prefix)) == (read, write)


def test_mirror_of_a_mirror_is_placed_by_its_origin() -> None:
    origin = BucketSubjects("b", "KV_b", "$KV.a.", f"{HUB}.$KV.a.")
    config = BucketConfig(name="c", mirror=StreamSource(name="b")).to_stream()

    assert prefixes(subjects_of(config, HERE, origin)) == ("$KV.a.", f"{HUB}.$KV.a.")


def test_mirror_that_maps_its_subjects_is_read_under_the_mapped_ones() -> None:
    mapping = SubjectTransform(source="$KV.a.>", destination="$KV.b.>")
    mirror = StreamSource(name="a", transforms=[mapping])
    config = BucketConfig(name="b", mirror=mirror).to_stream()

    assert prefixes(subjects_of(config, HERE)) == ("$KV.b.", "$KV.a.")
