"""The bench of object stores runs, with sizes that say nothing about speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.benchmarks.objects import objects

if TYPE_CHECKING:
    from natsstream.testing import NatsServer


@pytest.mark.needs_node
def test_every_client_puts_and_gets(fresh_server: NatsServer) -> None:
    """A subject that sees less than there is fails by itself, and so does the bench."""
    told: list[str] = []
    lines = objects(fresh_server.url, 1, told.append, 1)
    assert [line.figure.partition(" (")[0] for line in lines] == [
        "ours put / nats-py put",
        "ours put / nats.js put",
        "ours put / socket put",
        "ours get / nats-py get",
        "ours get / nats.js get",
    ]
    assert len(told) == 7
    assert all(line.median > 0 for line in lines)
