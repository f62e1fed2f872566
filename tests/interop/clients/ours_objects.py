"""natsstream's object stores for the interop tests."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from typing import TYPE_CHECKING

from natsstream import ObjectBucketConfig, ServerError
from tests.interop.clients.client import RefusedError
from tests.interop.clients.objects import PLAIN, Shown, Told

if TYPE_CHECKING:
    from collections.abc import Generator

    from natsstream import JetStream
    from tests.interop.clients.objects import About, StoreOptions


@contextmanager
def _refusals() -> Generator[None]:
    """Turn what the server refuses into the harness's error."""
    try:
        yield
    except ServerError as error:
        raise RefusedError(str(error), error.err_code) from error


class OurObjects:
    """`js.objects` and what it hands out."""

    def __init__(self, js: JetStream) -> None:
        self.js = js

    async def create_store(self, options: StoreOptions) -> None:
        """Create with `create`."""
        config = ObjectBucketConfig(
            name=options.name,
            description=options.description or None,
            ttl=options.ttl_s or None,
            max_bytes=options.bytes_max or None,
            storage="memory" if options.in_memory else None,
            compression=options.compressed or None,
            replicas=options.replicas,
            metadata=options.metadata or None,
        )
        with _refusals():
            await self.js.objects.create(config)

    async def put(self, store: str, name: str, data: bytes, about: About = PLAIN) -> None:
        """Store with `put`."""
        box = await self.js.objects.get(store)
        with _refusals():
            await box.put(
                name,
                data,
                description=about.description,
                headers=about.headers,
                metadata=about.metadata,
            )

    async def get(self, store: str, name: str) -> bytes | None:
        """Read with `get`."""
        return await (await self.js.objects.get(store)).get(name)

    async def info(self, store: str, name: str) -> Shown | None:
        """Read with `info`."""
        info = await (await self.js.objects.get(store)).info(name)
        if info is None:
            return None
        digest = base64.urlsafe_b64decode(info.digest.removeprefix("SHA-256="))
        return Shown(
            name=info.name,
            size=info.size,
            chunks=info.chunks,
            digest=digest.hex(),
            description=info.description or "",
            headers={name: list(values) for name, values in info.headers.items()},
            metadata=dict(info.metadata),
        )

    async def names(self, store: str) -> list[str]:
        """List with `names`."""
        return sorted([name async for name in (await self.js.objects.get(store)).names()])

    async def delete(self, store: str, name: str) -> None:
        """Delete with `delete`."""
        await (await self.js.objects.get(store)).delete(name)

    async def rename(self, store: str, name: str, new_name: str) -> None:
        """Rename with `rename`."""
        await (await self.js.objects.get(store)).rename(name, new_name)

    async def link(self, store: str, name: str, target_store: str, target: str) -> None:
        """Link with `link`."""
        info = await (await self.js.objects.get(target_store)).info(target)
        assert info is not None
        await (await self.js.objects.get(store)).link(name, info)

    async def link_store(self, store: str, name: str, target_store: str) -> None:
        """Link with `link_bucket`."""
        await (await self.js.objects.get(store)).link_bucket(name, target_store)

    async def watch(self, store: str, count: int) -> list[Told]:
        """Read with `watch`, and end it."""
        found: list[Told] = []
        async with (await self.js.objects.get(store)).watch() as watch:
            async for info in watch:
                found.append(Told(info.name, is_deleted=info.deleted))
                if len(found) == count:
                    break
        return found

    async def seal(self, store: str) -> None:
        """Seal with `seal`."""
        await (await self.js.objects.get(store)).seal()
