"""A server that is upgraded under a connection: what it can do is asked again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import UnsupportedServerError
from natsstream.testing import NatsServer, server_binary
from natsstream.testing.versions import RELEASES
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]


def note_requests(js: JetStream, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the subject of each request of the connection.

    The server counts them too, and once more what is asked again because it was slow.
    """
    client = js._client  # pyright: ignore[reportPrivateUsage] - What is asked is the point.
    request, asked = client.request, list[str]()

    async def noted(subject: str, *arguments: Any, **options: Any) -> Any:
        asked.append(subject)
        return await request(subject, *arguments, **options)

    monkeypatch.setattr(client, "request", noted)
    return asked


@pytest.mark.proves("1a", "Nats-Required-Api-Level (ADR-44)")
async def test_level_is_read_once_a_connection_and_again_after_a_reconnect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = NatsServer(store_dir=tmp_path, binary=server_binary("2.11"))
    with old:
        async with connect(old.url, request_timeout=30, reconnect_timeout=30) as js:
            asked = note_requests(js, monkeypatch)
            for _ in range(3):
                with pytest.raises(UnsupportedServerError):
                    await js.streams.ensure("S", allow_batched=True)
            # Each `ensure` looks for the stream, and only the first one asks for the level.
            assert Counter(asked) == {"$JS.API.STREAM.INFO.S": 3, "$JS.API.INFO": 1}
            port = old.port
            old.stop()

            with NatsServer(store_dir=tmp_path, port=port, binary=server_binary("2.15")):

                async def is_back() -> bool:
                    # Nobody has told the client yet that the old one is gone.
                    info = js._client.server_info  # pyright: ignore[reportPrivateUsage]
                    return js.is_connected and info["version"] == RELEASES["2.15"]

                await eventually_async(is_back)
                stream = await js.streams.ensure("S", allow_batched=True)

                assert stream.cached.config.allow_batched is True
                assert asked.count("$JS.API.INFO") == 2
