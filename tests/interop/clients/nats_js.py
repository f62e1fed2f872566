"""nats.js as a client of the interop tests: one Node.js process for the whole run."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tests.interop.clients.client import Ack, Stored, Taken
from tests.interop.clients.program import TIMEOUT_S, Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from natsstream import Expect
    from tests.interop.clients.client import Config, Headers, Verdict

# Only a hang may reach it: a machine that is busy with other tests stands still for seconds.
TAKE_TIMEOUT_S = 30.0

_PROGRAM = Path(__file__).with_name("nats_js.mjs")


class NodeProcess(Program):
    """The process of `nats_js.mjs`."""

    def __init__(self, node: str, packages: Path) -> None:
        """Describe it; nothing runs yet.

        Args:
            node: The program of Node.js.
            packages: The folder whose node_modules hold nats.js.
        """
        super().__init__("nats.js", [node, str(_PROGRAM), str(packages)])


class NatsJs:
    """nats.js on one server."""

    def __init__(self, process: Program, url: str) -> None:
        self._process = process
        self._url = url

    async def call(self, verb: str, *, timeout_s: float = TIMEOUT_S, **arguments: object) -> Any:
        """Have one verb of `nats_js.mjs` done on this server; see `Program.call`."""
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

    async def settle(
        self,
        stream: str,
        consumer: str,
        verdict: Verdict,
        *,
        within_s: float = TAKE_TIMEOUT_S,
        delay_s: float = 0,
        reason: str = "",
        group: str = "",
        min_pending: int = 0,
    ) -> Taken | None:
        """Fetch one message and settle it; the server has read the verdict when this returns."""
        items = await self.call(
            "consumer_settle",
            stream=stream,
            consumer=consumer,
            count=1,
            timeout_ms=int(within_s * 1_000),
            timeout_s=within_s + TIMEOUT_S,
            verdict=verdict,
            delay_ms=int(delay_s * 1_000),
            reason=reason,
            group=group,
            min_pending=min_pending,
        )
        return Taken(items[0]["sequence"], items[0]["delivered"]) if items else None

    async def listen(self, stream: str, consumer: str) -> JsListening:
        """Read with its push consumer."""
        handle = await self.call("push", stream=stream, consumer=consumer)
        return JsListening(self, handle)

    async def direct_batch(
        self, stream: str, count: int, *, first: int, subject: str = ""
    ) -> list[Stored]:
        """Read with its direct batch."""
        items = await self.call(
            "direct_batch", stream=stream, count=count, first=first, subject=subject
        )
        return [_stored(item) for item in items]

    async def direct_latest(self, stream: str, filters: Sequence[str]) -> list[Stored]:
        """Read the newest message of each subject, directly."""
        items = await self.call("direct_latest", stream=stream, filters=list(filters))
        return [_stored(item) for item in items]

    async def pause(self, stream: str, consumer: str, until: datetime) -> None:
        """Pause a consumer."""
        text = until.isoformat()
        await self.call("consumer_pause", stream=stream, consumer=consumer, until=text)

    async def resume(self, stream: str, consumer: str) -> None:
        """Resume a consumer."""
        await self.call("consumer_resume", stream=stream, consumer=consumer)

    async def reset(self, stream: str, consumer: str, sequence: int) -> int:
        """Have a consumer deliver from a sequence again."""
        reset_seq = await self.call(
            "consumer_reset", stream=stream, consumer=consumer, sequence=sequence
        )
        return int(reset_seq)

    async def unpin(self, stream: str, consumer: str, group: str) -> None:
        """Take the pin from the pinned client of a group."""
        await self.call("consumer_unpin", stream=stream, consumer=consumer, group=group)

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


class JsListening:
    """A handle of a push consumer, whose messages the program acks."""

    def __init__(self, client: NatsJs, handle: int) -> None:
        self._client = client
        self._handle = handle

    async def take(self, count: int, *, within_s: float = TAKE_TIMEOUT_S) -> list[Stored]:
        """Return the next messages, fewer when no more come in time."""
        return await self._client.take(self._handle, count, within_s=within_s)

    async def close(self) -> None:
        """Unsubscribe."""
        await self._client.drop(self._handle)


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
