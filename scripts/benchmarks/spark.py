"""The bench of Spark reads, beside the readers that they stand on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scripts.benchmarks.goals import Goal, Row, row, rows
from scripts.benchmarks.rounds import Figure, Spread, interleave, measure, python
from scripts.benchmarks.streams import fill

Tell = Callable[[str], None]

MESSAGES = 1_000_000
# As for the readers: a rate needs no more.
MESSAGES_OF_FETCH = 20_000
_SUBJECTS = "scripts.benchmarks.subjects"
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
