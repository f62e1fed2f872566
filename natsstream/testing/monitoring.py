"""The state of a cluster, from the monitoring pages of its servers."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# A paused server accepts and says nothing.
PAGE_WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Health:
    """One server's view of itself and the others.

    Attributes:
        peers: Names of the servers that it has a route to.
        meta_leader: Name of the meta group's leader, empty when it knows none.
        meta_size: Number of servers in the meta group.
        current_peers: Names of the other members that are online and current; told by the leader.
        is_healthy: Whether `/healthz` says that JetStream is ready with all its streams.
    """

    peers: frozenset[str]
    meta_leader: str
    meta_size: int
    current_peers: frozenset[str]
    is_healthy: bool


def fetch_page(monitor_url: str, path: str, **query: str) -> tuple[int, dict[str, object]] | None:
    """Return status and JSON of a monitoring page; None when the server does not answer.

    Cost: at most 2 s for each step of the request.
    """
    address = monitor_url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=PAGE_WAIT_S)
    try:
        connection.request("GET", f"{path}?{urlencode(query)}")
        answer = connection.getresponse()
        return answer.status, cast("dict[str, object]", json.loads(answer.read()))
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def fetch_health(monitor_url: str) -> Health | None:
    """Return what a server tells about its cluster; None when it does not answer."""
    routes = fetch_page(monitor_url, "/routez")
    jetstream = fetch_page(monitor_url, "/jsz")
    if routes is None or jetstream is None:
        return None
    meta = _dict_of(jetstream[1], "meta_cluster")
    # Asked last, since each no is a line in the server's log.
    health = fetch_page(monitor_url, "/healthz") if meta.get("leader") else None
    return Health(
        peers=frozenset(str(route.get("remote_name")) for route in _dicts_of(routes[1], "routes")),
        meta_leader=str(meta.get("leader", "")),
        meta_size=cast("int", meta.get("cluster_size", 0)),
        current_peers=frozenset(
            str(peer.get("name"))
            for peer in _dicts_of(meta, "replicas")
            if peer.get("current") and not peer.get("offline")
        ),
        is_healthy=health is not None and health[0] == http.client.OK,
    )


def fetch_meta_leader(monitor_url: str) -> str | None:
    """Return whom a server takes for the leader of the meta group; None when it knows none."""
    page = fetch_page(monitor_url, "/jsz")
    return str(_dict_of(page[1], "meta_cluster").get("leader", "")) or None if page else None


def fetch_stream_leader(monitor_url: str, stream: str, account: str) -> tuple[str, int] | None:
    """Return whom a server takes for the leader of a stream, and of how many replicas.

    None when it does not answer, has no replica of the stream, or knows no leader.
    """
    page = fetch_page(monitor_url, "/jsz", acc=account, streams="true")
    if page is None:
        return None
    for details in _dicts_of(page[1], "account_details"):
        for found in _dicts_of(details, "stream_detail"):
            if found.get("name") == stream:
                cluster = _dict_of(found, "cluster")
                leader = str(cluster.get("leader", ""))
                return (leader, 1 + len(_dicts_of(cluster, "replicas"))) if leader else None
    return None


def choose_leader(opinions: Iterable[str], n_members: int) -> str | None:
    """Return the name that more than half of all members give, or None.

    A leader that is cut off takes itself for the leader until it notices, up to 20 s; a majority
    is never of its opinion once the others have elected another.
    """
    counted = Counter(opinion for opinion in opinions if opinion).most_common(1)
    if counted and counted[0][1] * 2 > n_members:
        return counted[0][0]
    return None


def find_what_is_missing(healths: Mapping[str, Health | None], names: frozenset[str]) -> str:
    """Return the first thing that keeps these servers from being a cluster; empty when none does.

    Args:
        healths: The view of each server, by its name; None for one that does not answer.
        names: The servers that have to work together.
    """
    for name, health in healths.items():
        if health is None:
            return f"{name} does not answer"
        if not names - {name} <= health.peers:
            return f"{name} has no route to {', '.join(sorted(names - {name} - health.peers))}"
        if not health.meta_leader:
            return f"{name} knows no meta leader"
        if not health.is_healthy:
            return f"{name} is not healthy"
    leaders = {health.meta_leader for health in healths.values() if health is not None}
    if len(leaders) != 1:
        return f"several are taken for the meta leader: {', '.join(sorted(leaders))}"
    leader = leaders.pop()
    leading = healths.get(leader)
    if leading is None:
        return f"the meta leader is {leader}, which is down"
    if not names - {leader} <= leading.current_peers or leading.meta_size < len(names):
        behind = names - {leader} - leading.current_peers
        return f"not current in the meta group: {', '.join(sorted(behind))}"
    return ""


def find_forgotten(healths: Mapping[str, Health | None]) -> set[str]:
    """Return the servers that are not in the meta group, which its leader takes for complete."""
    for name, health in healths.items():
        if health is not None and health.meta_leader == name and health.meta_size < len(healths):
            return set(healths) - {name} - health.current_peers
    return set()


def _dict_of(page: Mapping[str, object], field: str) -> dict[str, object]:
    value = page.get(field)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _dicts_of(page: Mapping[str, object], field: str) -> list[dict[str, object]]:
    value = page.get(field)
    return cast("list[dict[str, object]]", value) if isinstance(value, list) else []
