"""Publishing into one stream."""

from __future__ import annotations

from natsstream._wire.headers import HeaderValues
from natsstream.errors import ConfigError
from natsstream.publish.outgoing import (
    Expect,
    Payload,
    Rollup,
    prepare,
)
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import RETRY_ATTEMPTS, RETRY_WAIT_S, publish
from natsstream.publish.schedule import Schedule, Ttl
from natsstream.streams.doors.part import Part


class Writes(Part):
    """Stores messages in a stream."""

    async def publish(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
        timeout: float | None = None,
        retry_attempts: int = RETRY_ATTEMPTS,
        retry_wait: float = RETRY_WAIT_S,
    ) -> PubAck:
        """Publish one message into this stream and wait for its ack.

        The arguments are those of `JetStream.publish`. Nothing in the message says which stream it
        is for, so that it can be copied as it is: give `expect=Expect(stream=...)` to have the
        server look at it, too.

        Raises:
            ConfigError: The stream has `no_ack`; nothing was sent.
            WrongStreamError: Another stream captures the subject, and nothing was sent; or it has
                taken the subject over since this stream was looked at: then it has stored the
                message, and the error says so.
            NatsStreamError: What `JetStream.publish` raises.

        Cost: one round trip; one more for a subject that this stream is not known to capture.
        """
        config = self.cached.config
        if config.no_ack:
            raise ConfigError(
                f"stream {self.name} has no_ack: it would not say what it stored",
                hint="js.streams.update(name, no_ack=False)",
            )
        return await publish(
            self._api,
            prepare(subject, data, headers, msg_id, expect, ttl, rollup, schedule),
            stream=self.cached,
            timeout=timeout,
            retry_attempts=retry_attempts,
            retry_wait=retry_wait,
        )
