"""The newest message of each subject of a stream, then what comes."""

from __future__ import annotations

from collections.abc import Sequence

from natsstream.read.latest.latest import Latest
from natsstream.read.latest.wanted import LatestRequest
from natsstream.streams.doors.part import Part


class LatestReads(Part):
    """Follows the newest messages of a stream."""

    def latest(
        self,
        *,
        filters: Sequence[str] = (),
        include_history: bool = False,
        updates_only: bool = False,
        headers_only: bool = False,
        consistent: bool = False,
        first: int | None = None,
        created_ns: int | None = None,
    ) -> Latest:
        """Describe a read of the newest message of each subject, then of what comes.

        It is what key-value views stand on, for a stream whose subjects are things that have a
        state. Use it as `async with stream.latest() as tail: async for message in tail`. It goes on
        by itself as `stream.ordered` does, of which it is a kind; unlike `ordered`, its `initial()`
        ends only when every subject has come, also those that are written at the same time.

        Args:
            filters: Subjects to read, chosen on the server, 1,000 at most; none is all. They may
                overlap: each message comes once.
            include_history: Begin with all messages that the stream holds, not the newest alone.
            updates_only: Begin with what is stored from now on; there is nothing initial.
            headers_only: Leave out the payloads; `message.stored_bytes` tells their size.
            consistent: Choose the newest messages on a server that knows every acknowledged write,
                instead of any replica, which may lag behind: there an older message of a subject
                may come first, and the newest one a moment later.
            first: Go on at this sequence: `next_seq` of an earlier one.
            created_ns: The stream's identity, `created_ns` of an earlier one: refuse another
                stream of this name.

        Returns:
            A consumer; nothing is sent before its block is entered.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: Two starts are given, there are too many filters, or a value can not work.

        Cost: one ephemeral consumer; with `consistent` some before it on a replicated stream, until
        one comes to the right server by chance. Memory of at most 16 MiB of messages on their way.
        What is missing in the stream is not told: such streams drop what is replaced.
        Source: ADR-8 and ADR-20, watchers; nats.go jetstream/kv.go.
        """
        return Latest(
            self._api,
            LatestRequest(
                stream=self.name,
                filters=filters,
                include_history=include_history,
                updates_only=updates_only,
                headers_only=headers_only,
                consistent=consistent,
                first=first,
                created_ns=created_ns,
            ),
        )
