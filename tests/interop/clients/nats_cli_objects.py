"""The `nats` CLI's object stores for the interop tests.

natscli 0.3.0 has no command that renames or links, none that gives an object metadata, and none
that shows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from tests.interop.clients.nats_cli import CliError
from tests.interop.clients.objects import PLAIN, Shown, Told

if TYPE_CHECKING:
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.objects import About, StoreOptions

GET_ATTEMPTS: Final = 10
_FIELD: Final = re.compile(r"^ *(Description|Size|Chunks|Digest|Headers|Header): (.*)$")
_PAIR: Final = re.compile(r"^ {15,}(\S+): (.*)$")
_WATCHED: Final = re.compile(r"^\[[^]]+\] (PUT|DEL) \S+ > ([^:\s]+)(?::.*)?$")
_UNITS: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2}


class CliObjects:
    """`nats object`; sizes are exact below 1 KiB alone, since it prints three digits."""

    def __init__(self, cli: NatsCli, *flags: str) -> None:
        """Describe it.

        Args:
            cli: The program on a server.
            flags: Given with every command, such as a domain.
        """
        self._cli = cli
        self._flags = flags
        self._files = 0

    async def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        result = await self._cli.run(*self._flags, "object", *arguments, stdin=stdin)
        return result.stdout.decode()

    async def create_store(self, options: StoreOptions) -> None:
        """Create with `nats object add`."""
        flags = {
            "description": options.description,
            "ttl": options.ttl_s and f"{options.ttl_s}s",
            "max-bucket-size": options.bytes_max,
            "storage": "memory" if options.in_memory else "file",
            "replicas": options.replicas,
        }
        given = [f"--{name}={value}" for name, value in flags.items() if value]
        given += [f"--metadata={name}={value}" for name, value in options.metadata.items()]
        given += ["--compress"] if options.compressed else []
        await self._run("add", options.name, *given)

    async def put(self, store: str, name: str, data: bytes, about: About = PLAIN) -> None:
        """Store with `nats object put`, from a file."""
        assert not about.metadata, "natscli 0.3.0 gives objects no metadata"
        flags = [f"--name={name}", "--no-progress", "--force"]
        flags += [f"--description={about.description}"] if about.description else []
        pairs = [(key, value) for key, all_ in about.headers.items() for value in all_]
        flags += [f"--header={key}:{value}" for key, value in pairs]
        self._files += 1
        path = self._cli.folder / f"object-{self._files}"
        path.write_bytes(data)
        await self._run("put", store, str(path), *flags)

    async def put_from_pipe(self, store: str, name: str, data: bytes) -> None:
        """Store with `nats object put` from its input: a chunk is what one read of it returns."""
        await self._run("put", store, f"--name={name}", "--no-progress", "--force", stdin=data)

    async def get(self, store: str, name: str) -> bytes | None:
        """Read with `nats object get`, into a file."""
        self._files += 1
        path = self._cli.folder / f"object-{self._files}"
        flags = (f"--output={path}", "--no-progress", "--force")
        for attempt in range(GET_ATTEMPTS):
            try:
                await self._run("get", store, name, *flags)
                break
            except CliError as error:
                if "object not found" in str(error):
                    return None
                # nats.go ends its own deadline with the last chunk, and may then take that for
                # the reason why the reading ended: 2 of 72 objects on a machine with two cores.
                if "context canceled" not in str(error) or attempt == GET_ATTEMPTS - 1:
                    raise
        return path.read_bytes()

    async def info(self, store: str, name: str) -> Shown | None:
        """Read what `nats object info` prints."""
        try:
            said = await self._run("info", store, name)
        except CliError as error:
            if "object not found" in str(error):
                return None
            raise
        fields: dict[str, str] = {}
        headers: dict[str, list[str]] = {}
        for line in said.splitlines():
            field, pair = _FIELD.match(line), _PAIR.match(line)
            if field is not None:
                fields[field[1]] = field[2]
                pair = _PAIR.match(" " * 15 + field[2]) if field[1] == "Headers" else None
            if pair is not None:
                headers.setdefault(pair[1], []).append(pair[2])
        number, unit = fields["Size"].split()
        return Shown(
            name=name,
            size=int(float(number) * _UNITS[unit]),
            chunks=int(fields["Chunks"]),
            digest=fields["Digest"].removeprefix("SHA-256 "),
            description=fields.get("Description", ""),
            headers=headers,
            metadata=None,
        )

    async def names(self, store: str) -> list[str]:
        """Read the table of `nats object ls`, which fails when there are none."""
        try:
            said = await self._run("ls", store)
        except CliError as error:
            if "no objects found" in str(error):
                return []
            raise
        rows = [line.split("│") for line in said.splitlines() if line.startswith("│")]
        names = [row[1].strip() for row in rows if len(row) == 5]
        return sorted(name for name in names if name != "Name")

    async def delete(self, store: str, name: str) -> None:
        """Delete with `nats object del`."""
        await self._run("del", store, name, "--force")

    async def watch(self, store: str, count: int) -> list[Told]:
        """Read what `nats object watch` prints, and end it."""
        lines = await self._cli.lines(*self._flags, "object", "watch", store, count=count)
        found = [_WATCHED.match(line) for line in lines]
        assert all(found), lines
        # Every one of them matches, as was just asserted.
        return [
            Told(each[2], is_deleted=each[1] == "DEL")
            for each in cast("list[re.Match[str]]", found)
        ]

    async def seal(self, store: str) -> None:
        """Seal with `nats object seal`."""
        await self._run("seal", store, "--force")
