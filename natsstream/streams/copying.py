"""Copies a stream: its configuration, and on request its messages.

The servers copy the messages, not this process. The copy begins as a mirror, which keeps sequences,
times, subjects and headers, and is then promoted to a stream of its own.

Law: a failed or cancelled copy leaves no partial stream, and never removes a message of the origin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from natsstream._wire.error_codes import ErrorCode
from natsstream.api.features import Feature
from natsstream.api.metadata import kept_metadata, user_metadata
from natsstream.api.requests import Api
from natsstream.api.stream_changes import create_stream, replace_config
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import delete_stream, find_streams, newest_sequence, stream_info
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    RequestTimeoutError,
    StreamExistsError,
    StreamNotFoundError,
    SubjectOverlapError,
)

PROMOTION = Feature("making a stream of a mirror", (2, 12))
# Up to 2.12, a mirror of a work queue removes its messages.
WORK_QUEUE_MIRROR = Feature("copying a work queue without emptying it", (2, 14))

_POLL_S = 0.05
# Fields that a mirror cannot have, or that must not act on copied messages.
_NOT_IN_MIRRORS = {
    "duplicate_window",
    "subjects",
    "sources",
    "first_seq",
    "subject_transform",
    "republish",
    "allow_atomic",
    "allow_batched",
    "allow_msg_schedules",
    "subject_delete_marker_ttl",
    "deny_delete",
    "deny_purge",
    "sealed",
}


def copied_config(origin: Mapping[str, object], wanted: StreamConfig) -> dict[str, object]:
    """Return the configuration of a copy; pure.

    Args:
        origin: The origin's configuration as the server sent it.
        wanted: The copy's name and its changed fields.

    Raises:
        ConfigError: The copy would have the subjects of its origin.
    """
    changes = {name: None if value == {} else value for name, value in wanted.to_json().items()}
    own = user_metadata(cast("Mapping[str, str] | None", origin.get("metadata")))
    given = cast("Mapping[str, str] | None", changes.pop("metadata", own))
    body = {**origin, **changes, "metadata": {**kept_metadata(own), **(given or {})}}
    body = {name: value for name, value in body.items() if value is not None}
    # A new stream cannot be sealed.
    if wanted.sealed is None:
        body.pop("sealed", None)
    if origin.get("subjects") and wanted.subjects is None and not body.get("mirror"):
        raise ConfigError(
            f"a copy of stream {origin.get('name')} cannot have its subjects: each belongs to "
            "one stream",
            hint="give others: subjects=[...]",
        )
    return body


def check_messages(origin: StreamInfo, body: Mapping[str, object]) -> None:
    """Refuse a copy that could not keep the messages as they are; pure.

    Raises:
        ConfigError: The origin or the copy cannot be copied with its messages.
    """
    name = origin.name
    if body.get("mirror"):
        raise ConfigError(
            f"a copy of mirror {name} gets its messages from the same origin by itself",
            hint="leave out messages=True, or copy the stream that it mirrors",
        )
    if body.get("sources"):
        raise ConfigError(
            f"stream {name} has sources, which would be copied a second time",
            hint="give sources=[] for a copy without them",
        )
    if body.get("allow_msg_counter"):
        raise ConfigError(
            f"the counters of stream {name} cannot be copied: servers do not mirror them",
            hint="leave out messages=True, or back up the stream and restore it by another name",
        )
    if body.get("retention") == "interest":
        raise ConfigError(
            f"the copy of stream {name} would drop every message: it has no consumers yet",
            hint="give retention='limits', and change it when its consumers exist",
        )


async def copy_stream(
    api: Api, source: str, wanted: StreamConfig, *, messages: bool, timeout: float
) -> StreamInfo:
    """Create a copy of a stream; see `js.streams.copy`."""
    origin = await stream_info(api, source)
    body = copied_config(cast("Mapping[str, object]", origin.raw["config"]), wanted)
    if not messages:
        return (await create_stream(api, StreamConfig.from_json(body)))[0]
    check_messages(origin, body)
    await _check_free(api, body)
    needed = [PROMOTION]
    if origin.config.retention == "workqueue":
        needed.append(WORK_QUEUE_MIRROR)
    await api.require(*needed)
    newest = await newest_sequence(api, source)
    if newest is None:
        if origin.state.last_seq:
            body["first_seq"] = origin.state.last_seq + 1
        return (await create_stream(api, StreamConfig.from_json(body)))[0]
    first = {name: value for name, value in body.items() if name not in _NOT_IN_MIRRORS}
    first["mirror"] = {"name": source}
    making = asyncio.ensure_future(create_stream(api, StreamConfig.from_json(first)))
    try:
        await _end_of(making)
        mirror, _ = making.result()
        mirror = await _filled(api, mirror, newest, timeout)
        held = cast("Mapping[str, object]", mirror.raw["config"])
        servers = {
            key: value
            for key, value in cast("Mapping[str, str]", held.get("metadata") or {}).items()
            if key.startswith("_nats.")
        }
        own = cast("Mapping[str, str]", body.get("metadata") or {})
        whole = {**body, "metadata": {**servers, **own}}
        return await replace_config(api, mirror, whole)
    except BaseException:
        if making.exception() is None:
            await _end_of(asyncio.ensure_future(_undo(api, making.result()[0])))
        raise


async def _check_free(api: Api, body: Mapping[str, object]) -> None:
    """Refuse a name or subjects that another stream has, before anything is copied.

    Otherwise a mirror that exists already would pass for the new one.
    """
    name = cast("str", body["name"])
    with suppress(StreamNotFoundError):
        await stream_info(api, name)
        raise StreamExistsError(
            f"stream {name} exists already",
            code=400,
            err_code=ErrorCode.STREAM_NAME_EXIST.value,
            hint="copy to another name, or delete it",
        )
    for subject in cast("Sequence[str]", body.get("subjects") or ()):
        taken = await find_streams(api, subject)
        if taken:
            raise SubjectOverlapError(
                f"subject {subject} of copy {name} belongs to stream {taken[0]}",
                code=400,
                err_code=ErrorCode.STREAM_SUBJECT_OVERLAP.value,
                hint="give the copy other subjects: subjects=[...]",
            )


async def _filled(api: Api, mirror: StreamInfo, newest: int, timeout: float) -> StreamInfo:
    """Return the mirror when it holds all messages up to a sequence."""
    name, origin = mirror.name, mirror.config.mirror
    try:
        async with asyncio.timeout(timeout):
            while True:
                mirror = await stream_info(api, name)
                if mirror.state.last_seq >= newest:
                    return mirror
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        said = mirror.mirror.error if mirror.mirror else ""
        raise RequestTimeoutError(
            f"copy {name} of stream {origin.name if origin else ''} reached sequence "
            f"{mirror.state.last_seq} of {newest} within {timeout:g} s; the copy was deleted",
            detail=said,
            hint="give a longer timeout",
            retryable=True,
        ) from None


async def _undo(api: Api, made: StreamInfo) -> None:
    """Delete the copy, unless another client has since created a stream of this name."""
    with suppress(NatsStreamError):
        if (await stream_info(api, made.name)).created_ns == made.created_ns:
            await delete_stream(api, made.name)


async def _end_of(task: asyncio.Future[Any]) -> None:
    """Wait for the answer to a request, even if this call is cancelled.

    The request has a deadline, so the cancellation follows soon. Without the answer, a partial copy
    could stay behind.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
