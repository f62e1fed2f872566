"""nats.js as a client of the interop tests: one Node.js process for the whole run."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import subprocess
import threading
from collections import deque
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.interop.clients.client import Ack, RefusedError, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from natsstream import Expect
    from tests.interop.clients.client import Config, Headers

# Only a hang may reach them: a machine that is busy with other tests stands still for seconds.
TIMEOUT_S = 30.0
TAKE_TIMEOUT_S = 30.0
END_TIMEOUT_S = 30.0

_PROGRAM = Path(__file__).with_name("nats_js.mjs")
_STDERR_LINES = 40


class NodeProcess:
    """The process of `nats_js.mjs`; serves tests whose event loops differ, one after the other."""

    def __init__(self, node: str, packages: Path) -> None:
        """Describe it; nothing runs yet.

        Args:
            node: The program of Node.js.
            packages: The folder whose node_modules hold nats.js.
        """
        self._command = [node, str(_PROGRAM), str(packages)]
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._is_over = False
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self._threads = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        try:
            # The program ends with its stdin.
            self._process.stdin.close()
            self._process.wait(END_TIMEOUT_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait(END_TIMEOUT_S)
        for thread in self._threads:
            thread.join(END_TIMEOUT_S)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    @property
    def pid(self) -> int:
        """Process id of Node.js."""
        return self._process.pid

    async def call(self, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: object) -> Any:
        """Have one command done and return its result.

        Raises:
            RefusedError: nats.js raised an error; `err_code` is the server's, else 0.
            TimeoutError: No answer in time.
            RuntimeError: The process has ended.
        """
        number = next(self._ids)
        future: Future[Any] = Future()
        with self._lock:
            if self._is_over:
                raise self._ended()
            self._waiting[number] = future
        line = json.dumps({"id": number, "verb": verb, **arguments})
        assert self._process.stdin is not None
        try:
            try:
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()
            except BrokenPipeError as error:
                raise self._ended() from error
            async with asyncio.timeout(timeout_s):
                answer = await asyncio.wrap_future(future)
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if error := answer.get("error"):
            raise RefusedError(f"{verb}: {error['name']}: {error['message']}", error["err_code"])
        return answer["result"]

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer["id"], None)
            # Whoever has waited too long is gone.
            if future is not None and future.set_running_or_notify_cancel():
                future.set_result(answer)
        with self._lock:
            self._is_over = True
            left = list(self._waiting.values())
        for future in left:
            if future.set_running_or_notify_cancel():
                future.set_exception(self._ended())

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        self._stderr.extend(self._process.stderr)

    def _ended(self) -> RuntimeError:
        return RuntimeError(f"the process of nats.js has ended:\n{''.join(self._stderr)}")


class NatsJs:
    """nats.js on one server."""

    def __init__(self, process: NodeProcess, url: str) -> None:
        self._process = process
        self._url = url

    async def call(self, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: object) -> Any:
        """Have one verb of `nats_js.mjs` done on this server; see `NodeProcess.call`."""
        return await self._process.call(verb, timeout_s=timeout_s, url=self._url, **arguments)

    async def take(
        self, handle: int, count: int, *, within_s: float = TAKE_TIMEOUT_S
    ) -> list[Stored]:
        """Return the next `count` messages of a handle; fewer when no more come in time."""
        milliseconds = int(within_s * 1_000)
        items = await self._process.call(
            "take",
            handle=handle,
            count=count,
            timeout_ms=milliseconds,
            timeout_s=within_s + TIMEOUT_S,
        )
        return [_stored(item) for item in items]

    async def drop(self, handle: int) -> None:
        """End what a handle stands for."""
        await self._process.call("drop", handle=handle)

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
        """Publish with the options that nats.js has."""
        options: dict[str, object] = {"msgID": msg_id} if msg_id is not None else {}
        options |= {"ttl": f"{ttl_s}s"} if ttl_s is not None else {}
        options |= {"expect": _expectations(expect)} if expect is not None else {}
        values = {name: list(all_) for name, all_ in (headers or {}).items()}
        ack = await self.call(
            "publish", subject=subject, data=_text(data), headers=values, options=options
        )
        return Ack(ack["stream"], ack["sequence"], ack["duplicate"])

    async def get(self, stream: str, sequence: int) -> Stored:
        """Return one message."""
        found = await self.call("stream_get", stream=stream, query={"seq": sequence})
        assert found is not None, f"{stream} has no message {sequence}"
        return _stored(found)

    async def read(self, stream: str, count: int, *, only: str | None = None) -> list[Stored]:
        """Read with an ordered consumer."""
        options = {"filter_subjects": [only]} if only else {}
        handle = await self.call("ordered", stream=stream, options=options)
        try:
            return await self.take(handle, count)
        finally:
            await self.drop(handle)

    async def create(self, config: Config) -> None:
        """Create a stream."""
        await self.call("stream_add", config=config)

    async def update(self, stream: str, changes: Config) -> None:
        """Give the changed fields alone; nats.js merges them with what the server has."""
        await self.call("stream_update", stream=stream, changes=changes)

    async def create_consumer(self, stream: str, config: Config) -> None:
        """Create a consumer."""
        await self.call("consumer_add", stream=stream, config=config)

    async def update_consumer(self, stream: str, consumer: str, changes: Config) -> None:
        """Give the changed fields alone; nats.js merges them with what the server has."""
        await self.call("consumer_update", stream=stream, consumer=consumer, changes=changes)

    async def consumer_config(self, stream: str, consumer: str) -> Config:
        """Return what the server said."""
        info = await self.call("consumer_info", stream=stream, consumer=consumer)
        return cast("Config", info["config"])

    async def work(self, stream: str, consumer: str, count: int) -> list[Stored]:
        """Fetch, and wait until the server has each ack."""
        milliseconds = int(TAKE_TIMEOUT_S * 1_000)
        items = await self.call(
            "consumer_work", stream=stream, consumer=consumer, count=count, timeout_ms=milliseconds
        )
        return [_stored(item) for item in items]

    async def count(self, subject: str, delta: int) -> Ack:
        """Add with a header, as its own documentation does."""
        return await self.publish(subject, headers={"Nats-Incr": [f"{delta:+d}"]})

    async def total(self, stream: str, subject: str) -> int:
        """Read the counter's last message."""
        found = await self.call("stream_get", stream=stream, query={"last_by_subj": subject})
        return int(json.loads(base64.b64decode(found["data"]))["val"])

    async def publish_batch(self, subject: str, payloads: Sequence[bytes]) -> Ack:
        """Publish with its batch publisher."""
        texts = [_text(payload) for payload in payloads]
        ack = await self.call("publish_batch", subject=subject, payloads=texts)
        return Ack(ack["stream"], ack["sequence"])

    async def ingest(self, subject: str, messages: Sequence[tuple[bytes, Headers]]) -> Ack:
        """Publish with its fast ingest; the last one's ack."""
        items = [{"data": _text(data), "headers": headers} for data, headers in messages]
        ack = await self.call("ingest", subject=subject, items=items)
        assert ack["count"] == len(items)
        return Ack(ack["stream"], ack["sequence"])

    async def config(self, stream: str) -> Config:
        """Return what the server said."""
        return cast("Config", (await self.call("stream_info", stream=stream))["config"])


def _stored(item: Mapping[str, Any]) -> Stored:
    data = base64.b64decode(item["data"])
    return Stored(item["subject"], item.get("sequence") or 0, item["headers"], data)


def _expectations(expect: Expect) -> dict[str, object]:
    values = {
        "streamName": expect.stream,
        "lastSequence": expect.last_seq,
        "lastSubjectSequence": expect.last_subject_seq,
        "lastSubjectSequenceSubject": expect.subject,
        "lastMsgID": expect.last_msg_id,
    }
    return {name: value for name, value in values.items() if value is not None}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
