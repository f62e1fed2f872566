"""Steps down the leader of a stream or a consumer, and waits for the next one.

Law: every wait for a leader has a deadline, and sends requests only until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from natsstream._wire import subjects
from natsstream.api.features import PLACED_LEADER
from natsstream.arguments import check_bool, check_seconds, check_text, check_texts
from natsstream.errors import RequestTimeoutError, UnavailableError

if TYPE_CHECKING:
    from natsstream.api.requests import Api

# Time between two checks for a new leader; an election takes tenths of a second.
_LOOK_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class LeaderState:
    """The leader of a stream or a consumer at one moment.

    Attributes:
        leader: The server's name; empty while there is none.
        since: Start of its term, as the server writes it.
        has_others: True if there are other replicas.
    """

    leader: str
    since: str
    has_others: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDownTarget:
    """A stream or a consumer whose leader is to step down.

    Attributes:
        api: The connection's API.
        what: Its name in errors.
        info: The API subject that describes it.
        step_down: The API subject that makes its leader step down.
    """

    api: Api
    what: str
    info: str
    step_down: str

    @classmethod
    def of_stream(cls, api: Api, stream: str) -> Self:
        """Return the target for a stream."""
        return cls(
            api=api,
            what=f"stream {stream}",
            info=subjects.stream_info(stream),
            step_down=subjects.stream_step_down(stream),
        )

    @classmethod
    def of_consumer(cls, api: Api, stream: str, consumer: str) -> Self:
        """Return the target for a consumer."""
        return cls(
            api=api,
            what=f"consumer {consumer} of stream {stream}",
            info=subjects.consumer_info(stream, consumer),
            step_down=subjects.consumer_step_down(stream, consumer),
        )

    async def look(self, timeout: float) -> LeaderState:
        """Return the current leader.

        Raises:
            NotFoundError: The stream or the consumer does not exist any more.
            TransportError: There was no answer in time.
        """
        answer = await self.api.read(self.info, None, what=self.what, timeout=timeout)
        found = answer.part("cluster", {})
        leader, since = found.text("leader", ""), found.text("leader_since", "")
        return LeaderState(leader, since, has_others=bool(found.parts("replicas")))


async def step_down(
    led: StepDownTarget,
    *,
    preferred: str | None,
    cluster: str | None,
    tags: Sequence[str],
    wait: bool,
    timeout: float | None,
) -> str | None:
    """Make a leader step down; see `Stream.step_down` for the arguments and errors.

    Returns:
        The next leader; None without `wait`.
    """
    placement: dict[str, object] = {}
    if preferred is not None:
        placement["preferred"] = check_text(preferred, "preferred")
    if cluster is not None:
        placement["cluster"] = check_text(cluster, "cluster")
    if wanted := check_texts(tags, "tags"):
        placement["tags"] = list(wanted)
    check_bool(wait, "wait")
    api = led.api
    wait_s = api.client.options.request_timeout if timeout is None else timeout
    deadline = asyncio.get_running_loop().time() + check_seconds(wait_s, "timeout")
    if placement:
        await api.require(PLACED_LEADER)
    before = await led.look(wait_s)
    if preferred is not None and before.leader == preferred:
        return preferred  # The server would refuse it.
    body: dict[str, object] | None = {"placement": placement} if placement else None
    what = f"step-down of the leader of {led.what}"
    await api.change(led.step_down, body, what=what, timeout=wait_s)
    return await _next_leader(led, before, deadline, what) if wait else None


async def _next_leader(led: StepDownTarget, before: LeaderState, deadline: float, what: str) -> str:
    loop = asyncio.get_running_loop()
    while (left := deadline - loop.time()) > 0:
        try:
            now = await led.look(left)
        except UnavailableError:
            now = LeaderState("", "", has_others=True)
        is_another = (now.leader, now.since) != (before.leader, before.since)
        # A single replica keeps its leader.
        if now.leader and (is_another or not before.has_others):
            return now.leader
        await asyncio.sleep(_LOOK_WAIT_S)
    raise RequestTimeoutError(
        f"{what}: the leader is still {before.leader or 'unknown'}",
        hint="is a majority of the replicas up? Raise timeout if elections take longer",
        retryable=True,
    )
