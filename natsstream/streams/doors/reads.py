"""Reading a stream in order: what it holds, and what comes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from natsstream.api.names import check_filters
from natsstream.arguments import check_bool, check_choice, check_int
from natsstream.read.ordered import OrderedConsumer
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.read.start_position import (
    ON_LOSS,
    DeliverPolicy,
    OrderedSpec,
)
from natsstream.streams.doors.part import Part
from natsstream.units import time_to_ns


class Reads(Part):
    """Reads a stream."""

    def read(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        filters: Sequence[str] = (),
        start_time: datetime | int | None = None,
        end_time: datetime | int | None = None,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        eviction_is_loss: bool = False,
    ) -> StreamRange:
        """Describe a bounded read: iterate the result for messages, or ask it for columns.

        Args:
            first: First sequence, inclusive; None is the first that the stream holds.
            last: Last sequence, inclusive; None is the last when the read begins.
            filters: Subjects to read, chosen on the server; they must not overlap.
            start_time: Leaves out what was stored before this moment.
            end_time: Leaves out what was stored at or after this moment.
            created_ns: The stream's identity, from `StreamInfo`: refuse another stream of this
                name.
            on_loss: "raise" ends the read at the first lost message; "report" reads on and counts.
                Without filters only: a filter hides what is missing. `ReadReport` says which losses
                a server cannot tell from deletions.
            eviction_is_loss: Also count it as loss when the stream's limits or a purge have
                removed the beginning of the range.

        Returns:
            A range; nothing is sent before it is iterated.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: A time has no time zone, two filters overlap, or a value can not work.

        Cost: one ephemeral consumer; memory of at most 16 MiB of messages on their way, and up to
        48 MiB where the server takes messages of 24 MiB.
        """
        for name, bound in (("first", first), ("last", last), ("created_ns", created_ns)):
            if bound is not None:
                check_int(bound, name)  # What the stream holds is known when it is read.
        check_choice(on_loss, "on_loss", ON_LOSS)
        check_bool(eviction_is_loss, "eviction_is_loss")
        return StreamRange(
            self._api,
            RangeSpec(
                stream=self.name,
                first=first,
                last=last,
                filters=check_filters(filters),
                start_time_ns=None if start_time is None else time_to_ns(start_time),
                end_time_ns=None if end_time is None else time_to_ns(end_time),
                created_ns=created_ns,
                on_loss=on_loss,
                eviction_is_loss=eviction_is_loss,
            ),
        )

    def ordered(
        self,
        *,
        filters: Sequence[str] = (),
        first: int | None = None,
        start_time: datetime | int | None = None,
        deliver_policy: DeliverPolicy = "all",
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
    ) -> OrderedConsumer:
        """Describe a read without an end: what is stored, then what comes, once and in order.

        Use it as `async with stream.ordered() as tail: async for message in tail`. It goes on by
        itself after a lost connection, a restart of the server, a change of leaders and a deleted
        consumer, however slow the reader is.

        Args:
            filters: Subjects to read, chosen on the server; they must not overlap.
            first: First sequence, inclusive. One that the stream has not come to is waited for.
            start_time: Leaves out what was stored before this moment (datetime with a time zone,
                or Unix nanoseconds).
            deliver_policy: Where to begin when neither is given. "all": with the first that the
                stream holds. "new": with what is stored from now on. "last": with the last one
                of the filters. "last_per_subject": with the last one of each subject; every
                message stored after the block was entered still comes.
            headers_only: Leave out the payloads; their size stands in the header `Nats-Msg-Size`.
            created_ns: The stream's identity, from `StreamInfo`: refuse another stream of this
                name.
            on_loss: "raise" ends at the first lost message; "report" goes on and counts. Without
                filters only: a filter hides what is missing, and so does "last_per_subject".
                `ReadReport` says which losses a server cannot tell from deletions.

        Returns:
            A consumer; nothing is sent before its block is entered.

        Raises:
            SubjectError: A filter is not a legal subject.
            ConfigError: Two starts are given, two filters overlap, or a value can not work.

        Cost: one ephemeral consumer; memory of at most 16 MiB of messages on their way, and up to
        48 MiB where the server takes messages of 24 MiB.
        Source: ADR-17; nats.go jetstream/ordered.go.
        """
        spec = OrderedSpec(
            stream=self.name,
            filters=filters,
            first=first,
            start_time_ns=None if start_time is None else time_to_ns(start_time),
            deliver_policy=deliver_policy,
            headers_only=headers_only,
            created_ns=created_ns,
            on_loss=on_loss,
        )
        return OrderedConsumer(self._api, spec)
