"""Wrong arguments of test servers: each is refused with its name and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream.errors import ConfigError, UsageError
from natsstream.testing import FaultProxy, Freezer, NatsCluster, NatsServer, server_binary


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        (NatsServer, {"max_payload_bytes": "5MB"}, "max_payload_bytes is '5MB' .* str"),
        (NatsServer, {"max_payload_bytes": 0}, "max_payload_bytes is 0"),
        (NatsServer, {"port": "4222"}, "port is '4222' .* str"),
        (NatsServer, {"config": {"debug": True}}, "config is {'debug': True} .* dict"),
        (NatsCluster, {"size": "3"}, "size is '3' .* str"),
        (server_binary, {"version": 2.12}, "version is 2.12 .* float"),
        (FaultProxy, {"target_port": "x"}, "port is 'x' .* str"),
        (
            Freezer,
            {"process": None, "paused_s": "1", "running_s": 1, "count": 1},
            "paused_s is '1' .* str",
        ),
        (
            Freezer,
            {"process": None, "paused_s": 1, "running_s": 1, "count": "1"},
            "count is '1' .* str",
        ),
    ],
)
def test_argument_that_cannot_work_is_named(kind: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        kind(**given)

    assert caught.value.hint


def test_node_that_the_cluster_lacks_is_answered_with_those_it_has() -> None:
    cluster = NatsCluster()
    with pytest.raises(UsageError, match="no node 'n9'") as caught:
        cluster.isolate("n9")
    assert caught.value.hint == "one of n1, n2, n3"
    number: Any = 1
    with pytest.raises(UsageError, match="1 is not a node of this cluster"):
        cluster.isolate(number)


def test_node_may_be_given_by_its_name() -> None:
    cluster = NatsCluster()

    assert cluster.link("n1", "n3") is cluster.link(*cluster.servers[::2])


def test_timeout_of_a_wait_is_answered_with_its_name_here() -> None:
    options: dict[str, Any] = {"timeout": 3}
    with pytest.raises(TypeError) as caught:
        NatsCluster().wait_for_leader("ORDERS", **options)

    assert str(caught.value) == (
        "cluster.wait_for_leader() has no argument 'timeout'; in natsstream: deadline_s="
    )
