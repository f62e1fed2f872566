"""nats.js's buckets for the interop tests."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tests.interop.clients.kv import Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.interop.clients.kv import BucketOptions
    from tests.interop.clients.nats_js import NatsJs

SECOND_MS = 1_000


class JsBuckets:
    """`Kvm` of @nats-io/kv. It opens a bucket that exists, whatever was asked for."""

    def __init__(
        self, nats_js: NatsJs, *, domain: str | None = None, codec: str | None = None
    ) -> None:
        """Describe it.

        Args:
            nats_js: nats.js on a server.
            domain: Of the buckets; None is the server's.
            codec: "base64" is its `Base64KeyCodec`; None is none.
        """
        self._nats_js = nats_js
        self._given = {"domain": domain, "codec": codec}

    async def _call(self, verb: str, bucket: str, **arguments: Any) -> Any:
        return await self._nats_js.call(f"kv_{verb}", bucket=bucket, **self._given, **arguments)

    async def create_bucket(self, options: BucketOptions) -> None:
        """Create with `Kvm.create`."""
        given: dict[str, object] = {
            "history": options.history,
            "description": options.description,
            "ttl": options.ttl_s * SECOND_MS,
            "markerTTL": options.marker_ttl_s * SECOND_MS,
            "max_bytes": options.bytes_max,
            "maxValueSize": options.value_bytes_max,
            "storage": "memory" if options.in_memory else "file",
            "compression": options.compressed,
            "replicas": options.replicas,
            "mirror": options.mirror and {"name": options.mirror},
            "sources": [{"name": name} for name in options.sources],
            "republish": options.republish
            and {"src": options.republish[0], "dest": options.republish[1]},
        }
        asked = {name: value for name, value in given.items() if value}
        await self._call("create_bucket", options.name, options=asked)

    async def get(self, bucket: str, key: str) -> bytes | None:
        """Read with `get`, which returns markers as entries."""
        found = await self._call("get", bucket, key=key)
        if found is None or found["operation"] != "PUT":
            return None
        return base64.b64decode(found["value"])

    async def put(self, bucket: str, key: str, value: bytes) -> None:
        """Write with `put`."""
        await self._call("put", bucket, key=key, value=_text(value))

    async def create(
        self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None
    ) -> None:
        """Write with `create`."""
        ttl = None if ttl_s is None else f"{ttl_s}s"
        await self._call("create", bucket, key=key, value=_text(value), ttl=ttl)

    async def update(self, bucket: str, key: str, value: bytes, *, revision: int) -> None:
        """Write with `update`."""
        await self._call("update", bucket, key=key, value=_text(value), revision=revision)

    async def delete(self, bucket: str, key: str) -> None:
        """Delete with `delete`."""
        await self._call("delete", bucket, key=key)

    async def purge(self, bucket: str, key: str, *, ttl_s: int | None = None) -> None:
        """Purge with `purge`."""
        await self._call("purge", bucket, key=key, ttl=None if ttl_s is None else f"{ttl_s}s")

    async def keys(self, bucket: str) -> list[str]:
        """List with `keys`."""
        return sorted(await self._call("keys", bucket))

    async def keys_matching(self, bucket: str, pattern: str) -> list[str]:
        """List with `keys` and a filter."""
        return sorted(await self._call("keys", bucket, filter=pattern))

    async def purge_deletes(self, bucket: str, *, older_ms: int) -> int:
        """Remove markers with `purgeDeletes`, and return how many messages it says are gone."""
        removed = await self._call("purge_deletes", bucket, older_ms=older_ms)
        assert isinstance(removed, int)
        return removed

    async def history(self, bucket: str, key: str) -> list[Seen]:
        """Read with `history`."""
        return [_seen(each) for each in await self._call("history", bucket, key=key)]

    async def watch(self, bucket: str, count: int) -> list[Seen]:
        """Read with `watch`, and end it."""
        return [_seen(each) for each in await self._call("watch", bucket, count=count)]


def _seen(entry: Mapping[str, Any]) -> Seen:
    return Seen(entry["key"], entry["operation"], base64.b64decode(entry["value"]))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
