"""nats.go with orbit.go as a client of the interop tests: one process for the whole run."""

from __future__ import annotations

from tests.interop.clients.client import Ack
from tests.interop.clients.nats_js import NatsJs


class NatsGo(NatsJs):
    """nats.go on one server: the program in `nats_go` has the verbs of `nats_js.mjs`."""

    async def count(self, subject: str, delta: int) -> Ack:
        """Add with orbit.go's counters, which tell no more than the total."""
        stream = subject.partition(".")[0]
        total = await self.call("counter_add", stream=stream, subject=subject, delta=str(delta))
        found = await self.call("stream_get", stream=stream, query={"last_by_subj": subject})
        assert await self.total(stream, subject) == int(total)
        return Ack(stream, found["sequence"])

    async def total(self, stream: str, subject: str) -> int:
        """Read with orbit.go's counters."""
        return int((await self.call("counter_get", stream=stream, subject=subject))["value"])
