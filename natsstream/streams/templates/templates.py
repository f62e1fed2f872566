"""Creates a stream when a message is published that no stream captures.

Law: a subject gets one stream, for any number of concurrent publishers. A stream of another client
is never changed. The number of streams has a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakValueDictionary

from natsstream.api.requests import Api
from natsstream.api.stream_changes import create_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_requests import count_streams, stream_info
from natsstream.errors import ConfigError, LimitExceededError, StreamExistsError
from natsstream.streams.templates.naming import Naming, are_alike, overlap

MAX_STREAMS = 1_000
"""Streams of one template: any publisher can create them, and each costs the servers memory."""

_TEMPLATES_MAX = 256
_METADATA_KEY = "natsstream.template"


class StreamTemplate:
    """A template of streams; made by `js.streams.template`.

    Attributes:
        pattern: The subjects, with wildcards.
        name: The streams' name, with `{1}` for the first `*`.
        config: The configuration of its streams, with an example of a name.
        max_streams: Streams that may capture subjects of the pattern.
    """

    def __init__(
        self, templates: Templates, naming: Naming, config: StreamConfig, max_streams: int
    ) -> None:
        self._templates = templates
        self._naming = naming
        self.pattern: str = naming.pattern
        self.name: str = naming.name
        self.config: StreamConfig = config
        self.max_streams: int = max_streams

    def stream_for(self, subject: str) -> StreamConfig | None:
        """Return the stream for a subject; None if the pattern does not match.

        Raises:
            StreamNameError: The name would be too long.
        """
        tokens = self._naming.tokens_of(subject)
        if tokens is None:
            return None
        metadata = {**(self.config.metadata or {}), _METADATA_KEY: self.pattern}
        return replace(
            self.config,
            name=self._naming.name_of(tokens),
            subjects=[self._naming.subject_of(tokens)],
            metadata=metadata,
        )

    def remove(self) -> None:
        """Create no more streams; existing ones stay. Removing twice is fine."""
        self._templates.remove(self)

    def __repr__(self) -> str:
        return f"<StreamTemplate {self.pattern} -> {self.name}>"


class _Creations:
    """The streams of one template that are being created."""

    def __init__(self) -> None:
        self.gate = asyncio.Lock()  # One task at a time counts streams and reserves one.
        self.count: int = 0
        self.has_ended = asyncio.Event()


class Templates:
    """The templates of one connection."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._templates: dict[StreamTemplate, _Creations] = {}
        # One task at a time creates a stream; a lock lives while a task uses it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        api.make_stream = self.make_stream

    def add(self, naming: Naming, config: StreamConfig, max_streams: int) -> StreamTemplate:
        """Add a template.

        Raises:
            ConfigError: It overlaps another template, or there are too many.
        """
        for other in self._templates:
            if overlap(other.pattern, naming.pattern):
                raise ConfigError(
                    f"template {naming.pattern} overlaps template {other.pattern}",
                    hint="narrow one of the two, or remove() the other",
                )
            if are_alike(other.name, naming.name):
                raise ConfigError(
                    f"the streams of template {naming.pattern} would have the names of template "
                    f"{other.pattern}: {naming.name}",
                    hint="give one of the two another name=",
                )
        if len(self._templates) >= _TEMPLATES_MAX:
            raise ConfigError(
                f"there are {_TEMPLATES_MAX} templates already", hint="remove() some of them"
            )
        template = StreamTemplate(self, naming, config, max_streams)
        self._templates[template] = _Creations()
        return template

    def remove(self, template: StreamTemplate) -> None:
        """Remove a template."""
        self._templates.pop(template, None)

    async def make_stream(self, subject: str) -> bool:
        """Create the stream of a subject if a template matches; see `Api.make_stream`."""
        for template, creations in list(self._templates.items()):
            wanted = template.stream_for(subject)
            if wanted is not None:
                await self._make(template, creations, wanted, subject)
                return True
        return False

    async def _make(
        self, template: StreamTemplate, creations: _Creations, wanted: StreamConfig, subject: str
    ) -> None:
        lock = self._locks.get(wanted.name)
        if lock is None:
            lock = self._locks[wanted.name] = asyncio.Lock()
        async with lock:
            if await count_streams(self._api, subject):
                return  # Another task or process has created it.
            await self._reserve(template, creations, subject)
            try:
                await self._create(wanted, subject)
            finally:
                creations.count -= 1
                creations.has_ended.set()

    async def _reserve(self, template: StreamTemplate, creations: _Creations, subject: str) -> None:
        """Reserve one of the template's streams.

        Raises:
            LimitExceededError: There are `max_streams` already.
        """
        async with creations.gate:
            while True:
                # The servers may count the streams in creation already, or not yet.
                pending = creations.count
                there = await count_streams(self._api, template.pattern)
                if there + pending < template.max_streams:
                    creations.count += 1
                    return
                if not pending:
                    raise LimitExceededError(
                        f"publish to {subject}: template {template.pattern} may have "
                        f"{template.max_streams} streams, and {there} exist",
                        hint="raise max_streams, or delete unused streams",
                    )
                if creations.count == pending:
                    creations.has_ended.clear()
                    await creations.has_ended.wait()

    async def _create(self, wanted: StreamConfig, subject: str) -> None:
        try:
            await create_stream(self._api, wanted)
        except StreamExistsError as error:
            # Another process was faster, or the stream was changed since: it stays as it is.
            existing = await stream_info(self._api, wanted.name)
            theirs: Mapping[str, str] = existing.config.metadata or {}
            if theirs.get(_METADATA_KEY) == (wanted.metadata or {})[_METADATA_KEY]:
                return
            raise StreamExistsError(
                f"publish to {subject}: stream {wanted.name} exists already, and captures "
                "other subjects",
                code=error.code,
                err_code=error.err_code,
                description=error.description,
                hint="give the template another name=, or rename that stream",
            ) from error
