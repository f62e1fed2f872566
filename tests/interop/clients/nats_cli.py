"""The `nats` CLI as a client of the interop tests: one process a command.

Every process has an environment of its own: no context, server or credentials of the user who runs
the tests reach it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tests.interop.clients.client import Ack, RefusedError, Stored, Taken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from natsstream import Expect
    from tests.interop.clients.client import Config, Verdict

# Only a hang may reach it: a machine that is busy with other tests stands still for seconds.
TIMEOUT_S = 30.0

_STORED_IN = re.compile(r"Stored in Stream: (\S+) Sequence: (\d+)( Duplicate: true)?")
_TAKEN = re.compile(
    r"^\[[\d:]+\] subj: (\S+) / tries: \d+ / cons seq: \d+ / str seq: (\d+) /[^\n]*\n\n"
    r"(?:Headers:\n\n((?:  [^\n]*\n)*)\n)?"
    r"Data:\n\n\n(.*?)\n\nAcknowledged message$",
    re.MULTILINE | re.DOTALL,
)
_TRIED = re.compile(
    r"^\[[\d:]+\] subj: \S+ / tries: (\d+) / cons seq: \d+ / str seq: (\d+) /", re.MULTILINE
)
_ERR_CODE = re.compile(r"\((\d{5})\)\s*$|\berr_code=(\d{5})\b")


@dataclass(frozen=True, slots=True)
class CliResult:
    """What one command said on its two ways out."""

    stdout: bytes
    stderr: str


class CliError(RefusedError):
    """A command ended with another code than 0; `err_code` is what it names, else 0."""


class NatsCli:
    """Runs `nats` on one server.

    Attributes:
        folder: Home of the commands: configuration, contexts, and files that they read and write.
    """

    def __init__(self, program: Path, url: str | None, folder: Path) -> None:
        """Describe it; nothing runs yet.

        Args:
            program: Path of `nats`.
            url: The server; None leaves it to a context.
            folder: An empty folder of its own.
        """
        self._program = program
        self.folder = folder
        self._files = 0
        self.environment = {
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PATH": "/usr/bin:/bin",
            # For each answer of the server; 5 s by default.
            "NATS_TIMEOUT": f"{TIMEOUT_S:g}s",
            **({"NATS_URL": url} if url else {}),
        }

    async def run(
        self, *arguments: str, stdin: bytes = b"", timeout_s: float = TIMEOUT_S
    ) -> CliResult:
        """Run one command to its end.

        Raises:
            CliError: It ended with another code than 0.
            TimeoutError: It did not end in time; it was killed.
        """
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment,
            cwd=self.folder,
        )
        try:
            async with asyncio.timeout(timeout_s):
                stdout, stderr = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        said = stderr.decode()
        if process.returncode != 0:
            command = " ".join(["nats", *arguments])
            found = _ERR_CODE.search(said)
            message = f"{command} ended with code {process.returncode}: {said.strip()}"
            raise CliError(message, int(found[1] or found[2]) if found else 0)
        return CliResult(stdout, said)

    async def lines(self, *arguments: str, count: int, timeout_s: float = TIMEOUT_S) -> list[str]:
        """Run a command that does not end, and return the first lines that it prints.

        Raises:
            TimeoutError: It did not print so many in time.
        """
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self.environment,
            cwd=self.folder,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(timeout_s):
                return [(await process.stdout.readline()).decode().rstrip() for _ in range(count)]
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def json(self, *arguments: str) -> dict[str, object]:
        """Run one command with `--json` and return what it prints."""
        result = await self.run(*arguments, "--json")
        return cast("dict[str, object]", json.loads(result.stdout))

    def write_file(self, content: object) -> Path:
        """Write JSON into a new file for a command to read."""
        self._files += 1
        path = self.folder / f"input-{self._files}.json"
        path.write_text(json.dumps(content), "utf-8")
        return path

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: Mapping[str, Sequence[str]] | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl_s: int | None = None,
    ) -> Ack:
        """Publish with `nats pub -J`; ids, expectations and lives are headers there."""
        values = {name: list(all_) for name, all_ in (headers or {}).items()}
        values |= {"Nats-Msg-Id": [msg_id]} if msg_id is not None else {}
        values |= {"Nats-TTL": [str(ttl_s)]} if ttl_s is not None else {}
        values |= {name: [value] for name, value in _expectations(expect).items()}
        flags = [f"--header={name}:{each}" for name, all_ in values.items() for each in all_]
        command = ("publish", "--jetstream", "--force-stdin", "--no-templates", *flags, subject)
        result = await self.run(*command, stdin=data)
        said = _STORED_IN.search(result.stderr)
        assert said is not None, result
        return Ack(said[1], int(said[2]), said[3] is not None)

    async def get(self, stream: str, sequence: int) -> Stored:
        """Return one message with `nats stream get`."""
        answer = cast("dict[str, str]", await self.json("stream", "get", stream, str(sequence)))
        block = base64.b64decode(answer.get("hdrs", ""))
        data = base64.b64decode(answer.get("data", ""))
        return Stored(answer["subject"], int(answer["seq"]), _headers(block), data)

    async def read(self, stream: str, count: int, *, only: str | None = None) -> list[Stored]:
        """Read with `nats sub --stream`, which dumps each message into a file."""
        self._files += 1
        folder = self.folder / f"dump-{self._files}"
        start = "--all"
        if only is not None:
            # With --all, natscli 0.3.0 takes a filter and reads everything.
            consumer = f"filtered-{self._files}"
            flags = ("--pull", "--ack=none", "--deliver=all", "--defaults")
            await self.run("consumer", "add", stream, consumer, f"--filter={only}", *flags)
            start = f"--durable={consumer}"
        flags = (f"--stream={stream}", start, f"--count={count}", f"--dump={folder}")
        await self.run("subscribe", *flags)
        # The files are named by the stream's sequences; the consumer's tell the order of delivery.
        found = dict(_dumped(path) for path in folder.iterdir())
        return [found[number] for number in range(1, count + 1)]

    async def create(self, config: Config) -> None:
        """Create a stream with `nats stream add`, from a file."""
        path = self.write_file(config)
        await self.run("stream", "add", cast("str", config["name"]), f"--config={path}", "--json")

    async def update(self, stream: str, changes: Config) -> None:
        """Change a stream with the flags of `nats stream edit`."""
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in changes.items()]
        await self.run("stream", "edit", stream, "--force", *flags)

    async def create_consumer(self, stream: str, config: Config) -> None:
        """Create a consumer with `nats consumer add`, from a file."""
        name = cast("str", config["durable_name"])
        path = self.write_file(config)
        await self.run("consumer", "add", stream, name, f"--config={path}")

    async def update_consumer(self, stream: str, consumer: str, changes: Config) -> None:
        """Change a consumer with the flags of `nats consumer edit`."""
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in changes.items()]
        await self.run("consumer", "edit", stream, consumer, "--force", *flags)

    async def consumer_config(self, stream: str, consumer: str) -> Config:
        """Return what `nats consumer info` shows."""
        shown = await self.json("consumer", "info", stream, consumer)
        return cast("Config", shown["config"])

    async def work(self, stream: str, consumer: str, count: int) -> list[Stored]:
        """Take with `nats consumer next`, which prints each message and then acknowledges it."""
        # Not `nats sub --durable`: it takes more than `count`, and the rest waits for `ack_wait`.
        flags = (f"--count={count}", "--ack", f"--timeout={TIMEOUT_S:g}s")
        said = (await self.run("consumer", "next", stream, consumer, *flags)).stdout.decode()
        return [_printed(found) for found in _TAKEN.finditer(said)]

    async def settle(
        self,
        stream: str,
        consumer: str,
        verdict: Verdict,
        *,
        within_s: float = TIMEOUT_S,
        delay_s: float = 0,
        reason: str = "",
        group: str = "",
        min_pending: int = 0,
    ) -> Taken | None:
        """Settle with the flags of `nats consumer next`, which has no others."""
        assert (delay_s, reason, group, min_pending) == (0, "", "", 0)
        flag = {"ack": "--ack", "nak": "--nak", "term": "--term", "none": "--no-ack"}[verdict]
        command = ("consumer", "next", stream, consumer, flag, f"--timeout={within_s:g}s")
        found = _TRIED.search((await self.run(*command)).stdout.decode())
        return Taken(int(found[2]), int(found[1])) if found else None

    async def count(self, subject: str, delta: int) -> Ack:
        """Add with a header: natscli 0.3.0 has no command for counters."""
        return await self.publish(subject, headers={"Nats-Incr": [f"{delta:+d}"]})

    async def total(self, stream: str, subject: str) -> int:
        """Read the counter's last message with `nats stream get`."""
        answer = await self.json("stream", "get", stream, f"--last-for={subject}")
        body = json.loads(base64.b64decode(cast("str", answer["data"])))
        return int(body["val"])

    async def publish_batch(self, subject: str, payloads: Sequence[bytes]) -> Ack:
        """Publish with the headers of a batch: natscli 0.3.0 has a benchmark for it alone."""
        self._files += 1
        batch = f"{self.folder.name}-{self._files}"
        for number, payload in enumerate(payloads[:-1], 1):
            headers = (f"Nats-Batch-Id:{batch}", f"Nats-Batch-Sequence:{number}")
            flags = [f"--header={each}" for each in headers]
            await self.run("publish", "--force-stdin", *flags, subject, stdin=payload)
        last = {"Nats-Batch-Id": [batch], "Nats-Batch-Sequence": [str(len(payloads))]}
        headers = {**last, "Nats-Batch-Commit": ["1"]}
        return await self.publish(subject, payloads[-1], headers=headers)

    async def config(self, stream: str) -> Config:
        """Return what `nats stream info` shows."""
        return cast("Config", (await self.json("stream", "info", stream, "--no-select"))["config"])


