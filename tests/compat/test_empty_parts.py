"""Parts that say nothing, which other clients store: `placement: {}` of the CLI on 2.10."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from natsstream import BucketConfig, ObjectBucketConfig, StreamConfig

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("kind", ["streams", "kv", "objects"])
async def test_what_exists_with_an_empty_part_is_returned_by_create(
    js: JetStream, stream_name: str, kind: str
) -> None:
    """The CLI makes them so; 2.10 keeps the part, and calls a stream without it another one."""
    new: StreamConfig = {
        "streams": StreamConfig(name=stream_name, subjects=[stream_name]),
        "kv": BucketConfig(name=stream_name).to_stream(),
        "objects": ObjectBucketConfig(name=stream_name).to_stream(),
    }[kind]
    body: dict[str, object] = {**new.to_json(), "placement": {}}
    answer = await js.core.request(
        f"$JS.API.STREAM.CREATE.{new.name}", json.dumps(body).encode(), timeout=30
    )
    assert "error" not in json.loads(answer.data)

    if kind == "streams":
        made = await js.streams.create(new)
    else:
        made = await getattr(js, kind).create(stream_name)

    assert made.name in (new.name, stream_name)
