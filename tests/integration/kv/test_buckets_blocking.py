"""Buckets without async: `natsstream.blocking` has the same calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from natsstream.errors import BucketNotFoundError

if TYPE_CHECKING:
    from natsstream.testing import NatsServer


def test_buckets_are_made_listed_and_deleted(server: NatsServer, stream_name: str) -> None:
    with blocking.connect(server.url) as js:
        bucket = js.kv.create(stream_name, history=2)
        again = js.kv.ensure(bucket.config)
        changed = js.kv.update(stream_name, description="d")

        assert (bucket.name, bucket.config.history) == (stream_name, 2)
        assert not again.change
        assert [each.name for each in changed.change.fields] == ["description"]
        assert js.kv.get(stream_name).status().history == 2
        assert stream_name in [status.name for status in js.kv.list()]
        assert stream_name in list(js.kv.names())
        assert bucket.stream.info().name == f"KV_{stream_name}"

        js.kv.delete(stream_name)

        with pytest.raises(BucketNotFoundError):
            js.kv.get(stream_name)
