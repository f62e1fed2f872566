"""Handlers that run side by side over a consumer's messages: `consumer.run` and `.worker`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from natsstream.consume.delivery.backoff import Backoff
from natsstream.consume.delivery.delivered import AckSender
from natsstream.consume.pull.messages import ConsumerMessages
from natsstream.consume.pull.requests import ConsumeOptions, group_options
from natsstream.consume.work.handlers import ErrorSink, Handler, check_handler
from natsstream.consume.work.options import CONCURRENCY, STOP_TIMEOUT_S, WorkOptions
from natsstream.consume.work.worker import Worker
from natsstream.streams.consumers.part import ConsumerPart


class Works(ConsumerPart):
    """Works through a consumer's messages."""

    async def run(
        self,
        handler: Handler,
        *,
        concurrency: int = CONCURRENCY,
        dead_letter: str | None = None,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        max_attempts: int | None = None,
        on_error: ErrorSink | None = None,
        keepalive: bool = True,
        prefetch: int | None = None,
        confirm: bool = False,
        stop_timeout: float = STOP_TIMEOUT_S,
    ) -> None:
        """Handle messages until it is cancelled, or can not go on.

        A handler that returns has handled its message, which is then acked. One that raises gives
        it back: it is delivered again after the backoff's delay for this delivery. `Reject` says
        that it can never be handled, `Retry(delay=...)` that it is to come again. What has failed
        as often as it may is stored as a dead letter, then terminated. A handler may also settle
        its message itself.

        Handlers run side by side, so they end in any order. A message may be handled twice: after a
        crash, or when the server heard nothing of its worker for `ack_wait`.

        When it is cancelled, handlers under way get `stop_timeout` seconds to finish, and what was
        not begun is given back; cancelled again, the handlers are cancelled at once.

        Args:
            handler: A coroutine function that takes a message.
            concurrency: Handlers under way at the same time.
            dead_letter: The dead-letter stream; it is made when it does not exist.
            backoff: Seconds until a failed message is delivered again, after its first, second, ...
                delivery; the last one goes on. None is the consumer's own, or 1, 2, 4, ... 60.
            max_attempts: Deliveries after which a failing message is dead; None is the consumer's
                `max_deliver`, or 5 with `dead_letter`, else no limit. Without `dead_letter` a dead
                message is only terminated.
            on_error: Told of each failure with its message: what a handler raised, `Reject` and
                `Retry` too, and what could not be settled or stored. It may be a coroutine
                function. None logs them.
            keepalive: Tell the server that messages are being worked on, three times in each
                `ack_wait`, so that a handler may take longer.
            prefetch: Messages asked for before a handler is free; None is as many as are handled
                in a tenth of a second, from `concurrency` to 512: slow handlers leave the rest to
                other workers. It stays at `concurrency` while many messages come again.
            confirm: Wait until the server has each ack; `DeliveredMessage.ack` says what that
                promises. What a server that was killed has forgotten is told to `on_error` as
                `DeliveryForgottenError`, counted in `report.unconfirmed`, and delivered again.
            stop_timeout: Seconds that handlers under way get at the end.

        Raises:
            ConfigError: The handler is no coroutine function, or an option does not fit the
                consumer; no message was taken.
            ConsumerDeletedError: The consumer was deleted; handlers under way have finished.
            ConnectionLostError: It was away for longer than `reconnect_timeout`.
            NatsStreamError: Something else makes it impossible to go on.

        Cost: for each message that of `consume` and of its ack, and a task switch.
        """
        async with self.worker(
            handler,
            concurrency=concurrency,
            dead_letter=dead_letter,
            backoff=backoff,
            max_attempts=max_attempts,
            on_error=on_error,
            keepalive=keepalive,
            prefetch=prefetch,
            confirm=confirm,
            stop_timeout=stop_timeout,
        ) as worker:
            await worker.wait()

    def worker(
        self,
        handler: Handler,
        *,
        concurrency: int = CONCURRENCY,
        dead_letter: str | None = None,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        max_attempts: int | None = None,
        on_error: ErrorSink | None = None,
        keepalive: bool = True,
        prefetch: int | None = None,
        confirm: bool = False,
        stop_timeout: float = STOP_TIMEOUT_S,
    ) -> Worker:
        """Return a worker, to be used with `async with`; arguments as in `run`.

        The block begins and ends it: `stop`, `drain` and `wait` end it earlier, `report` counts.

        Raises:
            ConfigError: As for `run`.
        """
        options = WorkOptions(
            concurrency=concurrency,
            dead_letter=dead_letter,
            backoff=backoff,
            max_attempts=max_attempts,
            on_error=on_error,
            keepalive=keepalive,
            prefetch=prefetch,
            confirm=confirm,
            stop_timeout=stop_timeout,
        )
        source = self._source()
        ack_sender = AckSender(source)
        group = group_options(
            source, group=None, priority=None, min_pending=None, min_ack_pending=None
        )

        def open_incoming(window: int) -> ConsumerMessages:
            return ConsumerMessages(ack_sender, ConsumeOptions(max_messages=window, group=group))

        return Worker(ack_sender, open_incoming, check_handler(handler), options)
