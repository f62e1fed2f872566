"""natsstream's buckets for the interop tests."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from natsstream import BucketConfig, Republish, ServerError, StreamSource
from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import Seen

if TYPE_CHECKING:
    from collections.abc import Generator

    from natsstream import Entry, JetStream, KeyCodec, KeyValue
    from tests.interop.clients.kv import BucketOptions


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what the server refuses into the harness's error."""
    try:
        yield
    except ServerError as error:
        raise RefusedError(str(error), error.err_code) from error


class OurBuckets:
    """`js.kv` and what it hands out."""

    def __init__(self, js: JetStream, *, keys: KeyCodec | None = None) -> None:
        """Describe it.

        Args:
            js: natsstream on a server.
            keys: The codec of the keys; None is none.
        """
        self.js = js
        self._codec = keys

    async def _open(self, bucket: str) -> KeyValue:
        found = await self.js.kv.get(bucket)
        return found if self._codec is None else found.with_codec(keys=self._codec)

    async def create_bucket(self, options: BucketOptions) -> None:
        """Create with `create`."""
        config = BucketConfig(
            name=options.name,
            description=options.description or None,
            history=options.history,
            ttl=options.ttl_s or None,
            limit_marker_ttl=options.marker_ttl_s or None,
            max_bytes=options.bytes_max or None,
            max_value_size=options.value_bytes_max or None,
            storage="memory" if options.in_memory else None,
            compression=options.compressed or None,
            replicas=options.replicas,
            mirror=StreamSource(name=options.mirror) if options.mirror else None,
            sources=[StreamSource(name=name) for name in options.sources] or None,
            republish=options.republish
            and Republish(source=options.republish[0], destination=options.republish[1]),
        )
        with _refusals():
            await self.js.kv.create(config)

    async def get(self, bucket: str, key: str) -> bytes | None:
        """Read with `get`."""
        entry = await (await self._open(bucket)).get(key)
        return None if entry is None else entry.value

    async def put(self, bucket: str, key: str, value: bytes) -> None:
        """Write with `put`."""
        await (await self._open(bucket)).put(key, value)

    async def create(
        self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None
    ) -> None:
        """Write with `create`."""
        with _refusals():
            await (await self._open(bucket)).create(key, value, ttl=ttl_s)

    async def update(self, bucket: str, key: str, value: bytes, *, revision: int) -> None:
        """Write with `update`."""
        with _refusals():
            await (await self._open(bucket)).update(key, value, revision=revision)

    async def delete(self, bucket: str, key: str) -> None:
        """Delete with `delete`."""
        await (await self._open(bucket)).delete(key)

    async def purge(self, bucket: str, key: str, *, ttl_s: int | None = None) -> None:
        """Purge with `purge`."""
        await (await self._open(bucket)).purge(key, ttl=ttl_s)

    async def keys(self, bucket: str) -> list[str]:
        """List with `keys`."""
        return sorted([key async for key in (await self._open(bucket)).keys()])

    async def history(self, bucket: str, key: str) -> list[Seen]:
        """Read with `history`."""
        return [_seen(each) async for each in (await self._open(bucket)).history(key)]

    async def watch(self, bucket: str, count: int) -> list[Seen]:
        """Read with `watch`."""
        async with (await self._open(bucket)).watch() as watch:
            found = [_seen(entry) async for entry in watch.initial()]
        assert len(found) == count
        return found


def _seen(entry: Entry) -> Seen:
    return Seen(entry.key, entry.operation, entry.value)
