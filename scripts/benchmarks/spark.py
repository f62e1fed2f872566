"""The bench of Spark reads, beside the readers that they stand on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from scripts.benchmarks.goals import Goal, Row, row, rows
from scripts.benchmarks.rounds import Figure, Spread, interleave, measure, python
from scripts.benchmarks.streams import fill, make_empty
from scripts.benchmarks.subjects.neighbours import DIRECT, IDLE, SPARK

Tell = Callable[[str], None]

MESSAGES = 1_000_000
# As for the readers: a rate needs no more.
MESSAGES_OF_FETCH = 20_000
_SUBJECTS = "scripts.benchmarks.subjects"
_NEIGHBOURS = (IDLE, SPARK, DIRECT)
_READERS = ["socket", "arrow"]
_SPARK = [
    "spark, 1 task",
    "spark, 2 tasks",
    "spark, 2 tasks, Parquet",
    "spark, tuples",
    "spark, nats-py fetch",
]

GOALS = (
    Goal(subject="spark, 2 tasks", base="socket", at_least=0.5),
    Goal(subject="spark, 1 task", base="spark, tuples", at_least=1.3),
    Goal(subject="spark, 1 task", base="spark, nats-py fetch", at_least=8),
    Goal(subject="spark, 1 task", base="arrow"),
    Goal(subject="spark, 2 tasks, Parquet", base="spark, 2 tasks"),
)

NEIGHBOUR_GOALS = (
    Goal(subject=SPARK, base=IDLE, of="p50_us", at_most=1.25),
    Goal(subject=SPARK, base=IDLE, of="p99_us", at_most=1.25),
    Goal(subject=SPARK, base=DIRECT, of="p50_us"),
    Goal(subject=SPARK, base=DIRECT, of="p99_us", at_most=0.25),
)


def spark(url: str, rounds: int, tell: Tell) -> list[Row]:
    """A million messages of 256 bytes into Spark, by one task and by two."""
    asyncio.run(fill(url, "SPARK", MESSAGES, {}))

    def run(name: str) -> Figure:
        module = "readers" if name in _READERS else "spark_readers"
        count = MESSAGES_OF_FETCH if name.endswith("fetch") else MESSAGES
        return measure(python(f"{_SUBJECTS}.{module}", name, url, "SPARK", str(count)))

    figures = interleave([*_READERS, *_SPARK], rounds, run, tell)
    speed = Spread.of([figure.rate / 1000 for figure in figures["socket"]])
    return [
        *rows(figures, GOALS),
        row("socket, thousand messages/s: the machine's speed", speed),
        *(
            row(f"{name}, thousand rows/s", Spread.of([each.rate / 1000 for each in figures[name]]))
            for name in _SPARK
        ),
    ]


def spark_neighbours(
    url: str, rounds: int, tell: Tell, count: int = MESSAGES, names: Sequence[str] = _NEIGHBOURS
) -> list[Row]:
    """Latency of a publisher beside Spark, beside a do-nothing reader, and beside direct gets."""
    asyncio.run(make_empty(url, "BESIDE", subjects=["beside.>"], allow_direct=True))
    asyncio.run(fill(url, "BESIDE", count, {}))

    def run(name: str) -> Figure:
        command = python(f"{_SUBJECTS}.neighbours", name, url, "BESIDE", str(count))
        return measure(command)

    figures = interleave(names, rounds, run, tell)
    goals = [goal for goal in NEIGHBOUR_GOALS if {goal.subject, goal.base} <= figures.keys()]
    return [
        *rows(figures, goals, ", a publisher beside it"),
        *(
            row(f"{name}: publisher's {of[:3]} in ms", Spread.of(values))
            for name in names
            for of in ("p50_us", "p99_us")
            for values in [[getattr(each, of) / 1_000 for each in figures[name]]]
        ),
    ]
