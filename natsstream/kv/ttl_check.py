"""Whether a bucket keeps a `ttl`, by a configuration that is a second old at most.

Law: a ttl that a bucket would not keep is refused before it is sent, also where the bucket has been
changed since its handle was opened. Locks alone trust what the handle has known: a look that hangs
must not cost them their lease.
"""

from __future__ import annotations

import asyncio

from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import ConfigError, ConnectionLostError, TransportError
from natsstream.kv.conventions import BUCKET
from natsstream.publish.admission import unsent
from natsstream.publish.schedule import Ttl, ttl_text
from natsstream.streams.stream import Stream
from natsstream.units import NS_PER_SECOND, duration_ns

# A bucket that changes while it is used is rare; its ttls are wrong for so long at most.
_KNOWN_S = 1.0


class TtlCheck:
    """Refuses ttls that a bucket would not keep.

    Args:
        stream: The bucket's stream.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._info = stream.cached
        self._read_at = asyncio.get_running_loop().time()
        self._reading = asyncio.Lock()

    async def check(self, ttl: Ttl | None, *, is_over_a_value: bool) -> None:
        """Refuse a ttl that the bucket would not keep.

        Args:
            ttl: The ttl; None is none.
            is_over_a_value: True if the record may replace a value, which would be the newest one
                again when the record expires.

        Raises:
            ConfigError: It has no legal value, or the bucket's history would break it.
            NatsStreamError: The configuration could not be read; nothing was sent.

        Cost: one round trip, if the configuration is older than a second, or refuses the ttl.
        """
        if ttl is None:
            return
        text = ttl_text(ttl)
        if self._info.config.mirror is not None:  # Its history is not its origin's.
            return
        config = (await self.info()).config
        refusal = _refusal(config, text, is_over_a_value=is_over_a_value)
        if refusal or not config.allow_msg_ttl:  # Without it the server refuses the ttl.
            config = (await self.info(is_new=True)).config
            refusal = _refusal(config, text, is_over_a_value=is_over_a_value)
        if refusal is not None:
            raise refusal

    async def info(self, *, is_new: bool = False) -> StreamInfo:
        """Return the stream's info, which is a second old at most.

        Args:
            is_new: It must be of a request that began after this call.

        Raises:
            NatsStreamError: It could not be read, and nobody has sent anything.

        Cost: one round trip for all who ask meanwhile, if the last one is too old.
        """
        now = asyncio.get_running_loop().time
        since = now() if is_new else now() - _KNOWN_S
        while self._read_at < since:
            async with self._reading:
                if self._read_at < since:
                    began = now()
                    self._info, self._read_at = await self._read(), began
        return self._info

    async def _read(self) -> StreamInfo:
        name = BUCKET.name_of(self._stream.name)
        try:
            with BUCKET.translate_errors(name):
                return await self._stream.info()
        except ConnectionLostError as error:
            raise unsent(f"write to bucket {name}", error) from error
        except TransportError as error:
            error.name_call(f"write to bucket {name}, which was not sent")
            raise


def _refusal(config: StreamConfig, ttl: str, *, is_over_a_value: bool) -> ConfigError | None:
    """Return why a bucket would not keep a ttl; None if it would.

    Source: ADR-48; nats-server's stream.go, which raises a ttl to `subject_delete_marker_ttl`
    where `max_msgs_per_subject` is not 1, and says nothing.
    """
    history = config.max_msgs_per_subject
    if history == 1:
        return None
    keeps = f"bucket {BUCKET.name_of(config.name)} keeps {history} revisions of a key"
    if is_over_a_value:
        return ConfigError(
            f"{keeps}: when a value of put() or update() expires, the one before it would be there "
            "again",
            hint="use create(key, value, ttl=...), or a bucket with history=1",
        )
    shortest_s = duration_ns(config.subject_delete_marker_ttl or 0) // NS_PER_SECOND
    if ttl == "never" or int(ttl) >= shortest_s:
        return None
    return ConfigError(
        f"{keeps}: the server would raise a ttl of {ttl} s to its limit_marker_ttl, {shortest_s} s",
        hint=f"give at least {shortest_s}, lower limit_marker_ttl, or use history=1",
    )
