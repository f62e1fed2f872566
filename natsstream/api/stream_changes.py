"""Creates, updates and plans streams by their configuration.

Law: an update sends back every field that the server has, known here or not, with only the caller's
changes. The configuration in the answer is compared with the one that was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

from natsstream._wire import subjects
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream.api.change_plan import (
    add_differences,
    changed,
    created,
    creation,
    differences,
    overlay,
)
from natsstream.api.creations import made
from natsstream.api.diff import ConfigChange
from natsstream.api.features import STREAM_FIELDS, check_taken, used_features
from natsstream.api.requests import Api, ChangeProbe, send_config
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import find_streams, stream_info
from natsstream.api.stream_rules import STREAM_RULES
from natsstream.errors import (
    ConfigError,
    InvalidConfigError,
    NatsStreamError,
    ServerError,
    StreamExistsError,
    StreamNotFoundError,
    SubjectOverlapError,
    UnsupportedServerError,
)
from natsstream.fields import Fields

# A single server answers a deletion before the files are gone, and until then refuses a new stream
# of that name with 10049; 10 ms were enough in 160 of 160 rounds.
_FILES_GONE_WAITS_S = (0.02, 0.05, 0.1, 0.2)
# The other stream of an overlap is only named if it is found at once.
_OVERLAP_LOOK_S = 1.0


async def create_stream(api: Api, config: StreamConfig) -> tuple[StreamInfo, ConfigChange]:
    """Create a stream, or return the existing one with exactly this configuration.

    Returns:
        The stream, and the change. Of several who create it at the same time, each may be told that
        it was the one: servers do not say.

    Raises:
        StreamExistsError: A stream of this name has another configuration; `differences` says in
            which fields.
        SubjectOverlapError: Another stream captures some of the subjects.
        InvalidConfigError: The server refused a field, or stored another value.
        UnsupportedServerError: The server lacks a field. If this was known, nothing was sent. A
            server behind the connected one may have created the stream without the field; then
            the message says so and the stream stays.
        TransportError: There was no answer; the stream may exist.

    Cost: one round trip; a cluster also holds an election. Some more while the server still removes
    the files of a deleted stream of that name.
    """
    body = creation(STREAM_RULES, config)
    _check_captures(config, body)
    await api.require(*used_features(STREAM_FIELDS, body))
    now = asyncio.get_running_loop().time
    began = now()
    info = await _create_insisting(api, config, body)
    return info, made(config, info, now() - began)


async def _create_insisting(api: Api, config: StreamConfig, body: dict[str, object]) -> StreamInfo:
    for wait_s in _FILES_GONE_WAITS_S:
        try:
            return await _create(api, config, body)
        except ServerError as error:
            if find_error_code(error.err_code) is not ErrorCode.STREAM_CREATE:
                raise
        await asyncio.sleep(wait_s)
    return await _create(api, config, body)


async def _create(api: Api, config: StreamConfig, body: dict[str, object]) -> StreamInfo:
    try:
        return await _send(api, subjects.stream_create(config.name), body, given=body, held=None)
    except StreamExistsError as error:
        try:
            held = await stream_info(api, config.name)
        except NatsStreamError:  # It is gone by now, or its info is not permitted.
            raise error from None
        different = differences(STREAM_RULES, config, _config_of(held))
        if not different:
            return held
        add_differences(error, different)
        raise


async def update_stream(api: Api, config: StreamConfig) -> tuple[StreamInfo, ConfigChange]:
    """Change the given fields and leave all others as the server has them.

    Returns:
        The stream, and the change; if nothing differs, nothing is sent.

    Raises:
        StreamNotFoundError: The stream does not exist.
        InvalidConfigError: The server refused a change, or stored another value.
        UnsupportedServerError: The server lacks a field; see `create_stream`.
        TransportError: There was no answer, and no change was seen; it may still happen.

    Cost: one round trip if nothing differs, else two. A cluster that elects a leader may change it
    without an answer, which is seen after a second.
    """
    return await _overlay(api, await stream_info(api, config.name), config)


async def ensure_stream(api: Api, config: StreamConfig) -> tuple[StreamInfo, ConfigChange]:
    """Create a stream, or change the fields that differ, or leave it as it is.

    Returns:
        The stream, and the change.

    Raises:
        SubjectOverlapError: Another stream captures some of the subjects.
        InvalidConfigError: The server refused a field or a change, or stored another value.
        UnsupportedServerError: The server lacks a field; see `create_stream`.
        TransportError: There was no answer; the change may be made.

    Cost: one round trip if nothing differs, else two.
    """
    try:
        held = await stream_info(api, config.name)
    except StreamNotFoundError:
        try:
            return (await create_stream(api, config))[0], created(config)
        except StreamExistsError:  # Another client was faster, with another configuration.
            held = await stream_info(api, config.name)
    return await _overlay(api, held, config)


async def plan_stream(api: Api, config: StreamConfig) -> ConfigChange:
    """Return the change that `ensure_stream` would make, without making it.

    Raises:
        TransportError: The server did not answer in time.

    Cost: one round trip.
    """
    try:
        held = await stream_info(api, config.name)
    except StreamNotFoundError:
        return created(config)
    return changed(STREAM_RULES, config, _config_of(held))


async def replace_config(api: Api, held: StreamInfo, body: Mapping[str, object]) -> StreamInfo:
    """Replace the whole configuration of a stream, and return its info.

    Args:
        api: The connection's API.
        held: The current info of the stream.
        body: All fields in JSON; a field that is missing is reset.

    Raises:
        NatsStreamError: See `update_stream`.
    """
    await api.require(*used_features(STREAM_FIELDS, body))
    subject = subjects.stream_update(held.name)
    return await _send(api, subject, dict(body), given=body, held=_config_of(held))


async def _overlay(
    api: Api, held: StreamInfo, wanted: StreamConfig
) -> tuple[StreamInfo, ConfigChange]:
    config = _config_of(held)
    change = changed(STREAM_RULES, wanted, config)
    if not change:
        return held, change
    body, given = overlay(wanted, config, change)
    _check_captures(wanted, body)
    await api.require(*used_features(STREAM_FIELDS, given))
    try:
        subject = subjects.stream_update(held.name)
        return await _send(api, subject, body, given=given, held=config), change
    except InvalidConfigError as error:
        mirror = next((each for each in change.refused if each.name == "mirror"), None)
        if mirror is not None:  # Servers may complain of the subjects instead.
            error.hint = f"{mirror.refusal}: create a new one with mirror="
        elif change.refused and not error.hint:
            names = ", ".join(each.name for each in change.refused)
            error.hint = f"{names}: {change.refused[0].refusal}; streams.copy() makes a new one"
        raise


def _check_captures(wanted: StreamConfig, body: Mapping[str, object]) -> None:
    """Refuse an empty list of subjects, where servers would put the stream's own name into it.

    Raises:
        ConfigError: The list is empty, and no mirror or source fills the stream.
    """
    is_empty = wanted.subjects is not None and not wanted.subjects
    if is_empty and not body.get("mirror") and not body.get("sources"):
        raise ConfigError(
            f"subjects of stream {wanted.name} are empty",
            hint="leave subjects out: a stream keeps those that it has, and a new one captures its "
            "name; with mirror= or sources= there may be none",
        )


async def _send(
    api: Api,
    subject: str,
    body: dict[str, object],
    *,
    given: Mapping[str, object],
    held: Mapping[str, object] | None,
) -> StreamInfo:
    """Send a configuration, and compare it with the one in the answer.

    Args:
        api: The connection's API.
        subject: The API subject of the create or the update.
        body: The configuration, whole.
        given: The fields in it that the caller gave.
        held: The configuration before; None if the stream did not exist.
    """
    name = cast("str", body["name"])
    what = f"stream {name}"

    def check(config: Mapping[str, object]) -> None:
        check_taken(what, STREAM_FIELDS, given=given, sent=body, taken=config)

    def is_done(found: Fields | None) -> bool:
        config = None if found is None else found.part("config").raw
        if config is None or config == held:
            return False
        with suppress(UnsupportedServerError, InvalidConfigError):
            check(config)
            return True
        return False

    look = ChangeProbe(subjects.stream_info(name), is_done)
    try:
        answer = await send_config(api, subject, body, what=what, look=look)
    except SubjectOverlapError as error:
        await _name_other(api, error, name, cast("Sequence[str]", body.get("subjects") or ()))
        raise
    info = StreamInfo.from_json(answer)
    check(_config_of(info))
    return info


async def _name_other(
    api: Api, error: SubjectOverlapError, name: str, wanted: Sequence[str]
) -> None:
    """Let an error name the stream that captures one of the subjects, if it is found quickly."""
    with suppress(NatsStreamError, TimeoutError):
        async with asyncio.timeout(_OVERLAP_LOOK_S):
            for subject in wanted:
                others = [each for each in await find_streams(api, subject) if each != name]
                if others:
                    error.stream, error.subject = others[0], subject
                    error.detail = f"stream {others[0]} captures {subject} or a part of it"
                    error.hint = f"narrow the subjects of {name} or of {others[0]}"
                    return


def _config_of(info: StreamInfo) -> dict[str, object]:
    return cast("dict[str, object]", info.raw["config"])
