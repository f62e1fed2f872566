"""The mailboxes of one handle: a spare one for the next fetch, and those that were left.

Law: nothing is delivered into the void. A fetch that ends before its pull, as by cancelling, leaves
its mailbox open for a moment: the next fetch of this handle goes on with it; otherwise the pull is
withdrawn and what came is given back, so that others get it at once. A mailbox that nobody uses is
closed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from natsstream._wire.permission_violations import denied_error
from natsstream.consume.pull.fetch_inbox import FetchInbox
from natsstream.consume.pull.session import give_back

if TYPE_CHECKING:
    from natsstream.consume.delivery.delivered import AckSender
    from natsstream.consume.pull.requests import FetchOptions
    from natsstream.events import PermissionDenied

LINGER_S = 0.1
"""How long a pull that was left is kept for the next fetch."""
# While messages still arrive, withdrawing would lose those on their way: wait for a short silence.
_BUSY_S = 0.02
_LINGER_MAX_S = 1.0
SPARE_S = 2.0
"""How long an unused subscription is kept."""


class InboxPool:
    """The mailboxes of one handle of a consumer."""

    def __init__(self, settling: AckSender) -> None:
        self._settling = settling
        self._client = settling.source.api.client
        self._spare: FetchInbox | None = None
        self._spare_timer: asyncio.TimerHandle | None = None
        self._left: list[FetchInbox] = []
        self._used: set[FetchInbox] = set()
        self._stop_watching = lambda: None
        self._is_watching = False

    async def get(self, options: FetchOptions, deadline: float) -> FetchInbox:
        """Return a mailbox for a fetch: one that was left with a pull that suits, a spare, or new.

        Args:
            options: What the fetch wants.
            deadline: When its time is over, on the loop's clock.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is none, and too much waits for one.
        """
        self._watch()
        for box in self._left:
            if self._suits(box, options, deadline):
                self._left.remove(box)
                self._used.add(box)
                return box
        return await self.new()

    async def new(self) -> FetchInbox:
        """Return a mailbox without a pull; as for `get`."""
        self._watch()
        box, self._spare = self._spare, None
        if self._spare_timer is not None:
            self._spare_timer.cancel()
            self._spare_timer = None
        if box is None:
            box = FetchInbox(self._settling)
            await box.lane.open()
        # What is said of the pulls of others is no answer to the next one.
        box.statuses.clear()
        self._used.add(box)
        return box

    def put(self, box: FetchInbox) -> None:
        """Take back a mailbox that a fetch is done with, whatever state it is in."""
        self._used.discard(box)
        loop = asyncio.get_running_loop()
        if box.failure is not None or self._client.is_closed or not self._client.is_connected:
            self._drop(box)
        elif box.lane.pulls.left(loop.time()) or box.messages:
            self._left.append(box)
            loop.call_later(LINGER_S, self._end_linger, box, loop.time() + _LINGER_MAX_S)
        elif box.lane.pulls.has_doubts:
            self._withdraw(box)
        elif self._spare is None:
            self._spare = box
            self._spare_timer = loop.call_later(SPARE_S, self._drop_spare)
        else:
            self._drop(box)
        self._unwatch_if_idle()

    def discard(self, box: FetchInbox) -> None:
        """Close a mailbox that a break has made useless."""
        self._used.discard(box)
        self._drop(box)
        self._unwatch_if_idle()

    def close(self) -> None:
        """Close all that no fetch uses, and give back what is there."""
        for box in (*self._left, *((self._spare,) if self._spare is not None else ())):
            self._drop(box)
        self._left.clear()
        self._spare = None
        if self._spare_timer is not None:
            self._spare_timer.cancel()
            self._spare_timer = None
        self._unwatch_if_idle()

    def _suits(self, box: FetchInbox, options: FetchOptions, deadline: float) -> bool:
        """Tell whether a fetch may go on with what another one has asked for."""
        asked = box.options
        if asked is None or box.is_broken or box.statuses:
            return False
        # A pull that outlives the fetch would not say to it that there is nothing.
        if box.lane.pulls.expires_at > deadline:
            return False
        # A larger pull suits as well: what is too much is for the next one, or given back.
        has_other_rules = asked.no_wait or options.no_wait or asked.group != options.group
        return not (has_other_rules or asked.max_bytes or options.max_bytes)

    def _end_linger(self, box: FetchInbox, until: float) -> None:
        if box not in self._left:
            return  # Another fetch has it.
        loop = asyncio.get_running_loop()
        now = loop.time()
        pulls = box.lane.pulls
        is_busy = pulls.left(now) > 0 and now - pulls.delivered_at < _BUSY_S
        if is_busy and now < until and self._client.is_connected:
            loop.call_later(_BUSY_S, self._end_linger, box, until)
            return
        self._left.remove(box)
        if pulls.left(now) or pulls.has_doubts:
            self._withdraw(box)
        else:
            self._drop(box)
        self._unwatch_if_idle()

    def _withdraw(self, box: FetchInbox) -> None:
        """End its pulls on the server; what was on its way by then is given back."""
        self._give_back(box)
        box.lane.linger(lambda: self._drop(box))

    def _drop(self, box: FetchInbox) -> None:
        box.lane.close()
        self._give_back(box)

    def _give_back(self, box: FetchInbox) -> None:
        messages, box.messages = box.messages, []
        if messages:
            give_back(self._settling, messages)

    def _drop_spare(self) -> None:
        self._spare_timer = None
        if self._spare is not None:
            self._drop(self._spare)
            self._spare = None
        self._unwatch_if_idle()

    # Breaks.

    def _watch(self) -> None:
        if self._is_watching:
            return
        unwatch = self._client.watch(self._on_connection)
        undeny = self._client.watch_denied(self._on_denied)
        self._stop_watching = lambda: (unwatch(), undeny())
        self._is_watching = True

    def _unwatch_if_idle(self) -> None:
        if self._is_watching and not self._used and not self._left and self._spare is None:
            self._stop_watching()
            self._is_watching = False

    def _on_connection(self) -> None:
        for box in self._used:
            if self._client.is_closed:
                box.fail(self._client.closing_error())
            box.notify()
        if not self._client.is_connected:
            self.close()

    def _on_denied(self, event: PermissionDenied) -> None:
        if event.operation != "publish":
            return
        for box in self._used:
            if box.lane.is_about(event.subject):
                box.fail(denied_error(event))
