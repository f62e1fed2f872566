"""Requests that start a snapshot or a restore of a stream; other subjects carry the chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from natsstream._wire import subjects
from natsstream.api.requests import Api
from natsstream.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class SnapshotStart:
    """The stream of a snapshot, as the server sent it.

    Attributes:
        name: The stream's name.
        messages: Messages in it.
        last_seq: Sequence of its last message.
        bytes: Bytes in it.
        config: Its configuration.
        state: Its state.
    """

    name: str
    messages: int
    last_seq: int
    bytes: int
    config: Mapping[str, object]
    state: Mapping[str, object]


async def start_snapshot(
    api: Api, stream: str, options: Mapping[str, object], *, inbox: str, timeout: float
) -> SnapshotStart:
    """Let the server send a stream to an inbox, chunk by chunk.

    Args:
        api: The connection's API.
        stream: The stream's name.
        options: `no_consumers`, `jsck` and `chunk_size`.
        inbox: The subject that gets the chunks.
        timeout: Seconds in which the server must start.

    Raises:
        ServerError: The server refused.
        TransportError: There was no answer; the chunks may still come.
    """
    # Not a read: a retry would send two snapshots to one subject.
    answer = await api.change(
        subjects.stream_snapshot(stream),
        {**options, "deliver_subject": inbox},
        what=f"backup of stream {stream}",
        timeout=timeout,
    )
    config, state = answer.part("config"), answer.part("state")
    return SnapshotStart(
        config.text("name"),
        state.count("messages", None),
        state.count("last_seq", None),
        state.count("bytes"),
        config.raw,
        state.raw,
    )


async def start_restore(
    api: Api, config: Mapping[str, object], state: Mapping[str, object], *, what: str
) -> str:
    """Start a restore, and return the subject for the chunks.

    Raises:
        ServerError: The server refused.
        ProtocolError: The answer names no subject.
        TransportError: There was no answer.
    """
    subject = subjects.stream_restore(str(config["name"]))
    answer = await api.change(subject, {"config": config, "state": state}, what=what)
    deliver = answer.text("deliver_subject", "")
    if not deliver:
        raise ProtocolError(f"{what}: the server named no subject for the chunks")
    return deliver
