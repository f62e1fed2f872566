"""Stores a list of messages by one fast batch that ends at the first refusal.

Law: the messages that are stored are the first ones of the list. Each carries what makes sending it
again safe: an expectation that no second copy can meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import BatchIncompleteError
from natsstream.publish.batches.fast_sender import FastSender, IngestOptions
from natsstream.publish.batches.fast_state import IngestState
from natsstream.publish.outgoing import Prepared

# The server's largest flow, and how many acks are in flight: 10 x 500 messages are half of what a
# stream's inbox holds.
_FLOW = 500
_OUTSTANDING_MIN = 2
_OUTSTANDING_MAX = 10
# The server's default: it forgets a batch to which nothing comes.
_IDLE_TIMEOUT_S = 10.0


class StoredRun:
    """Fast batches into one stream, one after another.

    Args:
        api: The connection.
        stream: The stream.
        in_flight: Messages that are sent without an ack, 5,000 at most.
    """

    def __init__(self, api: Api, stream: StreamInfo, in_flight: int) -> None:
        self._stream = stream.name
        self._ingest = IngestState(stream.name, stream.state.last_seq)
        options = IngestOptions(
            flow=_FLOW,
            outstanding=min(max(-(-in_flight // _FLOW), _OUTSTANDING_MIN), _OUTSTANDING_MAX),
            gaps_are_ok=False,
            ack_timeout_s=api.client.options.request_timeout,
            idle_timeout_s=_IDLE_TIMEOUT_S,
        )
        self._sender = FastSender(api, self._ingest, stream.name, options)
        self._is_open = False

    async def store(self, messages: Sequence[Prepared]) -> int:
        """Store messages in their order; return the sequence of the last one.

        Raises:
            NatsStreamError: The first refusal or break: some first messages may be stored.

        Cost: two round trips, and an ack for each 500 messages.
        """
        sender, batch = self._sender, self._ingest.current
        if not self._is_open:
            await sender.open()
            self._is_open = True
        try:
            await sender.begin(messages[0])
            index = 1
            while index < len(messages) and not sender.is_over:
                index = sender.put_some(messages, index)
                if index < len(messages) and not sender.is_over:
                    await sender.wait_for_room()
            if not sender.is_over:
                await sender.end()
        except BaseException:
            sender.give_up()
            raise
        finally:
            failure = sender.failure
            sender.turn()
        if failure is not None:
            raise failure
        if batch.last_seq is None or batch.missing() or batch.taken < len(messages):
            raise BatchIncompleteError(
                f"fast batch into {self._stream}: {batch.stored()} of {len(messages)} messages are "
                "stored",
                hint="read the stream's end to see which",
            )
        return batch.last_seq

    def close(self) -> None:
        """Stop listening to the server's answers."""
        if self._is_open:
            self._sender.close()
            self._is_open = False
