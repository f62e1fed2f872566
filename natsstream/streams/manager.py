"""Makes, finds and deletes streams: `js.streams`.

Law: an update sends back every field that the server has, also those that we do not know, with
only the caller's changes in them.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from natsstream._wire import api as subjects
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream.errors import ConfigError, ServerError, StreamNotFoundError
from natsstream.streams.api import Api
from natsstream.streams.config import StreamConfig, without_levels
from natsstream.streams.features import (
    STREAM_FIELDS,
    check_taken,
    unknown_field,
    used_features,
    without_unsaid,
)
from natsstream.streams.info import StreamInfo
from natsstream.streams.names import check_filter, check_stream_name
from natsstream.streams.stream import Stream


class StreamManager:
    """The streams of the account."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def create(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Create a stream.

        Args:
            config: A configuration, or a name with `StreamConfig`'s fields as keywords.
            fields: Fields of `StreamConfig`.

        Raises:
            StreamExistsError: A stream of this name has another configuration.
            SubjectOverlapError: Another stream captures some of the subjects.
            InvalidConfigError: The server refuses a field, or took it as something else.
            UnsupportedServerError: The server lacks a field. Where this was known nothing was
                sent; a server behind the connected one may have made the stream without the field,
                and then the message says so and the stream stays.
        """
        wanted = _config(config, fields)
        body = without_unsaid(STREAM_FIELDS, wanted.to_json())
        if wanted.metadata is not None:
            # Where the configuration comes from another server: this one has its own level.
            body["metadata"] = without_levels(wanted.metadata)
        await self._api.require(*used_features(STREAM_FIELDS, body))
        return await self._send(subjects.stream_create(wanted.name), body, given=body)

    async def update(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Change the fields that are given and leave all others as the server has them.

        Raises:
            StreamNotFoundError: It does not exist.
            InvalidConfigError: The server refuses a change, or took it as something else.
            UnsupportedServerError: The server lacks a field; see `create`.
        """
        wanted = _config(config, fields)
        stream = await self.get(wanted.name)
        return await self._overlay(stream, wanted)

    async def ensure(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Return the stream with at least this configuration: create, update or leave it.

        Raises:
            SubjectOverlapError: Another stream captures some of the subjects.
            InvalidConfigError: The server refuses a field or a change, or took it as something
                else.
            UnsupportedServerError: The server lacks a field; see `create`.
        """
        wanted = _config(config, fields)
        try:
            stream = await self.get(wanted.name)
        except StreamNotFoundError:
            return await self.create(wanted)
        return await self._overlay(stream, wanted)

    async def get(self, name: str) -> Stream:
        """Return a stream that exists.

        Raises:
            StreamNameError: No server would take the name.
            StreamNotFoundError: It does not exist.
        """
        check_stream_name(name)
        answer = await self._api.read(subjects.stream_info(name), None, what=f"stream {name}")
        return Stream(self._api, StreamInfo.from_json(answer))

    async def find(self, subject: str) -> str | None:
        """Return the name of the stream that captures a subject, or None."""
        async for name in self.names(subject=subject):
            return name
        return None

    async def delete(self, name: str) -> None:
        """Delete a stream with all of its messages.

        Raises:
            StreamNotFoundError: It does not exist.
        """
        check_stream_name(name)
        await self._api.change(subjects.stream_delete(name), None, what=f"stream {name}")

    async def names(self, *, subject: str | None = None) -> AsyncIterator[str]:
        """Yield the names of all streams, or of those that capture a subject or filter."""
        async for page in self._pages(subjects.STREAM_NAMES, subject):
            for name in cast("list[str]", page):
                yield name

    async def list(self, *, subject: str | None = None) -> AsyncIterator[StreamInfo]:
        """Yield the infos of all streams, or of those that capture a subject or filter."""
        async for page in self._pages(subjects.STREAM_LIST, subject):
            for body in cast("list[dict[str, object]]", page):
                yield StreamInfo.from_json(body)

    async def _pages(self, api_subject: str, subject: str | None) -> AsyncIterator[object]:
        offset = 0
        while True:
            body: dict[str, object] = {"offset": offset}
            if subject is not None:
                body["subject"] = check_filter(subject)
            answer = await self._api.read(api_subject, body, what="streams of the account")
            page = cast("list[object]", answer.get("streams") or [])
            yield page
            offset += len(page)
            if not page or offset >= cast("int", answer.get("total", 0)):
                return

    async def _overlay(self, stream: Stream, wanted: StreamConfig) -> Stream:
        held = cast("dict[str, object]", stream.cached.raw["config"])
        changes = wanted.changes_from(held)
        if not changes:
            return stream
        if "metadata" in changes:
            # The server's own keys stay; the caller's replace the caller's.
            own = cast("dict[str, str]", held.get("metadata") or {})
            kept = {key: value for key, value in own.items() if key.startswith("_nats.")}
            changes["metadata"] = {**kept, **cast("dict[str, str]", changes["metadata"])}
        await self._api.require(*used_features(STREAM_FIELDS, changes))
        subject = subjects.stream_update(wanted.name)
        return await self._send(subject, {**held, **changes}, given=changes)

    async def _send(
        self, subject: str, body: dict[str, object], *, given: Mapping[str, object]
    ) -> Stream:
        """Send a configuration, and compare it with what the server says that it took."""
        what = f"stream {body['name']}"
        try:
            answer = await self._api.change(subject, body, what=what)
        except ServerError as error:
            if find_error_code(error.err_code) is not ErrorCode.INVALID_JSON:
                raise
            raise unknown_field(error, what) from error
        info = StreamInfo.from_json(answer)
        taken = cast("dict[str, object]", answer["config"])
        check_taken(what, STREAM_FIELDS, given=given, sent=body, taken=taken)
        return Stream(self._api, info)

    def __repr__(self) -> str:
        return f"<StreamManager {self._api.client.url}>"


def _config(config: StreamConfig | str, fields: dict[str, Any]) -> StreamConfig:
    if isinstance(config, StreamConfig):
        if fields:
            raise ConfigError("give a StreamConfig or keywords, not both")
        return config
    unknown = sorted(set(fields) - set(StreamConfig.__dataclass_fields__))
    if unknown:
        close = difflib.get_close_matches(unknown[0], StreamConfig.__dataclass_fields__, n=1)
        ask = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"no stream field {unknown[0]!r}",
            hint=f"{ask}see StreamConfig; a field of a newer server goes into extra={{...}}",
        )
    return StreamConfig(name=config, **fields)
