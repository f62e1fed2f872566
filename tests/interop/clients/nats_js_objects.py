"""nats.js's object stores for the interop tests."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from tests.interop.clients.objects import PLAIN, Shown, Told

if TYPE_CHECKING:
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.objects import About, StoreOptions

SECOND_NS = 1_000_000_000


class JsObjects:
    """`Objm` of @nats-io/obj. It opens a store that exists, whatever was asked for."""

    def __init__(self, nats_js: NatsJs, *, domain: str | None = None) -> None:
        self._nats_js = nats_js
        self._domain = domain

    async def _call(self, verb: str, store: str, **arguments: Any) -> Any:
        return await self._nats_js.call(
            f"obj_{verb}", store=store, domain=self._domain, **arguments
        )

    async def create_store(self, options: StoreOptions) -> None:
        """Create with `Objm.create`."""
        given: dict[str, object] = {
            "description": options.description,
            "ttl": options.ttl_s * SECOND_NS,
            "max_bytes": options.bytes_max,
            "storage": "memory" if options.in_memory else "file",
            "compression": options.compressed,
            "replicas": options.replicas,
            "metadata": options.metadata,
        }
        asked = {name: value for name, value in given.items() if value}
        await self._call("create_store", options.name, options=asked)

    async def put(self, store: str, name: str, data: bytes, about: About = PLAIN) -> None:
        """Store with `putBlob`."""
        await self._call(
            "put",
            store,
            name=name,
            data=base64.b64encode(data).decode(),
            description=about.description,
            headers=about.headers,
            metadata=about.metadata,
        )

    async def get(self, store: str, name: str) -> bytes | None:
        """Read with `getBlob`."""
        data = await self._call("get", store, name=name)
        return None if data is None else base64.b64decode(data)

    async def info(self, store: str, name: str) -> Shown | None:
        """Read with `info`, which returns what was deleted as well."""
        found = await self._call("info", store, name=name)
        if found is None or found.get("deleted"):
            return None
        digest = base64.urlsafe_b64decode(found["digest"].removeprefix("SHA-256="))
        return Shown(
            name=found["name"],
            size=found["size"],
            chunks=found["chunks"],
            digest=digest.hex(),
            description=found.get("description") or "",
            headers=found["headers"],
            metadata=found.get("metadata") or {},
        )

    async def names(self, store: str) -> list[str]:
        """List with `list`, which has what was deleted as well."""
        return sorted(await self._call("names", store))

    async def delete(self, store: str, name: str) -> None:
        """Delete with `delete`."""
        await self._call("delete", store, name=name)

    async def rename(self, store: str, name: str, new_name: str) -> None:
        """Rename with `update`."""
        await self._call("rename", store, name=name, new_name=new_name)

    async def link(self, store: str, name: str, target_store: str, target: str) -> None:
        """Link with `link`."""
        await self._call("link", store, name=name, target_store=target_store, target=target)

    async def link_store(self, store: str, name: str, target_store: str) -> None:
        """Link with `linkStore`."""
        await self._call("link_store", store, name=name, target_store=target_store)

    async def watch(self, store: str, count: int) -> list[Told]:
        """Read with `watch`, and end it; it tells of what is there where it is asked to."""
        found = await self._call("watch", store, count=count)
        return [Told(each["name"], is_deleted=each["deleted"]) for each in found]

    async def seal(self, store: str) -> None:
        """Seal with `seal`."""
        await self._call("seal", store)
