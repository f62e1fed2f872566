"""Whether a create has made what it answers with: the server's times decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from natsstream import StreamConfig, StreamInfo
from natsstream.api.cluster_info import ClusterInfo
from natsstream.api.creations import made

NS_PER_MS = 1_000_000
ALONE = ClusterInfo("", "n0", 0, "", ())
CLUSTER = ClusterInfo("c", "n0", 0, "", ())
ANSWER: dict[str, Any] = {"config": {"name": "S"}, "state": {}, "created": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("age_ms", "asked_s", "cluster", "action"),
    [
        (5, 0.005, None, "created"),
        (5, 0.005, ALONE, "created"),
        (6, 0.005, ALONE, "unchanged"),
        (900, 0.005, CLUSTER, "created"),  # Two servers, two clocks.
        (-900, 0.005, CLUSTER, "created"),
        (1_100, 0.005, CLUSTER, "unchanged"),
        (1_100, 2.0, ALONE, "created"),  # It was asked for again while it waited.
    ],
)
def test_what_is_older_than_the_request_was_not_made_by_it(
    age_ms: int, asked_s: float, cluster: ClusterInfo | None, action: str
) -> None:
    info = StreamInfo.from_json(ANSWER)
    info = replace(info, cluster=cluster, time_ns=info.created_ns + age_ms * NS_PER_MS)
    change = made(StreamConfig(name="S", max_msgs=5), info, asked_s)
    assert (change.action, len(change.fields)) == (action, int(action == "created"))


def test_servers_that_do_not_say_the_time_are_believed_to_have_made_it() -> None:
    info = StreamInfo.from_json(ANSWER)
    assert not info.time_ns
    assert made(StreamConfig(name="S"), info, 0.005).action == "created"
