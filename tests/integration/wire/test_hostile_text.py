"""No text of others writes a protocol line: every public call, driven with text made to do so.

A proxy reads what the client sends with a parser of its own, as strict as a server. The calls are
found by introspection: a public class, method or text argument that nothing here drives fails.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
import json
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

import natsstream as ns
from natsstream.consume.delivery.ack_kinds import AckKind
from natsstream.streams.consumers.manager import ConsumerManager
from natsstream.streams.manager import StreamManager
from tests.support.hostile import HOSTILE, INJECTION, check_sent
from tests.support.strict import Message, StrictProxy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from pathlib import Path

    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.spread, pytest.mark.timeout(240)]

# With what is got by a call, a user calls these.
FOLLOWED = (
    *("in_progress", "nak", "ack", "respond", "info", "status", "subscribe", "next", "keys"),
    *("names", "list", "watch", "open", "read"),
)

# What stands only in bodies, or is text of this program alone.
PURE = {
    *(ns.Base64Keys, ns.ChainedKeys, ns.FilterKeyCodec, ns.KeyCodec, ns.PathKeys),
    ns.StreamRange,  # Names of columns; what it reads is described by `Stream.read`.
}
# A place on this machine, and text that has its own type.
NOT_SENT = {"path", "columns", "kinds", "since", "head", "used"}
# They end the world for the calls behind them, and send no name but the handle's.
ENDS = {"close", "drain", "seal", "delete", "remove", "abandon", "release", "remove_peer"}


class NotMadeError(AssertionError):
    """The world has no object of a public class."""


class Call(NamedTuple):
    """One argument of one public call; no argument for a call without text."""

    kind: str
    method: str
    argument: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.method}({self.argument})"


def public_classes() -> list[type]:
    """Return the classes whose objects a user calls; configs and infos are no such."""
    found = [getattr(ns, name) for name in ns.__all__]
    classes = [cast("type[object]", each) for each in found if isinstance(each, type)]
    return [StreamManager, ConsumerManager] + [
        each
        for each in classes
        if not issubclass(each, (BaseException, enum.Enum, tuple))
        and not hasattr(each, "__dataclass_fields__")
        and each not in PURE
    ]


def methods_of(kind: type) -> Iterator[tuple[str, inspect.Signature]]:
    for name, member in inspect.getmembers(kind, callable):
        if not name.startswith("_") or (name == "__call__" and name in vars(kind)):
            with suppress(ValueError, TypeError):
                yield name, inspect.signature(member)


def calls() -> list[Call]:
    """Return every text argument of every public call."""
    found: list[Call] = []
    for kind in public_classes():
        for name, signature in methods_of(kind):
            for each in signature.parameters.values():
                is_text = "str" in str(each.annotation) and each.name not in NOT_SENT
                if is_text and each.name not in {"self", "data"}:
                    found.append(Call(kind.__name__, name, each.name))
    return found


async def nothing(*_: object) -> set[str]:
    return set()


# A value for every argument that must be given.
BENIGN: dict[str, Any] = {
    "subject": "orders.a",
    "name": "thing",
    "key": "k",
    "ttl": None,
    "value": b"v",
    "data": b"d",
    "revision": 1,
    "guard": "k",
    "filter": "orders.>",
    "filters": "k",
    "source": b"bytes",
    "target": "thing",
    "bucket": "O",
    "new_name": "other",
    "config": "NEW",
    "pattern": "p.*",
    "group": "g",
    "writer": "w",
    "reason": "r",
    "candidate": "c",
    "holder": "h",
    "handler": nothing,
    "used": nothing,
    "scheduled": "orders.schedule",
    "stored": "k",
    "messages": [("orders.a", b"x")],
    "decode": bytes,
    "encode": bytes,
    "count": 1,
    "n": 1,
    "number": 1,
    "sequence": 1,
    "letter": None,
    "seconds": 1.0,
    "mesg": "text",
    "values": {"k": "text"},
    "event": "change",
    "seq_or_key": "k",
    "items": [ns.PublishItem("text", ns.PublishOptions(key="k"))],
    "listener": nothing,
    "start_seq": 0,
    "position": 1,
    "producer_id": "p",
}
# Arguments of one call that have other values than elsewhere.
OWN: dict[str, dict[str, Any]] = {
    "StreamManager.copy": {"source": "ORDERS", "name": "COPY"},
    "StreamManager.get": {"name": "ORDERS"},
    "StreamTemplate": {"subject": "t.one.a"},
    "StreamManager.restore": {"path": "backup", "name": "RESTORED"},
    "ConsumerManager.get": {"name": "push"},
    "ConsumerManager": {"name": "c1"},
    "KeyValueManager": {"name": "K"},
    "ObjectStoreManager": {"name": "O"},
    "DeadLetters": {"name": "DLQ"},
    "Producers": {"stream": "PRODUCED"},
    "CoreStreams.over": {"stream": "ORDERS"},
    "IdempotentProducer.append_many": {"messages": [("produced.a", b"x")]},
    "Counters": {"subject": "count.a", "filter": "count.>"},
    "Inventory": {"kind": "kv", "numbers": ns.CoreStreamInventory(0, 0, {}, 0)},
    "Stream.verify_chain": {"key": None},
    "Chunks.open": {"value": ns.ChunkedValue(subject="orders.a", size=1, chunks=1)},
    "DeliveredMessage.begin_verdict": {"verdict": AckKind.ACK},
}


@dataclasses.dataclass
class World:
    """One of everything, behind a proxy."""

    proxy: StrictProxy
    js: ns.JetStream
    stream: ns.Stream
    consumer: ns.Consumer
    tmp_path: Path

    async def make(self, kind: str, stack: AsyncExitStack) -> object:
        """Return a public object of a class; what must be closed is closed by the stack."""
        js, stream = self.js, self.stream
        match kind:
            case "JetStream":
                return js
            case "StreamManager":
                return js.streams
            case "ConsumerManager":
                return stream.consumers
            case "Stream":
                return stream
            case "Consumer":
                return self.consumer
            case "Core":
                return js.core
            case "DirectReads":
                return stream.direct
            case "StreamSchedules":
                return stream.schedules
            case "Chunks":
                return stream.chunks
            case "Counters":
                return (await js.streams.get("COUNTS")).counters
            case "DeadLetters":
                return js.dead_letters
            case "DeadLetterQueue":
                return await js.dead_letters.open("DLQ")
            case "KeyValueManager":
                return js.kv
            case "ObjectStoreManager":
                return js.objects
            case "ObjectStore":
                return await js.objects.get("O")
            case "StreamTemplate":
                return js.streams.template("t.*.>", name="T-{1}")
            case "AtomicBatch":
                return await stack.enter_async_context(stream.batch())
            case "FastIngest":
                return await stack.enter_async_context(stream.ingest())
            case "Publisher":
                return await stack.enter_async_context(js.publisher())
            case "ChainedPublisher":
                return await stack.enter_async_context(stream.chained(writer="w"))
            case "DeliveredMessage":
                await js.publish("orders.a", b"x")
                return await self.consumer.next(timeout=1)
            case _:
                return await self._make_of_bucket(kind, stack)

    async def _make_of_bucket(self, kind: str, stack: AsyncExitStack) -> object:
        bucket = await self.js.kv.get("K")
        match kind:
            case "KeyValue":
                return bucket
            case "CachedKeyValue":
                return await stack.enter_async_context(bucket.cached())
            case "Lock":
                return await stack.enter_async_context(bucket.lock("lock", ttl=5))
            case _:
                return await self._make_of_conat(kind, stack)

    async def _make_of_conat(self, kind: str, stack: AsyncExitStack) -> object:
        js = self.js
        managers = {
            "CoreStream": js.core_stream,
            "DKV": js.dkv,
            "DStream": js.dstream,
            "DKO": js.dko,
            "AKV": js.akv,
            "AStream": js.astream,
        }
        if kind == "Inventory":
            return await stack.enter_async_context(await js.inventory())
        if kind == "Inventories":
            return js.inventory
        if kind == "Producers":
            return js.producer
        if kind == "IdempotentProducer":
            producer = await js.producer(
                "PRODUCED", f"p{id(stack)}", subject="produced.a", update_stream=True
            )
            return await stack.enter_async_context(producer)
        if kind in managers:
            return await stack.enter_async_context(await managers[kind](f"a {kind}"))
        if kind.removesuffix("s") in managers:
            return managers[kind.removesuffix("s")]
        raise NotMadeError(f"make an object of the new public class {kind} here")


@asynccontextmanager
async def opened(server: NatsServer, tmp_path: Path) -> AsyncGenerator[World]:
    async with (
        StrictProxy(server.port) as proxy,
        ns.connect(proxy.url, request_timeout=1) as js,
    ):
        stream = await js.streams.ensure(
            "ORDERS",
            subjects=["orders.>"],
            allow_direct=True,
            allow_atomic=True,
            allow_batched=True,
            allow_msg_ttl=True,
            allow_msg_schedules=True,
        )
        await js.publish("orders.a", b"1")
        await js.streams.ensure("COUNTS", subjects=["count.>"], allow_msg_counter=True)
        await js.kv.ensure("K", history=3, limit_marker_ttl=60)
        box = await js.objects.ensure("O")
        await box.put("thing", b"bytes")
        consumer = await stream.consumers.ensure("c1", filters=["orders.>"])
        await stream.consumers.ensure("push", deliver_subject="pushed.here", deliver_group="g")
        await js.streams.ensure("PRODUCED", subjects=["produced.>"])
        saved = await js.streams.ensure("SAVED", subjects=["saved.>"])
        await js.publish("saved.a", b"1")
        await saved.backup(tmp_path / "backup")
        await saved.delete()
        await js.dead_letters.ensure("DLQ", stream="ORDERS", consumer="c1")
        (tmp_path / "file").write_bytes(b"bytes")
        yield World(proxy, js, stream, consumer, tmp_path)


def arguments(call: Call, method: Callable[..., object]) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments for a call: those that must be given, and a short timeout."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    own = {**OWN.get(call.kind, {}), **OWN.get(f"{call.kind}.{call.method}", {})}
    for each in inspect.signature(method).parameters.values():
        if each.kind is each.VAR_KEYWORD or each.kind is each.VAR_POSITIONAL:
            continue
        if each.name == "timeout":
            keywords["timeout"] = 0.3
        elif each.default is each.empty:
            assert each.name in own or each.name in BENIGN or each.name == "path", (
                f"{call}: give the new argument {each.name} a value in BENIGN"
            )
            value = own.get(each.name, BENIGN.get(each.name, "file"))
            (
                keywords.update({each.name: value})
                if each.kind is each.KEYWORD_ONLY
                else positional.append(value)
            )
    known = inspect.signature(method).parameters
    for name, value in OWN.get(f"{call.kind}.{call.method}", {}).items():
        if known[name].default is not inspect.Parameter.empty:
            keywords.update({name: value})
    return positional, keywords


def with_text(
    call: Call, method: Callable[..., object], text: str
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments in which one is a hostile text, in the form that it has there."""
    positional, keywords = arguments(call, method)
    signature = inspect.signature(method)
    parameter = signature.parameters[call.argument]
    note = str(parameter.annotation)
    value: Any = text
    if "Mapping" in note:
        value = {text: text}
    elif "PublishMessage" in note:
        value = [(text, b"x")]
    elif "Sequence" in note and parameter.kind is not parameter.VAR_POSITIONAL:
        value = [text]
    if parameter.kind is parameter.VAR_POSITIONAL:
        return [*positional, value], keywords
    given = [
        each.name
        for each in signature.parameters.values()
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if call.argument in given:
        positional[given.index(call.argument)] = value
    else:
        keywords[call.argument] = value
    return positional, keywords


async def use(result: Any, *, goes_on: bool = True) -> None:
    """Do with the answer of a call what a user does: wait, open, read one, go on with that."""
    if inspect.isawaitable(result):
        result = await result
    if hasattr(result, "__aenter__"):
        async with result as inside:
            if hasattr(inside, "__aiter__"):
                result = await anext(aiter(inside))
    elif hasattr(result, "__aiter__"):
        result = await anext(aiter(result))
    several = cast("list[Any]", result)[:2] if isinstance(result, list) else [result]
    for each in several:
        for name in FOLLOWED if goes_on else ():
            act = getattr(each, name, None)
            if inspect.ismethod(act):
                # Most things have few of these, and some want arguments.
                with suppress(ns.NatsStreamError, TypeError, TimeoutError, StopAsyncIteration):
                    async with asyncio.timeout(0.2):
                        await use(act(), goes_on=False)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
async def test_no_argument_writes_a_command_of_its_own(
    kind: type, fresh_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = [call for call in calls() if call.kind == kind.__name__]
    if not mine:
        return
    async with opened(fresh_server, tmp_path) as world:
        connections = world.js.raw
        for call in mine:
            for text in HOSTILE:
                await drive_with_text(world, call, text)
        assert world.js.raw is connections
        assert world.js.is_connected
        assert world.js.raw.stats["reconnects"] == 0


async def drive_with_text(world: World, call: Call, text: str) -> None:
    with suppress(ns.NatsStreamError, TimeoutError, StopAsyncIteration):
        async with asyncio.timeout(1), AsyncExitStack() as stack:
            made = await world.make(call.kind, stack)
            method = getattr(made, call.method)
            positional, keywords = with_text(call, method, text)
            await use(method(*positional, **keywords))
    check_sent(world.proxy, f"{call} {text!r}")


@pytest.mark.sampled_variants
@pytest.mark.parametrize("config", [ns.StreamConfig, ns.ConsumerConfig])
async def test_no_field_of_a_config_writes_a_command_of_its_own(
    config: type, fresh_server: NatsServer, tmp_path: Path
) -> None:
    async with opened(fresh_server, tmp_path) as world:
        manager: Any = world.js.streams if config is ns.StreamConfig else world.stream.consumers
        for each in dataclasses.fields(config):
            if "str" not in str(each.type):
                continue
            for text in HOSTILE:
                value = [text] if "tuple" in str(each.type) else text
                for act in (manager.create, manager.ensure, manager.update):
                    given = {"name": "NEW", each.name: value}
                    with suppress(ns.NatsStreamError, TimeoutError):
                        async with asyncio.timeout(1):
                            await use(
                                act(**given)
                                if config is ns.ConsumerConfig
                                else act(given.pop("name"), **given)
                            )
                    check_sent(world.proxy, f"{config.__name__}.{each.name} {text!r}")


LYING_TEXTS = [INJECTION, "a\nPUB\tINJECTED\t0\n", "a b", "\tx", "\0", "", "y" * 6_000, "\ud800"]


def lie_in_json(text: str) -> Callable[[Message], Message]:
    """Answer with a text in the place of every name."""

    def lie(value: Any) -> Any:
        if isinstance(value, dict):
            said = cast("dict[str, Any]", value)
            kept = {"type", "created", "ts", "time"}
            return {name: each if name in kept else lie(each) for name, each in said.items()}
        if isinstance(value, list):
            return [lie(each) for each in cast("list[Any]", value)]
        return text if isinstance(value, str) else value

    def tell(message: Message) -> Message:
        try:
            body: object = json.loads(message.payload)
        except ValueError:
            return message
        if not isinstance(body, dict):
            return message
        told = lie(cast("object", body))
        return dataclasses.replace(message, payload=json.dumps(told).encode())

    return tell


def lie_in_headers(text: str) -> Callable[[Message], Message]:
    """Answer with a text as every header's value."""
    shown = text.encode("utf-8", "replace")

    def tell(message: Message) -> Message:
        if not message.headers:
            return message
        lines = message.headers.removesuffix(b"\r\n\r\n").split(b"\r\n")
        told = [lines[0], *(line.partition(b":")[0] + b": " + shown for line in lines[1:])]
        return dataclasses.replace(message, headers=b"\r\n".join(told) + b"\r\n\r\n")

    return tell


def lie_in_reply(text: str) -> Callable[[Message], Message]:
    """Deliver with a reply subject that has a text in it, as far as it leaves the frame whole."""
    shown = text.encode("utf-8", "replace").replace(b"\r\n", b"\n").replace(b" ", b"\t")

    def tell(message: Message) -> Message:
        if not message.reply:
            return message
        return dataclasses.replace(message, reply=message.reply + shown)

    return tell


@pytest.mark.sampled
@pytest.mark.sampled
@pytest.mark.parametrize("make_lie", [lie_in_json, lie_in_headers, lie_in_reply])
@pytest.mark.parametrize("text", LYING_TEXTS, ids=range(len(LYING_TEXTS)))
async def test_no_answer_of_a_server_writes_a_command(
    make_lie: Callable[[str], Callable[[Message], Message]],
    text: str,
    fresh_server: NatsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    lie = make_lie(text)
    async with opened(fresh_server, tmp_path) as world:
        # Which names are none is told where answers are read: no line may end before its time.
        world.proxy.checks_subjects = False
        for kind in public_classes():
            for name, _ in methods_of(kind):
                if name not in ENDS:
                    await drive_with_lie(world, Call(kind.__name__, name, ""), lie)
        world.proxy.lie = None


async def drive_with_lie(world: World, call: Call, lie: Callable[[Message], Message]) -> None:
    """Call with good arguments; an error is one of ours."""
    world.proxy.lie = None
    # What has no text for an argument is reached through what returns it.
    with suppress(ns.NatsStreamError, TimeoutError, StopAsyncIteration, NotMadeError):
        async with asyncio.timeout(0.25), AsyncExitStack() as stack:
            made = await world.make(call.kind, stack)
            method = getattr(made, call.method)
            positional, keywords = arguments(call, method)
            world.proxy.lie = lie
            await use(method(*positional, **keywords))
            world.proxy.lie = None
    check_sent(world.proxy, str(call))


@pytest.mark.sampled_variants
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_file_writes_a_command(
    text: str, fresh_server: NatsServer, tmp_path: Path
) -> None:
    """A folder of a backup deleted another stream, before its name was looked at."""
    async with opened(fresh_server, tmp_path) as world:
        # Which names a server would take is another matter: no line may end before its time.
        world.proxy.checks_subjects = False
        folder = tmp_path / "backup"
        about = folder / "backup.json"
        said = json.loads(about.read_text())
        said["config"]["name"] = text
        about.write_text(json.dumps(said))
        for name in (None, "OTHER"):
            with suppress(ns.NatsStreamError, TimeoutError):
                async with asyncio.timeout(2):
                    await world.js.streams.restore(folder, name=name)
            check_sent(world.proxy, f"backup.json {text!r}")
        for option in ("inbox_prefix", "api_prefix", "domain"):
            with suppress(ns.NatsStreamError):
                given: Any = {option: text}
                async with ns.connect(world.proxy.url, **given) as js:
                    await js.account()
            check_sent(world.proxy, f"{option} {text!r}")
