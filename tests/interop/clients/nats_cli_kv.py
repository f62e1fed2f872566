"""The `nats` CLI's buckets for the interop tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from tests.interop.clients.kv import Seen
from tests.interop.clients.nats_cli import CliError

if TYPE_CHECKING:
    from tests.interop.clients.kv import BucketOptions, Operation
    from tests.interop.clients.nats_cli import NatsCli

_OPERATIONS: Final[dict[str, Operation]] = {"PUT": "PUT", "DELETE": "DEL", "PURGE": "PURGE"}
_WATCHED: Final = re.compile(r"^\[[^]]+\] (PUT|DELETE|PURGE) \S+ > ([^:\s]+)(?:: (.*))?$")
_ROW: Final = re.compile(r"^│ (\S+) +│ +\d+ │ (\w+) +│ [\d: -]+ │ \d+ +│ (.*?) *│$")


class CliBuckets:
    """`nats kv`; values are one printable line, since histories and watches print them."""

    def __init__(self, cli: NatsCli, *flags: str) -> None:
        """Describe it.

        Args:
            cli: The program on a server.
            flags: Given with every command, such as a domain.
        """
        self._cli = cli
        self._flags = flags

    async def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        result = await self._cli.run(*self._flags, "kv", *arguments, stdin=stdin)
        return result.stdout.decode()

    async def create_bucket(self, options: BucketOptions) -> None:
        """Create with `nats kv add`."""
        flags = {
            "history": options.history,
            "description": options.description,
            "ttl": options.ttl_s and f"{options.ttl_s}s",
            "marker-ttl": options.marker_ttl_s and f"{options.marker_ttl_s}s",
            "max-bucket-size": options.bytes_max,
            "max-value-size": options.value_bytes_max,
            "storage": "memory" if options.in_memory else "file",
            "replicas": options.replicas,
            "mirror": options.mirror,
            "republish-source": options.republish and options.republish[0],
            "republish-destination": options.republish and options.republish[1],
        }
        given = [f"--{name}={value}" for name, value in flags.items() if value]
        given += [f"--source={name}" for name in options.sources]
        given += ["--compress"] if options.compressed else []
        await self._run("add", options.name, *given)

    async def get(self, bucket: str, key: str) -> bytes | None:
        """Read with `nats kv get`."""
        try:
            result = await self._cli.run(*self._flags, "kv", "get", bucket, key, "--raw")
        except CliError as error:
            if "key not found" in str(error):
                return None
            raise
        # It ends what it prints with a line break.
        return result.stdout.removesuffix(b"\n")

    async def put(self, bucket: str, key: str, value: bytes) -> None:
        """Write with `nats kv put`, which reads a value of any bytes from its input."""
        await self._run("put", bucket, key, stdin=value)

    async def create(
        self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None
    ) -> None:
        """Write with `nats kv create`."""
        flags = [f"--ttl={ttl_s}s"] if ttl_s is not None else []
        await self._run("create", bucket, key, *flags, stdin=value)

    async def update(self, bucket: str, key: str, value: bytes, *, revision: int) -> None:
        """Write with `nats kv update`."""
        await self._run("update", bucket, key, value.decode(), str(revision))

    async def delete(self, bucket: str, key: str) -> None:
        """Delete with `nats kv del`."""
        await self._run("del", bucket, key, "--force")

    async def purge(self, bucket: str, key: str, *, ttl_s: int | None = None) -> None:
        """Purge with `nats kv purge`."""
        flags = [f"--ttl={ttl_s}s"] if ttl_s is not None else []
        await self._run("purge", bucket, key, "--force", *flags)

    async def keys(self, bucket: str) -> list[str]:
        """List with `nats kv ls`."""
        said = await self._run("ls", bucket)
        return sorted(line for line in said.splitlines() if line and " " not in line)

    async def compact(self, bucket: str) -> None:
        """Remove what deleted keys take with `nats kv compact`."""
        await self._run("compact", bucket, "--force")

    async def history(self, bucket: str, key: str) -> list[Seen]:
        """Read the table of `nats kv history`."""
        rows = map(_ROW.match, (await self._run("history", bucket, key)).splitlines())
        return [_seen(row[2], row[1], row[3]) for row in rows if row is not None]

    async def watch(self, bucket: str, count: int) -> list[Seen]:
        """Read what `nats kv watch` prints, and end it."""
        lines = await self._cli.lines(*self._flags, "kv", "watch", bucket, count=count)
        found = [_WATCHED.match(line) for line in lines]
        assert all(found), lines
        # Every one of them matches, as was just asserted.
        return [
            _seen(each[1], each[2], each[3] or "") for each in cast("list[re.Match[str]]", found)
        ]


def _seen(operation: str, key: str, value: str) -> Seen:
    return Seen(key, _OPERATIONS[operation], value.encode())
