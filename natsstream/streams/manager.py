"""Creates, finds and deletes streams: `js.streams`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Literal, Unpack

from natsstream.api.change_plan import created
from natsstream.api.config_fields import StreamFields
from natsstream.api.diff import ConfigChange
from natsstream.api.listing import Listing
from natsstream.api.requests import Api
from natsstream.api.settings.keywords import shows_fields
from natsstream.api.stream_changes import create_stream, ensure_stream, plan_stream, update_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import (
    checked_subject,
    delete_stream,
    stream_info,
    stream_infos,
    stream_names,
)
from natsstream.api.unmatched import warn_half_wildcards
from natsstream.arguments import check_bool, check_int, check_seconds, check_text
from natsstream.errors import ConfigError, StreamNameError
from natsstream.foreign_names import answers_names
from natsstream.streams.copying import copy_stream
from natsstream.streams.nearest import VIEWS, hint_at_nearest
from natsstream.streams.snapshots.progress import RestoreProgress
from natsstream.streams.snapshots.restore import restore_backup
from natsstream.streams.stream import Stream
from natsstream.streams.templates.naming import naming_of
from natsstream.streams.templates.templates import MAX_STREAMS, StreamTemplate, Templates

COPY_TIMEOUT_S = 60.0


@answers_names("js.streams")
class StreamManager:
    """The streams of the account.

    Every call that asks the server raises `TransportError` when no answer comes in time.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._templates: Templates | None = None

    @shows_fields(StreamFields)
    async def create(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Stream:
        """Create a stream; an existing one is not changed.

        Args:
            config: A configuration, or a name with `StreamConfig`'s fields as keywords.
            fields: Fields of `StreamConfig`.

        Returns:
            The stream; also an existing one with exactly this configuration, whose `change` says
            "unchanged". Of several who create it at about the same time each may be told "created".

        Raises:
            StreamExistsError: A stream of this name has another configuration.
            SubjectOverlapError: Another stream captures some of the subjects.
            InvalidConfigError: The server refuses a field, or stored another value for it.
            UnsupportedServerError: The server lacks a field; nothing was sent. Or another server of
                the cluster created the stream without the field; the stream stays, and the message
                says so.
        """
        wanted = _wanted(config, fields)
        return Stream(self._api, *await create_stream(self._api, wanted))

    @shows_fields(StreamFields)
    async def update(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Stream:
        """Change the fields that are given and leave all others as the server has them.

        The stream's `change` lists the changed fields.

        Raises:
            StreamNotFoundError: The stream does not exist.
            InvalidConfigError: The server refuses a change, or stored another value.
            UnsupportedServerError: The server lacks a field; see `create`.
        """
        wanted = _wanted(config, fields)
        async with self._hint(wanted.name):
            return Stream(self._api, *await update_stream(self._api, wanted))

    @shows_fields(StreamFields)
    async def ensure(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Stream:
        """Return the stream with at least this configuration: create, update or leave it.

        The stream's `change` says which, and lists the fields; `diff` shows them in advance. A
        lower limit removes messages at once, and `subjects` replace those that the stream has.

        Raises:
            SubjectOverlapError: Another stream captures some of the subjects.
            InvalidConfigError: The server refuses a field or a change, or stored another value.
            UnsupportedServerError: The server lacks a field; see `create`.
        """
        return Stream(self._api, *await ensure_stream(self._api, _wanted(config, fields)))

    @shows_fields(StreamFields)
    async def diff(
        self, config: StreamConfig | str, **fields: Unpack[StreamFields]
    ) -> ConfigChange:
        """Return the changes that `ensure` would make, without making them.

        Returns:
            Each field that differs, with the server's value, the wanted value and, if known, why
            servers refuse the change. `print` shows a table.

        Cost: one round trip.
        """
        return await plan_stream(self._api, StreamConfig.from_call(config, fields))

    async def get(self, name: str) -> Stream:
        """Return a stream that exists.

        Raises:
            StreamNameError: The name is illegal.
            StreamNotFoundError: The stream does not exist; the hint has the nearest name.

        Cost: one round trip; one more for the hint.
        """
        async with self._hint(name):
            return Stream(self._api, await stream_info(self._api, name))

    async def find(self, subject: str) -> str | None:
        """Return the name of the stream that captures a subject, or None.

        Raises:
            SubjectError: The subject is no text, or illegal.
        """
        # None is refused: it would find any stream.
        checked_subject(subject)
        async for name in self.names(subject=subject):
            return name
        return None

    async def delete(self, name: str) -> None:
        """Delete a stream with all of its messages.

        Raises:
            StreamNotFoundError: The stream does not exist.
            TransportError: No answer, and the stream still exists; it may yet be deleted.

        Cost: one round trip. During an election a cluster may delete without an answer; this is
        noticed after a second.
        """
        async with self._hint(name):
            await delete_stream(self._api, name)

    @shows_fields(StreamFields)
    async def restore(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        on_progress: Callable[[RestoreProgress], object] | None = None,
        timeout: float | None = None,
        **fields: Unpack[StreamFields],
    ) -> Stream:
        """Create a stream from a folder that `Stream.backup` or `nats stream backup` wrote.

        Sequences, times, headers and the consumers in the backup are restored as they were, but for
        acks behind a hole in those of a replicated stream. It returns when the consumers can be
        used. The stream has forgotten the message ids of its duplicate window. An existing stream
        is never changed.

        Args:
            path: The folder; it is checked before anything is sent.
            name: Another name for the stream; needs a backup from a 2.15 server, and other
                `subjects` if the original stream still exists.
            on_progress: Called after each part; it must not block. An error in it ends the restore.
            timeout: Seconds that the server has to build the stream after the last part; None is
                an hour.
            fields: Fields of `StreamConfig` that differ from the backup; an empty one removes it.

        Raises:
            BackupError: The folder is not a backup or is damaged; nothing was sent. Or the server
                could not build the stream. Or the server dropped messages; the stream exists.
            StreamExistsError: A stream of this name exists.
            SubjectOverlapError: Another stream captures some of the subjects.
            UnsupportedServerError: Another name is given, and the server is older than 2.15.
            ConfigError: An argument has no legal value, or a bucket would become another bucket,
                whose keys its messages do not have; nothing was sent.
            TransportError: No answer. The server removes the partial stream some seconds later.

        Cost: the archive is sent once, in parts; memory for one part.
        Source: nats CLI `nats stream restore`; jsm.go snapshots.go.
        """
        changes = StreamConfig.from_call(name or "restored", fields).to_json() if fields else {}
        changes.pop("name", None)
        info = await restore_backup(
            self._api, path, name=name, changes=changes, on_progress=on_progress, timeout=timeout
        )
        return Stream(self._api, info)

    def names(self, *, subject: str | None = None) -> AsyncGenerator[str]:
        """Yield the names of all streams, or of those that capture a subject or filter.

        Raises:
            SubjectError: The subject or filter is illegal; nothing was sent.

        Cost: one round trip for each 1,024 names.
        """
        return stream_names(self._api, subject)

    def list(
        self, *, subject: str | None = None, on_missing: Literal["raise", "report"] = "raise"
    ) -> Listing[StreamInfo]:
        """Return the infos of all streams, or of those that capture a subject or filter.

        Read them with `async for`.

        Args:
            subject: Only streams that capture this subject, or a subject of this filter.
            on_missing: For streams without an info: they have no leader, or are too new for the
                servers. "raise" raises after all others are read; "report" puts them into the
                result's `missing` and `offline`.

        Raises:
            SubjectError: The subject or filter is illegal; nothing was sent.
            UnavailableError: Streams are missing; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one round trip for each 256 streams.
        """
        wanted = None if subject is None else checked_subject(subject)
        what = "streams" if wanted is None else f"streams that capture {wanted}"
        return Listing(what, on_missing, lambda gaps: stream_infos(self._api, gaps, wanted))

    @shows_fields(StreamFields)
    async def copy(
        self,
        source: str,
        name: str,
        *,
        messages: bool = False,
        timeout: float = COPY_TIMEOUT_S,
        **changes: Unpack[StreamFields],
    ) -> Stream:
        """Create a stream with the configuration of another, and on request with its messages.

        Messages keep their sequences, times, subjects and headers. The copy is a mirror until it
        holds all messages stored before the call, and then becomes a stream of its own. Messages
        stored during the call may be missing. Consumers, the ids of the duplicate window and
        deleted sequences after the last message are not copied. The limits of the copy, such as
        `max_age`, apply at once. The servers' own metadata is not copied, and the copy of a sealed
        stream is not sealed.

        Args:
            source: The stream to copy.
            name: The copy's name.
            messages: Also copy the messages.
            timeout: Seconds in which all messages must be copied.
            changes: Fields of `StreamConfig` that differ in the copy; `subjects` must, since each
                subject belongs to one stream.

        Raises:
            ConfigError: The copy would have the subjects of its origin, or cannot have its
                messages: it has counters, sources, a mirror or interest retention.
            StreamNotFoundError: The source does not exist.
            StreamExistsError: A stream of the copy's name exists.
            SubjectOverlapError: Another stream captures some of the subjects.
            UnsupportedServerError: Messages need nats-server 2.12, those of a work queue 2.14.
            RequestTimeoutError: Not all messages were copied in time; the copy was deleted.

        Cost: three round trips; with messages also the servers' time to copy them.
        """
        wanted = StreamConfig.from_call(
            check_text(name, "the copy's name", error=StreamNameError), changes
        )
        check_bool(messages, "messages")
        check_seconds(timeout, "timeout")
        info = await copy_stream(self._api, source, wanted, messages=messages, timeout=timeout)
        return Stream(self._api, info, created(info.config))

    @shows_fields(StreamFields)
    def template(
        self,
        pattern: str,
        *,
        name: str | None = None,
        max_streams: int = MAX_STREAMS,
        **fields: Unpack[StreamFields],
    ) -> StreamTemplate:
        """Create streams for the subjects of a pattern, when this connection publishes to them.

        `js.publish` creates a missing stream and sends the message again. A publisher creates it
        before its first message to a subject. Each value of `*` has its own stream: with
        "orders.*.>", "orders.eu.new" and "orders.eu.old" go to the stream "orders_eu", which
        captures "orders.eu.>". Messages of other connections create no stream. The next
        `js.publish` creates a deleted stream again. An open publisher does not: it raises
        `NoRespondersError` for subjects that it has published to before.

        Args:
            pattern: Subjects with at least one `*`.
            name: The streams' name, with `{1}` for the first `*`; None joins the pattern's tokens
                with "_". Bytes other than letters, digits and "-" are encoded as "=5F", so that no
                two subjects share a name.
            max_streams: Streams that may capture subjects of the pattern, from any client.
            fields: Fields of `StreamConfig` for each stream, other than name and subjects.

        Returns:
            The template; it is active on this connection until its `remove()`.

        Raises:
            SubjectError: The pattern is illegal.
            ConfigError: Subjects would share a name, a field is illegal, or another template covers
                some of the subjects.

        Cost: nothing now; three round trips for each created stream, and one for each new subject
        of a publisher.
        """
        for field in ("subjects", "mirror", "sources"):
            if field in fields:
                raise ConfigError(
                    f"template {pattern}: {field} cannot be given",
                    hint="its streams capture the pattern's subjects",
                )
        naming = naming_of(pattern, name)
        check_int(max_streams, "max_streams", minimum=1)
        config = StreamConfig.from_call("template", fields)
        if self._templates is None:
            self._templates = Templates(self._api)
        return self._templates.add(naming, config, max_streams)

    def _hint(self, name: str) -> AbstractAsyncContextManager[None]:
        """Let an error hint at the nearest name; for streams of views, `js.kv` and the like do."""
        is_of_view = str(name).startswith(tuple(VIEWS))
        return nullcontext() if is_of_view else hint_at_nearest(name, self.names)

    def __repr__(self) -> str:
        return f"<StreamManager {self._api.client.url}>"


def _wanted(config: StreamConfig | str, fields: Mapping[str, object]) -> StreamConfig:
    """Return a checked configuration; a subject that matches nothing is logged."""
    wanted = StreamConfig.from_call(config, fields)
    warn_half_wildcards(wanted.subjects or (), f"stream {wanted.name}")
    return wanted
