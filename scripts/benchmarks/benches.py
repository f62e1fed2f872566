"""The benches: which subjects run beside each other, and their goals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from scripts.benchmarks import buckets, core_streams, objects, producers, spark, tools
from scripts.benchmarks.goals import Goal, Row, row, rows
from scripts.benchmarks.rounds import Figure, Spread, interleave, measure, python
from scripts.benchmarks.streams import checksum_of, fill, make_empty

Tell = Callable[[str], None]

MESSAGES = 300_000
# nats-py's fetch is some fifty times slower; a rate needs no more than this.
MESSAGES_OF_FETCH = 20_000
MEMORY_MESSAGES = (100_000, 1_000_000)
PUBLISHED = 100_000
PUBLISHED_BY_NATS_PY = 20_000
CONSUMED = 100_000
CONSUMED_BY_NATS_PY = 20_000
REQUESTS = 5_000
_HEADERS = {"Trace-Id": "4bf92f3577b34da6a3ce929d0e0e4736", "Content-Type": "application/json"}
_SUBJECTS = "scripts.benchmarks.subjects"

READ_GOALS = (
    Goal(subject="messages", base="socket", at_least=0.6),
    Goal(subject="messages", base="natsrpy fetch", at_least=1.6),
    Goal(subject="messages", base="nats-py fetch", at_least=12),
    Goal(subject="arrow", base="socket", at_least=0.85),
)
HEADER_GOALS = (
    Goal(subject="messages", base="socket", at_least=0.45),
    Goal(subject="arrow", base="socket", at_least=0.6),
)
ORDERED_GOALS = (
    Goal(subject="ordered", base="nats-py fetch", at_least=5),
    Goal(subject="ordered", base="nats.js ordered", at_least=1),
    Goal(subject="ordered", base="messages"),
    Goal(subject="ordered batches", base="messages"),
    Goal(subject="ordered", base="socket"),
)
PUBLISH_GOALS = (
    Goal(subject="publisher", base="nats-py publish_async", at_least=2),
    Goal(subject="publisher", base="natsrpy publish"),
    Goal(subject="publisher", base="nats.js publish"),
    Goal(subject="publisher", base="nats bench"),
    Goal(subject="publisher", base="raw writer", at_least=0.9),
    Goal(subject="blocking send_many", base="publisher"),
)
CONSUME_GOALS = (
    Goal(subject="consume", base="nats-py fetch, acks", at_least=5),
    Goal(subject="consume", base="nats.js consume, acks", at_least=1),
    Goal(subject="consume", base="natsrpy fetch, acks"),
    Goal(subject="consume without acks", base="nats-py fetch", at_least=5),
    Goal(subject="consume without acks", base="nats.js consume", at_least=1),
    Goal(subject="run", base="consume"),
    Goal(subject="run", base="nats-py fetch, acks"),
)
LATENCY_GOALS = (
    Goal(subject="ordered", base="nats-py subscribe", of="p50_us"),
    Goal(subject="ordered", base="nats-py subscribe", of="p99_us"),
)
BATCH_GOALS = (
    Goal(subject="fast send", base="raw fast batch", at_least=0.8),
    Goal(subject="fast send_many", base="raw fast batch", at_least=0.8),
    Goal(subject="fast send", base="publisher"),
    Goal(subject="atomic batches of 500", base="publisher"),
)
REQUEST_GOALS = (
    Goal(subject="request", base="nats-py request", of="p50_us", at_most=1),
    Goal(subject="request", base="nats-py request", of="p99_us", at_most=1),
)


def read(url: str, rounds: int, tell: Tell) -> list[Row]:
    """Bulk reads of 256-byte messages without headers."""
    names = ["socket", "messages", "arrow", "natsrpy fetch", "nats-py fetch"]
    return _read(url, rounds, tell, "PLAIN", names, READ_GOALS)


def read_headers(url: str, rounds: int, tell: Tell) -> list[Row]:
    """The same with two headers a message."""
    return _read(url, rounds, tell, "HEADERS", ["socket", "messages", "arrow"], HEADER_GOALS)


def ordered(url: str, rounds: int, tell: Tell) -> list[Row]:
    """A replay by ordered consumers."""
    names = ["socket", "messages", "ordered", "ordered batches", "nats.js ordered", "nats-py fetch"]
    return _read(url, rounds, tell, "ORDERED", names, ORDERED_GOALS)


def publish(url: str, rounds: int, tell: Tell) -> list[Row]:
    """Publishing with an ack for each message, 4,096 in flight."""

    def run(name: str) -> Figure:
        asyncio.run(make_empty(url, "PUB"))
        if name == "nats.js publish":
            return tools.nats_js("publish", url, "PUB", PUBLISHED)
        if name == "nats bench":
            return tools.nats_bench(url, "PUB", PUBLISHED)
        count = PUBLISHED_BY_NATS_PY if name == "nats-py publish_async" else PUBLISHED
        return measure(python(f"{_SUBJECTS}.publishers", name, url, "PUB", str(count)))

    names = ["publisher", "blocking send_many", "nats-py publish_async", "natsrpy publish"]
    figures = interleave([*names, "nats.js publish", "nats bench", "raw writer"], rounds, run, tell)
    return [*rows(figures, PUBLISH_GOALS), machine_speed(figures, "raw writer")]


def consume(url: str, rounds: int, tell: Tell) -> list[Row]:
    """Pull consumers, with an ack for each message and without acks."""
    asyncio.run(fill(url, "CONSUME", CONSUMED, {}))
    few = CONSUMED_BY_NATS_PY

    def run(name: str) -> Figure:
        if name.startswith("nats.js"):
            subject = "consume_acks" if name.endswith("acks") else "consume"
            figure = tools.nats_js(subject, url, "CONSUME", CONSUMED)
            return checked(figure, name, "CONSUME")
        if name in {"nats-py fetch", "socket"}:
            return _reader(url, "CONSUME", name, few if name == "nats-py fetch" else CONSUMED)
        count = few if name == "nats-py fetch, acks" else CONSUMED
        command = python(f"{_SUBJECTS}.consumers", name, url, "CONSUME", str(count))
        return checked(measure(command), name, "CONSUME")

    names = ["consume", "nats-py fetch, acks", "natsrpy fetch, acks", "nats.js consume, acks"]
    names += ["run", "consume without acks", "nats-py fetch", "nats.js consume"]
    figures = interleave([*names, "socket"], rounds, run, tell)
    return [*rows(figures, CONSUME_GOALS), machine_speed(figures)]


def batches(url: str, rounds: int, tell: Tell) -> list[Row]:
    """Fast batches and atomic batches."""

    def run(name: str) -> Figure:
        asyncio.run(make_empty(url, "BATCH", allow_batched=True, allow_atomic=True))
        module = "publishers" if name == "publisher" else "batches"
        return measure(python(f"{_SUBJECTS}.{module}", name, url, "BATCH", str(PUBLISHED)))

    names = ["publisher", "fast send", "fast send_many", "raw fast batch", "atomic batches of 500"]
    return rows(interleave(names, rounds, run, tell), BATCH_GOALS)


def request(url: str, rounds: int, tell: Tell) -> list[Row]:
    """Latency of requests, one after the other: the 50th and the 99th percentile."""

    def run(name: str) -> Figure:
        return measure(python(f"{_SUBJECTS}.requesters", name, url, "ask.me", str(REQUESTS)))

    figures = interleave(["request", "nats-py request"], rounds, run, tell)
    return rows(figures, REQUEST_GOALS)


def latency(url: str, rounds: int, tell: Tell) -> list[Row]:
    """From a publish to the follower that waits for it, one message after the other."""

    def run(name: str) -> Figure:
        asyncio.run(make_empty(url, "LATENCY"))
        command = python(f"{_SUBJECTS}.followers", name, url, "LATENCY", str(REQUESTS))
        return measure(command)

    figures = interleave(["ordered", "nats-py subscribe"], rounds, run, tell)
    return rows(figures, LATENCY_GOALS)


def memory(url: str, rounds: int, tell: Tell) -> list[Row]:
    """Largest resident size of a reader, for ten times as many messages."""
    few, many = MEMORY_MESSAGES
    asyncio.run(fill(url, "MEMORY", many, {}))
    lines: list[Row] = []
    for reader in ("messages", "arrow", "ordered"):
        growth: list[float] = []
        for number in range(rounds):
            sizes = [_reader(url, "MEMORY", reader, count).peak_bytes for count in (few, many)]
            growth.append(sizes[1] / sizes[0])
            text = f"{sizes[0] >> 20} MiB, {sizes[1] >> 20} MiB"
            tell(f"round {number + 1}/{rounds}  {reader:<22} {text}")
        spread = Spread.of(growth)
        lines.append(row(f"{reader}: peak size, {many:,} against {few:,}", spread, at_most=1.25))
    return lines


BENCHES: Mapping[str, Callable[[str, int, Tell], list[Row]]] = {
    "read": read,
    "read-headers": read_headers,
    "ordered": ordered,
    "publish": publish,
    "consume": consume,
    "batches": batches,
    "request": request,
    "latency": latency,
    "memory": memory,
    "kv": buckets.kv,
    "objects": objects.objects,
    "core-streams": core_streams.core_streams,
    "producer": producers.producer,
    "spark": spark.spark,
    "spark-neighbours": spark.spark_neighbours,
}


def _read(
    url: str, rounds: int, tell: Tell, stream: str, names: Sequence[str], goals: Sequence[Goal]
) -> list[Row]:
    asyncio.run(fill(url, stream, MESSAGES, _HEADERS if stream == "HEADERS" else {}))
    figures = interleave(names, rounds, lambda name: _reader(url, stream, name), tell)
    return [*rows(figures, goals, f", {stream.lower()}"), machine_speed(figures)]


def _reader(url: str, stream: str, name: str, count: int = 0) -> Figure:
    count = count or (MESSAGES_OF_FETCH if name == "nats-py fetch" else MESSAGES)
    if name == "nats.js ordered":
        return checked(tools.nats_js("ordered", url, stream, count), name, stream)
    figure = measure(python(f"{_SUBJECTS}.readers", name, url, stream, str(count)))
    return figure if name == "socket" else checked(figure, name, stream)


def checked(figure: Figure, name: str, stream: str) -> Figure:
    """Return a figure whose subject looked at every message; the socket looks at none."""
    expected = checksum_of(stream, figure.messages)
    if figure.checksum != expected:
        raise RuntimeError(f"{name} read {figure.checksum} from {stream}, not {expected}")
    return figure


def machine_speed(figures: Mapping[str, Sequence[Figure]], name: str = "socket") -> Row:
    """Return the line with the rate of the socket, which no client can pass."""
    rates = [figure.rate / 1000 for figure in figures[name]]
    return row(f"{name}, thousand messages/s: the machine's speed", Spread.of(rates))