def _expectations(expect: Expect | None) -> dict[str, str]:
    if expect is None:
        return {}
    values = {
        "Nats-Expected-Stream": expect.stream,
        "Nats-Expected-Last-Sequence": expect.last_seq,
        "Nats-Expected-Last-Subject-Sequence": expect.last_subject_seq,
        "Nats-Expected-Last-Subject-Sequence-Subject": expect.subject,
        "Nats-Expected-Last-Msg-Id": expect.last_msg_id,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def _headers(block: bytes) -> dict[str, list[str]]:
    """Read a header block, without our library's help."""
    headers: dict[str, list[str]] = {}
    for line in block.decode().split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name, []).append(value.strip())
    return headers


def _printed(found: re.Match[str]) -> Stored:
    """Return a message as `nats consumer next` prints it."""
    headers: dict[str, list[str]] = {}
    for line in (found[3] or "").splitlines():
        name, _, value = line.strip().partition(": ")
        headers.setdefault(name, []).append(value)
    return Stored(found[1], int(found[2]), headers, found[4].encode())


def _dumped(path: Path) -> tuple[int, Stored]:
    """Return the consumer's sequence of a dumped message, and the message."""
    message = json.loads(path.read_text("utf-8"))
    # $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer's sequence>.<time>.<pending>
    tokens = message["Reply"].split(".")
    assert len(tokens) == 9
    data = base64.b64decode(message["Data"] or "")
    return int(tokens[6]), Stored(message["Subject"], int(tokens[5]), message["Header"] or {}, data)
