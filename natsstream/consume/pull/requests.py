"""Options and bodies of pulls, checked before anything is sent; pure rules."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from natsstream._wire.headers import HeaderName, Headers
from natsstream.api.features import Feature
from natsstream.arguments import check_bool, check_int, check_text
from natsstream.consume.pull.open_pulls import PullTimes
from natsstream.errors import ConfigError
from natsstream.units import NS_PER_SECOND, duration_ns

if TYPE_CHECKING:
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.delivery.source import ConsumerSource

Duration: TypeAlias = float | timedelta

MAX_MESSAGES = 500
EXPIRES_S = 30.0
HEARTBEAT_S = 2.0
"""Of an idle pull; two and a half of them without a word are taken for a break."""
THRESHOLD = 0.5
TIMEOUT_S = 5.0
# The server answers each pull with a status at its end; this is what its way may take, also between
# continents, or from a machine that is busy.
GRACE_S = 1.0
# Shorter waits have no heartbeats: their silence could not be told from a busy machine.
_WATCHED_MIN_S = 5.0
_HEARTBEATS = 5
_BODIES_MAX = 64
# The server counts nanoseconds and bytes in 64 bits with a sign.
_BYTES_MAX = (1 << 63) - 1
_SECONDS_MAX = 1e9
BATCH_MAX = 1_000_000
_EXPIRES_MIN_S = 0.1
_EXPIRES_SHORTEST_S = 0.001
_HEARTBEAT_MIN_S = 0.05
_PRIORITY_MAX = 9
_GROUP_CHARS_MAX = 16

PRIORITY_GROUPS = Feature("pulling for a priority group", (2, 11))
PRIORITIES = Feature("pulls with a priority", (2, 12))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """The priority group of a pull.

    Attributes:
        group: The group's name; empty for a consumer without one.
        priority: Of a "prioritized" consumer: 0 (first) to 9; lower ones get messages first.
        min_pending: Of an "overflow" consumer: get messages only while that many are pending.
        min_ack_pending: Of an "overflow" consumer: get messages only while that many are out and
            not acked. With both, one of them is enough.
    """

    group: str = ""
    priority: int | None = None
    min_pending: int | None = None
    min_ack_pending: int | None = None

    def features(self) -> tuple[Feature, ...]:
        """Return the features that the servers must have."""
        if self.priority is not None:
            return (PRIORITY_GROUPS, PRIORITIES)
        return (PRIORITY_GROUPS,) if self.group else ()

    def fields(self, pin_id: str) -> dict[str, object]:
        """Return the fields of a pull."""
        if not self.group:
            return {}
        fields: dict[str, object] = {"group": self.group}
        for name in ("priority", "min_pending", "min_ack_pending"):
            value = getattr(self, name)
            if value is not None:
                fields[name] = value
        if pin_id:
            fields["id"] = pin_id
        return fields


def group_options(
    source: ConsumerSource,
    *,
    group: str | None = None,
    priority: int | None = None,
    min_pending: int | None = None,
    min_ack_pending: int | None = None,
) -> GroupOptions:
    """Return checked options; without a name the consumer's only group is meant.

    Raises:
        ConfigError: A value is not legal, or goes with another policy than the consumer has.
    """
    name = source.priority_group if group is None else check_text(group, "group")
    if group is not None and not 0 < len(name) <= _GROUP_CHARS_MAX:
        raise ConfigError(
            f"priority group {name!r} has {len(name)} characters",
            hint=f"1 to {_GROUP_CHARS_MAX} of A-Z a-z 0-9 / _ = -",
        )
    if priority is not None:
        check_int(priority, "priority", minimum=0, maximum=_PRIORITY_MAX)
    wanted = {"priority": priority, "min_pending": min_pending, "min_ack_pending": min_ack_pending}
    given = [option for option, value in wanted.items() if value is not None]
    for option in given:
        if option != "priority":
            check_int(wanted[option], option, minimum=1)
    # A server takes the group of a consumer without one, and makes nothing of it.
    pointless = ["group"] if group is not None else given
    if pointless and not source.priority_group:
        raise ConfigError(
            f"{pointless[0]} needs a priority group, and {source.what} has none",
            hint="create it with priority_groups=['jobs'] and a priority_policy, or open it again "
            "if it has got one since",
        )
    needed = "prioritized" if priority is not None else "overflow"
    if given and source.priority_policy not in ("none", needed):
        raise ConfigError(
            f"{given[0]} is for consumers with priority_policy {needed!r}, and {source.what} has "
            f"{source.priority_policy!r}",
            hint=f"leave {given[0]} out",
        )
    return GroupOptions(
        group=name,
        priority=priority,
        min_pending=min_pending,
        min_ack_pending=min_ack_pending,
    )


def pull_body(
    count: int,
    times: PullTimes,
    *,
    max_bytes: int,
    no_wait: bool = False,
    group: GroupOptions,
    pin_id: str,
) -> bytes:
    """Return the JSON of a pull for `count` messages and so many bytes, 0 for any."""
    fields: dict[str, object] = {"batch": count}
    if no_wait:
        fields["no_wait"] = True
    else:
        fields["expires"] = round(times.expires_s * NS_PER_SECOND)
        if times.heartbeat_s:
            fields["idle_heartbeat"] = round(times.heartbeat_s * NS_PER_SECOND)
    if max_bytes:
        fields["max_bytes"] = max_bytes
    return json.dumps({**fields, **group.fields(pin_id)}).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions:
    """Options of one call of `fetch`.

    Attributes:
        count: Messages at most.
        timeout_s: Seconds to wait for them; 0 with `no_wait` only.
        max_bytes: Bytes at most, 0 for any.
        no_wait: Take only what is there.
        heartbeat_s: Seconds of an idle heartbeat; 0 for none.
        expires_max_s: How long one pull may wait at the server.
        batch_max: Messages that one pull may ask for.
        group: For priority groups.
    """

    count: int
    timeout_s: float = TIMEOUT_S
    max_bytes: int = 0
    no_wait: bool = False
    heartbeat_s: float = HEARTBEAT_S
    expires_max_s: float = 0.0
    batch_max: int = BATCH_MAX
    group: GroupOptions = GroupOptions()

    def times(self, left_s: float) -> PullTimes:
        """Return how long a pull waits; one that is not to wait is answered within the time."""
        if self.no_wait:
            return PullTimes(expires_s=left_s)
        left_s = max(left_s, _EXPIRES_SHORTEST_S)
        expires_s = min(left_s, self.expires_max_s) if self.expires_max_s else left_s
        has_room = 2 * self.heartbeat_s <= expires_s
        heartbeat_s = self.heartbeat_s if has_room else 0.0
        return PullTimes(expires_s=expires_s, heartbeat_s=heartbeat_s, grace_s=GRACE_S)


def fetch_options(
    source: ConsumerSource,
    count: int,
    *,
    timeout: Duration,
    max_bytes: int | None,
    no_wait: bool,
    heartbeat: Duration | None,
    group: GroupOptions,
) -> FetchOptions:
    """Return checked options of a fetch.

    Raises:
        ConfigError: A value is not legal.
    """
    check_int(count, "n", minimum=1, maximum=BATCH_MAX)
    timeout_s = seconds(timeout, "timeout")
    no_wait = check_bool(no_wait, "no_wait") or timeout_s == 0
    if max_bytes is not None:
        check_int(max_bytes, "max_bytes", minimum=1, maximum=_BYTES_MAX)
    if heartbeat is None:
        is_watched = timeout_s >= _WATCHED_MIN_S
        heartbeat_s = min(HEARTBEAT_S, timeout_s / _HEARTBEATS) if is_watched else 0.0
    else:
        heartbeat_s = seconds(heartbeat, "heartbeat")
    if heartbeat_s > timeout_s / 2:
        raise ConfigError(
            f"heartbeat {heartbeat_s:g} s does not fit twice into timeout {timeout_s:g} s",
            hint="give at most half of the timeout, or leave it out",
        )
    return FetchOptions(
        count=count,
        timeout_s=timeout_s,
        max_bytes=max_bytes or 0,
        no_wait=no_wait,
        heartbeat_s=heartbeat_s,
        expires_max_s=source.max_expires_ns / NS_PER_SECOND,
        batch_max=source.max_batch if source.max_batch > 0 else BATCH_MAX,
        group=group,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeOptions:
    """Options of `consume`.

    Attributes:
        max_messages: Messages in flight or buffered, at most.
        max_bytes: Their bytes, 0 for any.
        threshold: Share of these from which downwards more is asked for.
        expires_s: Seconds after which the server ends a pull.
        heartbeat_s: Seconds of an idle heartbeat.
        stop_after: Messages after which the flow ends; 0 for never.
        group: For priority groups.
    """

    max_messages: int = MAX_MESSAGES
    max_bytes: int = 0
    threshold: float = THRESHOLD
    expires_s: float = EXPIRES_S
    heartbeat_s: float = HEARTBEAT_S
    stop_after: int = 0
    group: GroupOptions = GroupOptions()

    def times(self, limit_s: float) -> PullTimes:
        """Return how long its pulls wait where the consumer lets them wait for `limit_s`."""
        expires_s = min(self.expires_s, limit_s)
        heartbeat_s = min(self.heartbeat_s, expires_s / 2)
        return PullTimes(expires_s=expires_s, heartbeat_s=heartbeat_s, grace_s=GRACE_S)


def consume_options(
    *,
    max_messages: int,
    max_bytes: int | None,
    threshold: float,
    expires: Duration,
    heartbeat: Duration | None,
    stop_after: int | None,
    group: GroupOptions,
) -> ConsumeOptions:
    """Return checked options of a flow.

    Raises:
        ConfigError: A value is not legal.
    """
    check_int(max_messages, "max_messages", minimum=1, maximum=BATCH_MAX)
    if max_bytes is not None:
        check_int(max_bytes, "max_bytes", minimum=1, maximum=_BYTES_MAX)
    if stop_after is not None:
        check_int(stop_after, "stop_after", minimum=1)
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
    if not is_number or not 0 <= threshold < 1:
        raise ConfigError(f"threshold is {threshold!r}", hint="give a share: 0 <= threshold < 1")
    expires_s = seconds(expires, "expires")
    if expires_s < _EXPIRES_MIN_S:
        raise ConfigError(f"expires is {expires_s:g} s", hint=f"at least {_EXPIRES_MIN_S} s")
    heartbeat_s = min(HEARTBEAT_S, expires_s / 2)
    if heartbeat is not None:
        heartbeat_s = seconds(heartbeat, "heartbeat")
        if not _HEARTBEAT_MIN_S <= heartbeat_s <= expires_s / 2:
            raise ConfigError(
                f"heartbeat is {heartbeat_s:g} s, with expires {expires_s:g} s",
                hint=f"give {_HEARTBEAT_MIN_S} s to half of expires",
            )
    return ConsumeOptions(
        max_messages=max_messages,
        max_bytes=max_bytes or 0,
        threshold=float(threshold),
        expires_s=expires_s,
        heartbeat_s=heartbeat_s,
        stop_after=stop_after or 0,
        group=group,
    )


def seconds(value: Duration, name: str) -> float:
    """Return a duration in seconds; an error names the argument.

    Raises:
        ConfigError: It is none, negative, not finite, or longer than 30 years.
    """
    if isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}", hint="give seconds as a number, or a timedelta")
    try:
        value_s = duration_ns(value) / NS_PER_SECOND
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.message}", hint=error.hint) from None
    if value_s > _SECONDS_MAX:
        raise ConfigError(f"{name} is {value_s:g} s", hint=f"at most {_SECONDS_MAX:g} s")
    return value_s


class PullRequests:
    """The bodies of one flow's pulls.

    Attributes:
        group: The priority group; empty for none.
        is_pinning: True when the server delivers to one reader of the group alone.
        pin_id: The server's id of this reader; empty while it stands by.
        times: How long its pulls wait at the server.
    """

    times: PullTimes

    def __init__(self, options: ConsumeOptions, source: ConsumerSource) -> None:
        self._options = options
        self.group: str = options.group.group
        self.is_pinning: bool = bool(self.group) and source.priority_policy == "pinned_client"
        self.pin_id: str = ""
        # Few forms come again and again; JSON costs more than all else about a pull.
        self._bodies: dict[tuple[int, int], bytes] = {}
        self.limit_expires(source.max_expires_ns)

    def body(self, count: int, max_bytes: int) -> bytes:
        """Return the body of a pull for so many messages and bytes, 0 for any."""
        body = self._bodies.get((count, max_bytes))
        if body is None:
            if len(self._bodies) >= _BODIES_MAX:
                self._bodies.clear()
            body = pull_body(
                count,
                self.times,
                max_bytes=max_bytes,
                group=self._options.group,
                pin_id=self.pin_id,
            )
            self._bodies[count, max_bytes] = body
        return body

    def limit_expires(self, max_expires_ns: int) -> None:
        """Take over how long the consumer lets a pull wait; 0 is no limit."""
        limit_s = max_expires_ns / NS_PER_SECOND or self._options.expires_s
        self.times = self._options.times(limit_s)
        self._bodies.clear()

    def set_pin(self, pin_id: str) -> bool:
        """Note what the server knows this reader by, empty for nothing; True when it is news."""
        if pin_id == self.pin_id:
            return False
        self.pin_id = pin_id
        self._bodies.clear()
        return True


def pin_of(message: DeliveredMessage) -> str:
    """Return the pin that a message carries; empty for none."""
    block = message.header_block
    return Headers(block).get(HeaderName.PIN_ID, "") if block else ""
