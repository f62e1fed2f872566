"""One consumer: the parts of its surface, put together."""

from __future__ import annotations

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import consumer_info
from natsstream.streams.consumers.operations import Operations
from natsstream.streams.consumers.pulls import Pulls
from natsstream.streams.consumers.pushes import Pushes
from natsstream.streams.consumers.works import Works


class Consumer(Pulls, Pushes, Works, Operations):
    """A consumer of a stream; made by `stream.consumers`.

    Attributes:
        name: Its name.
        stream: Name of its stream.
        cached: Its info when it was opened; `info()` asks for a fresh one.
        change: What the call that gave it has done: made it, changed fields, or nothing.
    """

    async def info(self) -> ConsumerInfo:
        """Return the consumer's configuration and progress now.

        Raises:
            ConsumerNotFoundError: It was deleted, or nobody has read it for too long.
            StreamNotFoundError: Its stream was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip to the consumer's leader.
        """
        return await consumer_info(self._api, self.stream, self.name)

    def __repr__(self) -> str:
        return f"<Consumer {self.name} of {self.stream}>"
