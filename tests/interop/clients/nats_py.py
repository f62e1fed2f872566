"""nats-py 2.16 as a client of the interop tests: its buckets and its object stores.

Where it leaves the conventions it cannot be one side of a pair; the tests name those places and
why (findings 13 to 20 of specs/clients.md).
"""

from __future__ import annotations

import base64
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from nats.js.api import ObjectMeta, RePublish, StorageType
from nats.js.errors import (
    APIError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NoKeysError,
    NotFoundError,
)

from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import WRONG_LAST_SEQUENCE, Seen
from tests.interop.clients.objects import PLAIN, Shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from tests.interop.clients.kv import BucketOptions
    from tests.interop.clients.objects import About, StoreOptions


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what the server refuses into the harness's error."""
    try:
        yield
    except KeyWrongLastSequenceError as error:
        raise RefusedError(str(error), WRONG_LAST_SEQUENCE) from error
    except APIError as error:
        raise RefusedError(str(error), error.err_code or 0) from error


class PyBuckets:
    """`KeyValue` of nats-py; `js` is its JetStream context, which leaves its types open."""

    def __init__(self, js: Any) -> None:
        self._js = js

    async def create_bucket(self, options: BucketOptions) -> None:
        """Create with `create_key_value`, and with the direct access that others have."""
        given: dict[str, object] = {
            "description": options.description or None,
            "ttl": options.ttl_s or None,
            "limit_marker_ttl": options.marker_ttl_s or None,
            "max_bytes": options.bytes_max or -1,
            "max_value_size": options.value_bytes_max or -1,
            "storage": StorageType.MEMORY if options.in_memory else StorageType.FILE,
            "republish": options.republish and RePublish(*options.republish),
        }
        with _refusals():
            await self._js.create_key_value(
                bucket=options.name,
                history=options.history,
                replicas=options.replicas,
                direct=True,
                **given,
            )

    async def get(self, bucket: str, key: str) -> bytes | None:
        """Read with `get`, which takes an empty value for None and the server's markers for one."""
        try:
            entry = await (await self._js.key_value(bucket)).get(key)
        except KeyNotFoundError:
            return None
        return cast("bytes", entry.value or b"")

    async def put(self, bucket: str, key: str, value: bytes) -> None:
        """Write with `put`."""
        await (await self._js.key_value(bucket)).put(key, value)

    async def create(
        self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None
    ) -> None:
        """Write with `create`."""
        with _refusals():
            await (await self._js.key_value(bucket)).create(key, value, msg_ttl=ttl_s)

    async def update(self, bucket: str, key: str, value: bytes, *, revision: int) -> None:
        """Write with `update`."""
        with _refusals():
            await (await self._js.key_value(bucket)).update(key, value, last=revision)

    async def delete(self, bucket: str, key: str) -> None:
        """Delete with `delete`."""
        await (await self._js.key_value(bucket)).delete(key)

    async def purge(self, bucket: str, key: str, *, ttl_s: int | None = None) -> None:
        """Purge with `purge`."""
        await (await self._js.key_value(bucket)).purge(key, msg_ttl=ttl_s)

    async def keys(self, bucket: str) -> list[str]:
        """List with `keys`, which raises when there are none."""
        return sorted(await _entries((await self._js.key_value(bucket)).keys))

    async def history(self, bucket: str, key: str) -> list[Seen]:
        """Read with `history`."""
        kv = await self._js.key_value(bucket)
        return [_seen(entry) for entry in await _entries(lambda: kv.history(key))]

    async def watch(self, bucket: str, count: int) -> list[Seen]:
        """Read with `watchall`, and end it.

        Its None stands behind what was there, or, early, in front of it (see `_entries`).
        """
        watcher = await (await self._js.key_value(bucket)).watchall()
        seen: list[Seen] = []
        try:
            while len(seen) < count:
                if (entry := await watcher.updates()) is not None:
                    seen.append(_seen(entry))
        finally:
            await watcher.stop()
        return seen


async def _entries(read: Callable[[], Awaitable[list[Any]]]) -> list[Any]:
    """Return what a read finds; a second and a third look when it finds nothing.

    A watcher of nats-py takes its bucket for empty when the server delivered everything before it
    answered the watcher's question how much there is, and the loop has not handed it over yet.
    """
    for _ in range(3):
        with suppress(NoKeysError):
            return await read()
    return []


def _seen(entry: Any) -> Seen:
    return Seen(entry.key, entry.operation or "PUT", entry.value or b"")


class PyObjects:
    """`ObjectStore` of nats-py; `js` is its JetStream context, which leaves its types open."""

    def __init__(self, js: Any) -> None:
        self._js = js

    async def create_store(self, options: StoreOptions) -> None:
        """Create with `create_object_store`."""
        assert not options.metadata, "nats-py 2.16 gives stores no metadata"
        assert not options.compressed, "nats-py 2.16 compresses no store"
        with _refusals():
            await self._js.create_object_store(
                options.name,
                description=options.description or None,
                ttl=options.ttl_s or None,
                max_bytes=options.bytes_max or -1,
                storage=StorageType.MEMORY if options.in_memory else StorageType.FILE,
                replicas=options.replicas,
            )

    async def put(self, store: str, name: str, data: bytes, about: About = PLAIN) -> None:
        """Store with `put`; the headers that it writes are unreadable for others."""
        assert not about.metadata, "nats-py 2.16 gives objects no metadata"
        meta = ObjectMeta(name=name, description=about.description or None)
        await (await self._js.object_store(store)).put(name, data, meta=meta)

    async def get(self, store: str, name: str) -> bytes | None:
        """Read with `get`."""
        try:
            result = await (await self._js.object_store(store)).get(name)
        except NotFoundError:
            return None
        return cast("bytes", result.data)

    async def info(self, store: str, name: str) -> Shown | None:
        """Read with `get_info`."""
        try:
            info = await (await self._js.object_store(store)).get_info(name)
        except NotFoundError:
            return None
        digest = base64.urlsafe_b64decode(info.digest.removeprefix("SHA-256="))
        return Shown(
            name=info.name,
            size=info.size,
            chunks=info.chunks,
            digest=digest.hex(),
            description=info.description or "",
            headers=info.headers or {},
            metadata=None,
        )

    async def names(self, store: str) -> list[str]:
        """List with `list`, which raises when there are none."""
        try:
            infos = await (await self._js.object_store(store)).list(ignore_deletes=True)
        except NotFoundError:
            return []
        return sorted(info.name for info in infos)

    async def delete(self, store: str, name: str) -> None:
        """Delete with `delete`, whose marker Go can not read (finding 13)."""
        await (await self._js.object_store(store)).delete(name)

    async def seal(self, store: str) -> None:
        """Seal with `seal`."""
        await (await self._js.object_store(store)).seal()
