"""Whether a bucket keeps a `ttl`, by a configuration that is a second old at most.

Law: a ttl that a bucket would not keep is refused before it is sent, also where the bucket has been
changed since its handle was opened.
"""

from __future__ import annotations

import asyncio

from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError, ConnectionLostError
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
        self._config = stream.cached.config
        self._read_at = asyncio.get_running_loop().time()

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
        if self._config.mirror is not None:  # Its history is not its origin's.
            return
        now = asyncio.get_running_loop().time()
        refusal = _refusal(self._config, text, is_over_a_value=is_over_a_value)
        # Without allow_msg_ttl the server refuses it, if that was not changed since.
        if refusal or not self._config.allow_msg_ttl or now - self._read_at >= _KNOWN_S:
            await self._read()
            self._read_at = now
            refusal = _refusal(self._config, text, is_over_a_value=is_over_a_value)
        if refusal is not None:
            raise refusal

    async def _read(self) -> None:
        name = BUCKET.name_of(self._stream.name)
        try:
            with BUCKET.translate_errors(name):
                self._config = (await self._stream.info()).config
        except ConnectionLostError as error:
            raise unsent(f"write to bucket {name}", error) from error


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
