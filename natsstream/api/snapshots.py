"""Requests that begin a snapshot of a stream, or its restore; the parts go over other subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from natsstream._wire import subjects
from natsstream.api.requests import Api
from natsstream.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class SnapshotStart:
    """The stream that a snapshot is of, as the server sent it.

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
    """Let the server send a stream to an inbox, part by part.

    Args:
        api: The connection's API.
        stream: The stream's name.
        options: `no_consumers`, `jsck` and `chunk_size`.
        inbox: Where the parts go.
        timeout: Seconds in which the server must begin.

    Raises:
        ServerError: The server refused.
        TransportError: There was no answer; the parts may come.
    """
    # Not as a read: a retry would send two snapshots to one subject.
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
    """Announce a restore, and return the subject that takes the parts.

    Raises:
        ServerError: The server refused.
        ProtocolError: The answer names no subject.
        TransportError: There was no answer.
    """
    subject = subjects.stream_restore(str(config["name"]))
    answer = await api.change(subject, {"config": config, "state": state}, what=what)
    deliver = answer.text("deliver_subject", "")
    if not deliver:
        raise ProtocolError(f"{what}: the server gave no subject for the parts")
    return deliver
