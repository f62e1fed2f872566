"""Care of a consumer in a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from natsstream._wire import subjects
from natsstream.api import step_down as leading
from natsstream.streams.consumers.part import ConsumerPart


class Operations(ConsumerPart):
    """Operates a consumer."""

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
    ) -> str | None:
        """Make the consumer's leader give up, and return the name of the next one.

        Those who read it go on; what was out and not settled may be delivered again. A consumer
        with one replica keeps its leader.

        Args:
            preferred: Name of the server that shall lead; it must have a replica.
            cluster: Name of the cluster that the next leader shall be in.
            tags: Tags that its server shall have.
            wait: Wait for the next leader; without it the answer is None.
            timeout: Seconds to wait in all; None is `request_timeout`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            ConsumerNotFoundError: It does not exist.
            ServerError: The server is not in a cluster, or no replica fits; the old one leads on.
            UnsupportedServerError: A choice was made, and the server is older than 2.11.
            RequestTimeoutError: No answer, or no leader in time. It may have stepped down.

        Cost: a round trip, an election, and a look at the consumer each 50 ms until it is over.
        Source: nats CLI `nats consumer cluster step-down`.
        """
        led = leading.StepDownTarget(
            api=self._api,
            what=f"consumer {self.name} of stream {self.stream}",
            info=subjects.consumer_info(self.stream, self.name),
            step_down=subjects.consumer_step_down(self.stream, self.name),
        )
        return await leading.step_down(
            led, preferred=preferred, cluster=cluster, tags=tags, wait=wait, timeout=timeout
        )
