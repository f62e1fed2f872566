"""Fixtures of the Spark tests: one session for all, and a feeder that changes streams."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import nats
import pytest
from nats.js.api import StreamConfig

from tests.support.spark_session import shared_spark

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from natsstream.testing import NatsServer

TIMEOUT_S = 600
"""Only a hang may reach it: the first query takes ten seconds on a quiet machine."""

ACK_EACH = 500
# For each answer of the server to nats-py; its own are 2 and 5 s.
ANSWER_S = 30

# nats-py's client; its options have no types.
Act: TypeAlias = "Callable[[Any], Awaitable[object]]"

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the whole run."""
    with shared_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


class Feeder:
    """Another client (nats-py) of one server; each call is a connection of its own."""

    def __init__(self, url: str) -> None:
        self._url = url

    def create(self, name: str, **config: Any) -> None:
        """Make a stream that captures `name.>`; fields of nats-py's StreamConfig may be given."""
        self._run(
            lambda client: client.jetstream(timeout=ANSWER_S).add_stream(
                StreamConfig(name=name, subjects=[f"{name}.>"], **config)
            )
        )

    def publish(
        self,
        subjects: Iterable[str],
        data: Callable[[int], bytes] = lambda index: b"%d" % index,
        headers: Callable[[int], Mapping[str, str] | None] = lambda _: None,
    ) -> None:
        """Publish one message on each subject, in order; returns when the last is stored."""

        async def publish(client: Any) -> None:
            context, listed = client.jetstream(timeout=ANSWER_S), list(subjects)
            for index, subject in enumerate(listed):
                told = headers(index)
                extra = None if told is None else dict(told)
                # An ack now and then keeps the server from dropping what comes too fast.
                if (index + 1) % ACK_EACH == 0 or index + 1 == len(listed):
                    await context.publish(subject, data(index), headers=extra)
                else:
                    await client.publish(subject, data(index), headers=extra)

        self._run(publish)

    def delete(self, name: str, sequences: Iterable[int]) -> None:
        """Delete single messages."""

        async def delete(client: Any) -> None:
            for sequence in sequences:
                await client.jetstream(timeout=ANSWER_S).delete_msg(name, sequence)

        self._run(delete)

    def purge(self, name: str, *, last_seq: int | None = None) -> None:
        """Remove every message, or those up to a sequence."""
        first_kept = None if last_seq is None else last_seq + 1
        self._run(
            lambda client: client.jetstream(timeout=ANSWER_S).purge_stream(name, seq=first_kept)
        )

    def drop(self, name: str) -> None:
        """Delete the stream."""
        self._run(lambda client: client.jetstream(timeout=ANSWER_S).delete_stream(name))

    def _run(self, act: Act) -> None:
        library: Any = nats

        async def run() -> None:
            client: Any = await library.connect(self._url, connect_timeout=ANSWER_S)
            try:
                await act(client)
            finally:
                await client.close()

        asyncio.run(run())


@pytest.fixture
def feed(server: NatsServer) -> Feeder:
    """A feeder of the shared server."""
    return Feeder(server.url)


@pytest.fixture
def fresh_feed(fresh_server: NatsServer) -> Feeder:
    """A feeder of the test's own server."""
    return Feeder(fresh_server.url)
