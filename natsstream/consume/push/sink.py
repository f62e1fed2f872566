"""From the frames of a push consumer to buffered messages, and the answers to the server.

Law: requests for flow control keep their place between the messages; what does not arrive, or
finds no room, is counted and told.
"""

from __future__ import annotations

import logging

from natsstream._wire.acks import ack_numbers, is_ack_subject, parse_ack_subject
from natsstream._wire.parser import Frame
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.events import DeliveriesMissed
from natsstream.consume.delivery.source import PushSource
from natsstream.consume.push.buffer import DeliveryCount, FlowRequest, PushBuffer, read_control
from natsstream.errors import NatsStreamError, ProtocolError, SlowReaderError
from natsstream.read.event_stream import EventStream

_log = logging.getLogger("natsstream.consumer")


class PushSink:
    """Receives the frames of a push consumer.

    Attributes:
        buffer: The buffered messages.
        count: Which deliveries are missing; it stands still in a deliver group, whose members can
            not know of each other's.
    """

    def __init__(
        self,
        source: PushSource,
        ack_sender: AckSender,
        events: EventStream,
        buffer: PushBuffer[DeliveredMessage],
    ) -> None:
        self.buffer: PushBuffer[DeliveredMessage] = buffer
        self.count: DeliveryCount = DeliveryCount()
        self._source = source
        self._client = source.consumer.api.client
        self._ack_sender = ack_sender
        self._events = events

    def accept(self, frames: list[Frame]) -> None:
        """Take what came in one read; it neither waits nor raises."""
        messages: list[Frame] = []
        for frame in frames:
            if is_ack_subject(frame[1]):
                messages.append(frame)
                continue
            # Requests for flow control keep their place between the messages.
            self._put(messages)
            messages = []
            self._on_control(frame)
        self._put(messages)
        self._answer()

    def take(self) -> DeliveredMessage | None:
        """Return the next message, None when none waits; answers what the server waits for."""
        message = self.buffer.take()
        if message is not None:
            self._answer()
        return message

    def slow(self) -> SlowReaderError | None:
        """Return the error for messages that were dropped and not told of yet."""
        dropped = self.buffer.queue.take_dropped()
        if not dropped:
            return None
        again = "they are lost" if self._source.consumer.ack_policy == "none" else "they come again"
        return SlowReaderError(
            f"{dropped} messages of {self._source.consumer.what} came while the reader held all "
            f"that it may, and were dropped: {again}",
            dropped=self.buffer.queue.dropped,
            hint="give the consumer flow_control=True and idle_heartbeat, or a smaller "
            "max_ack_pending; or raise max_pending",
        )

    def _put(self, frames: list[Frame]) -> None:
        if not frames:
            return
        try:
            self._number(frames)
        except ProtocolError:
            # Anybody may publish to the deliver subject.
            sound = [frame for frame in frames if _is_delivery(frame)]
            count = len(frames) - len(sound)
            _log.warning("%s: %d messages are not the server's", self._source.consumer.what, count)
            if sound:
                self._put(sound)
            return
        ack_sender, put = self._ack_sender, self.buffer.queue.put
        for frame in frames:
            put(DeliveredMessage(frame, ack_sender), len(frame[2]) + len(frame[3]))

    def _number(self, frames: list[Frame]) -> None:
        """Count deliveries; raises ProtocolError where a frame is none."""
        if self._source.group:
            for frame in frames:
                ack_numbers(frame[1])
            return
        missing = self.count.add([frame[1] for frame in frames])
        if missing:
            self._miss(missing, ack_numbers(frames[0][1])[0])

    def _on_control(self, frame: Frame) -> None:
        control = read_control(frame)
        if isinstance(control, FlowRequest):
            self.buffer.ask(control.subject)
        elif control is not None:
            if control.stalled:
                self.buffer.ask(control.stalled)
            missing = 0 if self._source.group else self.count.hear(control.last_consumer_seq)
            if missing:
                self._miss(missing, 0)

    def _miss(self, count: int, next_stream_seq: int) -> None:
        _log.warning("%s: %d deliveries did not arrive", self._source.consumer.what, count)
        self._events.put(DeliveriesMissed(count=count, next_stream_seq=next_stream_seq))

    def _answer(self) -> None:
        """Tell the server that what it waits for was taken."""
        client = self._client
        for subject in self.buffer.due():
            try:
                client.write(client.publish_command(subject, "", b"", b""))
            except NatsStreamError as error:
                # A heartbeat asks again, after the reconnect.
                _log.info("flow control on %s could not be answered: %s", subject, error.message)


def _is_delivery(frame: Frame) -> bool:
    return parse_ack_subject(frame[1].decode("utf-8", "surrogateescape")) is not None
