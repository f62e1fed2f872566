"""How a flow goes on after a break: waiting for the connection, asking about the consumer."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING

from natsstream.consume.delivery.events import ConsumerRecreated, LimitExceeded, Reconnected
from natsstream.consume.pull.outcomes import is_crowded
from natsstream.errors import ConnectionLostError, NatsStreamError, NotFoundError
from natsstream.fields import Fields

if TYPE_CHECKING:
    from natsstream.consume.pull.session import ConsumeSession

_RETRY_WAIT_S = 0.05
_RETRY_WAIT_MAX_S = 1.0
_LOOK_TIMEOUT_S = 2.0


class Cause(Enum):
    """What broke."""

    LEADER_CHANGED = "the consumer's leader gave it up"
    LIMITS_CHANGED = "the consumer's limits are others"
    NO_RESPONDERS = "nobody listens for the consumer"
    MISSED_HEARTBEATS = "heartbeats were missed"
    CONNECTION_LOST = "the connection was lost"


_ORDER = tuple(Cause)


class Recovery:
    """The breaks of one flow."""

    def __init__(self, engine: ConsumeSession) -> None:
        self._session = engine
        self._trouble: Cause | None = None
        self._attempts = 0
        self._deadline = 0.0
        self._created_ns = engine.settling.source.created_ns
        self._is_mending = False
        self._scope: asyncio.Timeout | None = None

    @property
    def is_needed(self) -> bool:
        """True between a break and its end."""
        return self._trouble is not None

    def begin(self, trouble: Cause) -> None:
        """Note a break; of several the worst counts."""
        if self._trouble is None or _ORDER.index(trouble) > _ORDER.index(self._trouble):
            self._trouble = trouble
        self._session.wake()

    def reset(self) -> None:
        """Note that the consumer has answered: the next break begins from the start."""
        self._attempts = 0
        self._deadline = 0.0

    async def mend(self) -> None:
        """Do what lets the flow go on; one reader does it, others wait.

        Raises:
            ConnectionLostError: It took longer than `reconnect_timeout`.
        """
        if self._is_mending:
            await self._session.sleep_until_woken()
            return
        self._is_mending = True
        try:
            # It has its own deadlines; `end` makes this one.
            async with asyncio.timeout(None) as self._scope:
                await self._mend()
        except TimeoutError:
            if not self._session.is_ended:
                raise
        finally:
            self._scope = None
            self._is_mending = False
            self._session.wake()

    def end(self) -> None:
        """Let the reader go that mends: the flow is over."""
        self._trouble = None
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def _mend(self) -> None:
        engine, trouble = self._session, self._trouble
        client = engine.settling.source.api.client
        loop = asyncio.get_running_loop()
        limit_s = client.options.reconnect_timeout
        # By a name of its own: what still arrives while this waits resets the other.
        deadline = self._deadline = self._deadline or loop.time() + limit_s
        try:
            await client.wait_connected(max(deadline - loop.time(), 0.001))
            if loop.time() >= deadline:
                raise ConnectionLostError("the time is over")
        except ConnectionLostError as lost:
            self.reset()  # Whoever asks again begins a new wait.
            raise ConnectionLostError(
                f"{engine.settling.source.what} was away for {limit_s:g} s",
                detail=trouble.value if trouble is not None else lost.message,
                hint="iterate again to go on trying, or raise reconnect_timeout",
                retryable=True,
            ) from lost
        if self._attempts:
            wait_s = min(_RETRY_WAIT_S * 2 ** (self._attempts - 1), _RETRY_WAIT_MAX_S)
            await asyncio.sleep(wait_s)
        self._attempts += 1
        if trouble is not Cause.LEADER_CHANGED and not await self._look():
            return
        if engine.is_ended:
            return
        if trouble is Cause.CONNECTION_LOST:
            connection = client.connections
            await engine.renew_lane()
            if not client.is_connected or client.connections != connection:
                return
            engine.events.put(Reconnected())
        if self._trouble is trouble:
            self._trouble = None
        engine.refill()

    async def _look(self) -> bool:
        """Ask about the consumer; returns whether it is known to be there."""
        engine = self._session
        source = engine.settling.source
        try:
            info = await source.info(_LOOK_TIMEOUT_S)
            created_ns = info.moment("created")
            if created_ns != self._created_ns:
                engine.events.put(ConsumerRecreated(consumer=source.consumer))
            self._created_ns = created_ns
            self._adapt(info)
        except NotFoundError as error:
            self._trouble = None
            engine.lose_consumer(source.deleted_error(error))
            return False
        except NatsStreamError as error:
            if not error.retryable:
                self._trouble = None
                engine.fail(error)
            return False
        return True

    def _adapt(self, info: Fields) -> None:
        if self._trouble is Cause.MISSED_HEARTBEATS and is_crowded(info):
            reason = f"{info.count('num_waiting')} pulls wait already"
            self._session.events.put(LimitExceeded(limit="max_waiting", reason=reason))
            self._deadline = 0.0  # It is there, and has no room.
        config = info.part("config", {})
        self._session.adapt(
            max_batch=config.count("max_batch"),
            max_bytes=config.count("max_bytes"),
            max_expires_ns=config.count("max_expires"),
        )
