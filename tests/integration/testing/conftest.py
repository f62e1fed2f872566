"""A fault proxy before a server of plain sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.testing import FaultProxy
from tests.support.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    for end in server.open:
        end.close()


@pytest.fixture
def front(upstream: Upstream) -> Iterator[FaultProxy]:
    with FaultProxy(upstream.port) as running:
        yield running
