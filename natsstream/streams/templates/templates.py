"""Makes a stream when a message is published for which there is none.

Law: a subject gets one stream, however many publish to it at once. A stream that somebody else has
made is never changed. The number of streams has a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakValueDictionary

from natsstream._wire import subjects
from natsstream.api.requests import Api
from natsstream.api.stream_changes import create_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_requests import stream_info
from natsstream.errors import ConfigError, LimitExceededError, StreamExistsError
from natsstream.streams.templates.naming import Naming, are_alike, overlap

MAX_STREAMS = 1_000
"""Streams of one template: whoever may publish can make them, and each costs the servers memory."""

_TEMPLATES_MAX = 256
_METADATA_KEY = "natsstream.template"


class StreamTemplate:
    """A template of streams; made by `js.streams.template`.

    Attributes:
        pattern: Subjects that it is for.
        name: The streams' name, with `{1}` for the first `*`.
        config: What its streams have; the name in it is the first that fits.
        max_streams: How many streams may stand within the pattern.
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
        """Return the stream that would be made for a subject; None where it does not match.

        Raises:
            StreamNameError: The name would be longer than a name may be.
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
        """Make no more streams by it; those that it has made stay. Removing twice is fine."""
        self._templates.remove(self)

    def __repr__(self) -> str:
        return f"<StreamTemplate {self.pattern} -> {self.name}>"


class _Places:
    """Who makes streams of one template right now: one at a time asks whether there is room."""

    def __init__(self) -> None:
        self.gate = asyncio.Lock()
        self.being_made: int = 0
        self.has_ended = asyncio.Event()


class Templates:
    """The templates of one connection."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._templates: dict[StreamTemplate, _Places] = {}
        # One at a time makes a stream; a lock lives as long as somebody waits for it.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        api.make_stream = self.make_stream

    def add(self, naming: Naming, config: StreamConfig, max_streams: int) -> StreamTemplate:
        """Add a template.

        Raises:
            ConfigError: Another one is for some of its subjects, or there are too many.
        """
        for other in self._templates:
            if overlap(other.pattern, naming.pattern):
                raise ConfigError(
                    f"template {naming.pattern} overlaps template {other.pattern}",
                    hint="narrow one of the two, or remove() the other",
                )
            if are_alike(other.name, naming.name):
                raise ConfigError(
                    f"template {naming.pattern} would give its streams the names of template "
                    f"{other.pattern}: {naming.name}",
                    hint="give one of the two another name=",
                )
        if len(self._templates) >= _TEMPLATES_MAX:
            raise ConfigError(
                f"there are {_TEMPLATES_MAX} templates already", hint="remove() some of them"
            )
        template = StreamTemplate(self, naming, config, max_streams)
        self._templates[template] = _Places()
        return template

    def remove(self, template: StreamTemplate) -> None:
        """Forget a template."""
        self._templates.pop(template, None)

    async def make_stream(self, subject: str) -> bool:
        """Make the stream of a subject where a template has one for it; see `Api.make_stream`."""
        for template, places in list(self._templates.items()):
            wanted = template.stream_for(subject)
            if wanted is not None:
                await self._make(template, places, wanted, subject)
                return True
        return False

    async def _make(
        self, template: StreamTemplate, places: _Places, wanted: StreamConfig, subject: str
    ) -> None:
        lock = self._locks.get(wanted.name)
        if lock is None:
            lock = self._locks[wanted.name] = asyncio.Lock()
        async with lock:
            if await self._count(subject):
                return  # There is one by now.
            await self._reserve(template, places, subject)
            try:
                await self._create(wanted, subject)
            finally:
                places.being_made -= 1
                places.has_ended.set()

    async def _reserve(self, template: StreamTemplate, places: _Places, subject: str) -> None:
        """Take one of the template's streams, while others of this process take theirs.

        Raises:
            LimitExceededError: There are as many as there may be.
        """
        async with places.gate:
            while True:
                # The servers may know of those that are being made, or not yet.
                flying = places.being_made
                there = await self._count(template.pattern)
                if there + flying < template.max_streams:
                    places.being_made += 1
                    return
                if not flying:
                    raise LimitExceededError(
                        f"publish to {subject}: template {template.pattern} may make "
                        f"{template.max_streams} streams, and {there} are there",
                        hint="raise max_streams, or delete streams that nobody needs",
                    )
                if places.being_made == flying:
                    places.has_ended.clear()
                    await places.has_ended.wait()

    async def _create(self, wanted: StreamConfig, subject: str) -> None:
        try:
            await create_stream(self._api, wanted)
        except StreamExistsError as error:
            # Another process was faster, or it was changed since: it stays as it is.
            held = await stream_info(self._api, wanted.name)
            theirs: Mapping[str, str] = held.config.metadata or {}
            if theirs.get(_METADATA_KEY) == (wanted.metadata or {})[_METADATA_KEY]:
                return
            raise StreamExistsError(
                f"publish to {subject}: stream {wanted.name} is there already, and captures "
                "other subjects",
                code=error.code,
                err_code=error.err_code,
                description=error.description,
                hint="give the template another name=, or rename that stream",
            ) from error

    async def _count(self, subject: str) -> int:
        """Return how many streams capture a subject or some subject of a pattern."""
        body = {"subject": subject}
        answer = await self._api.read(subjects.STREAM_NAMES, body, what=f"streams of {subject}")
        return answer.count("total")
