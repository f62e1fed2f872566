"""Makes, finds and deletes streams: `js.streams`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Literal

from natsstream.api.diff import ConfigChange, stream_created
from natsstream.api.requests import Api
from natsstream.api.stream_changes import create_stream, ensure_stream, plan_stream, update_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_requests import (
    delete_stream,
    stream_info,
    stream_names,
)
from natsstream.arguments import check_bool, check_int, check_names, check_seconds, check_text
from natsstream.errors import ConfigError, StreamNameError
from natsstream.streams.copying import copy_stream
from natsstream.streams.listing import StreamListing
from natsstream.streams.snapshots.progress import RestoreProgress
from natsstream.streams.snapshots.restore import restore_backup
from natsstream.streams.stream import Stream
from natsstream.streams.templates.naming import naming_of
from natsstream.streams.templates.templates import MAX_STREAMS, StreamTemplate, Templates

COPY_TIMEOUT_S = 60.0


class StreamManager:
    """The streams of the account."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._templates: Templates | None = None

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
        return Stream(self._api, await create_stream(self._api, wanted), stream_created(wanted))

    async def update(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Change the fields that are given and leave all others as the server has them.

        The stream's `change` says what differed.

        Raises:
            StreamNotFoundError: It does not exist.
            InvalidConfigError: The server refuses a change, or took it as something else.
            UnsupportedServerError: The server lacks a field; see `create`.
        """
        return Stream(self._api, *await update_stream(self._api, _config(config, fields)))

    async def ensure(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Return the stream with at least this configuration: create, update or leave it.

        The stream's `change` says which, and of what field; `diff` says it before.

        Raises:
            SubjectOverlapError: Another stream captures some of the subjects.
            InvalidConfigError: The server refuses a field or a change, or took it as something
                else.
            UnsupportedServerError: The server lacks a field; see `create`.
        """
        return Stream(self._api, *await ensure_stream(self._api, _config(config, fields)))

    async def diff(self, config: StreamConfig | str, **fields: Any) -> ConfigChange:
        """Return what `ensure` would do, and do nothing.

        Returns:
            Each field that differs, with the server's value, the wanted one, and why servers would
            refuse the change, where they are known to; `print` shows it as a table.

        Raises:
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        return await plan_stream(self._api, _config(config, fields))

    async def get(self, name: str) -> Stream:
        """Return a stream that exists.

        Raises:
            StreamNameError: No server would take the name.
            StreamNotFoundError: It does not exist.
        """
        return Stream(self._api, await stream_info(self._api, name))

    async def find(self, subject: str) -> str | None:
        """Return the name of the stream that captures a subject, or None."""
        async for name in self.names(subject=subject):
            return name
        return None

    async def delete(self, name: str) -> None:
        """Delete a stream with all of its messages.

        Raises:
            StreamNotFoundError: It does not exist.
            TransportError: There was no answer, and it is there; it may still be deleted.

        Cost: one round trip. A cluster that is choosing a leader may delete without an answer;
        that is seen after a second.
        """
        await delete_stream(self._api, name)

    async def restore(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        on_progress: Callable[[RestoreProgress], object] | None = None,
        timeout: float | None = None,
        **fields: Any,
    ) -> Stream:
        """Make a stream from a folder that `Stream.backup` or `nats stream backup` wrote.

        Sequences, times and headers are what they were, and so are the consumers that the backup
        has. A stream that exists is never touched.

        Args:
            path: The folder; it is checked before anything is sent.
            name: Another name for the stream; needs a backup made by a server of 2.15, and
                `subjects` where the first stream still has them.
            on_progress: Called after each part; it must not wait. An error in it ends the restore.
            timeout: Seconds in which the server must have built the stream after the last part;
                None is an hour.
            fields: Fields of `StreamConfig` that shall be others than in the backup.

        Raises:
            BackupError: The folder is no backup or is damaged, and nothing was sent; or the server
                could not build the stream of it; or it dropped messages, and the stream is there.
            StreamExistsError: There is a stream of this name.
            SubjectOverlapError: Another stream captures some of the subjects.
            UnsupportedServerError: Another name is given, and the server is older than 2.15.
            ConfigError: An argument has no legal value; nothing was sent.
            TransportError: No answer. The server clears up what was begun some seconds later.

        Cost: the archive once over the wire, part by part; memory of one part.
        Source: nats CLI `nats stream restore`; jsm.go snapshots.go.
        """
        changes = _config(name or "restored", fields).given() if fields else {}
        changes.pop("name", None)
        info = await restore_backup(
            self._api, path, name=name, changes=changes, on_progress=on_progress, timeout=timeout
        )
        return Stream(self._api, info)

    async def names(self, *, subject: str | None = None) -> AsyncIterator[str]:
        """Yield the names of all streams, or of those that capture a subject or filter.

        Raises:
            SubjectError: It is no subject or filter; nothing was sent.
            TransportError: The server did not answer in time.

        Cost: one round trip for each 1,024 names.
        """
        async for name in stream_names(self._api, subject):
            yield name

    def list(
        self, *, subject: str | None = None, on_missing: Literal["raise", "report"] = "raise"
    ) -> StreamListing:
        """Return the infos of all streams, or of those that capture a subject or filter.

        Read them with `async for`.

        Args:
            subject: Only streams that capture it, or some subject of this filter.
            on_missing: Servers name streams that they can not describe now, having no leader or
                being too new for the servers. "raise" ends the loop with an error when all others
                are read; "report" leaves them in the result's `missing` and `offline`.

        Raises:
            SubjectError: It is no subject or filter; nothing was sent.
            UnavailableError: Streams are missing; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one round trip for each 256 streams.
        """
        return StreamListing(self._api, subject, on_missing)

    async def copy(
        self,
        source: str,
        name: str,
        *,
        messages: bool = False,
        timeout: float = COPY_TIMEOUT_S,
        **changes: Any,
    ) -> Stream:
        """Make a stream with the configuration of another one, and with its messages if wanted.

        Messages keep their sequences, times, subjects and headers: the copy is a mirror until it
        holds all that was stored when `copy` was called, and then a stream of its own; what is
        stored meanwhile may be in it or not. Not kept: consumers, which ids the duplicate window
        remembers, and sequences that are gone behind the last message. The limits of the copy, such
        as `max_age`, act at once. The metadata of servers stays behind, and a sealed stream has an
        open copy.

        Args:
            source: The stream to copy.
            name: The copy's name.
            messages: Also copy the messages.
            timeout: Seconds in which all messages must be there.
            changes: Fields of `StreamConfig` that are different in the copy; `subjects` must be,
                as each subject belongs to one stream.

        Raises:
            ConfigError: The copy would have the subjects of its origin, or can not have its
                messages: it has counters, sources, a mirror, or would drop what nobody waits for.
            StreamNotFoundError: The source does not exist.
            StreamExistsError: There is a stream of the copy's name.
            SubjectOverlapError: Another stream captures some of the subjects.
            UnsupportedServerError: Messages need nats-server 2.12, of a work queue 2.14.
            RequestTimeoutError: Not all messages came in time; the copy was deleted again.

        Cost: three round trips; with messages what the servers need to copy them.
        """
        wanted = _config(check_text(name, "the copy's name", error=StreamNameError), changes)
        check_bool(messages, "messages")
        check_seconds(timeout, "timeout")
        info = await copy_stream(self._api, source, wanted, messages=messages, timeout=timeout)
        return Stream(self._api, info, stream_created(info.config))

    def template(
        self,
        pattern: str,
        *,
        name: str | None = None,
        max_streams: int = MAX_STREAMS,
        **fields: Any,
    ) -> StreamTemplate:
        """Make a stream for each subject of a pattern, when a message through us finds none.

        `js.publish` makes it and sends the message again; a publisher makes it before its first
        message to a subject. Each thing that a `*` stands for has a stream of its own: with
        "orders.*.>", "orders.eu.new" and "orders.eu.old" go to the stream "orders_eu", which
        captures "orders.eu.>". Other programs' messages make none. A stream that is deleted is made
        again by the next `js.publish`; an open publisher refuses more messages to subjects that it
        has sent to before, with `NoRespondersError`.

        Args:
            pattern: Subjects with at least one `*`.
            name: The streams' name, with `{1}` for the first `*`; None joins the pattern's tokens
                by "_". Bytes other than letters, digits and "-" are written like "=5F", so that no
                two subjects share a name.
            max_streams: How many streams may capture subjects of the pattern, whoever made them.
            fields: Fields of `StreamConfig` for each stream, other than name and subjects.

        Returns:
            The template; it holds for this connection, until its `remove()`.

        Raises:
            SubjectError: The pattern is no subject.
            ConfigError: Subjects would share a name, a field is wrong, or another template is for
                some of the subjects.

        Cost: nothing; three round trips for each stream that is made, and one for each new subject
        of a publisher.
        """
        for field in ("subjects", "mirror", "sources"):
            if field in fields:
                raise ConfigError(
                    f"template {pattern}: {field} can not be given",
                    hint="its streams capture the pattern's subjects",
                )
        naming = naming_of(pattern, name)
        check_int(max_streams, "max_streams", minimum=1)
        config = _config("template", fields)
        if self._templates is None:
            self._templates = Templates(self._api)
        return self._templates.add(naming, config, max_streams)

    def __repr__(self) -> str:
        return f"<StreamManager {self._api.client.url}>"


def _config(config: StreamConfig | str, fields: dict[str, Any]) -> StreamConfig:
    if isinstance(config, StreamConfig):
        if fields:
            raise ConfigError("give a StreamConfig or keywords, not both")
        return config
    known = [name for name in StreamConfig.__dataclass_fields__ if name != "name"]
    hint = "see StreamConfig; a field of a newer server goes into extra={...}"
    check_names(fields, known, "stream field", hint=hint)
    return StreamConfig(name=config, **fields)
