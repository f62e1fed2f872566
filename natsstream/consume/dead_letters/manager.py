"""Makes and opens dead-letter streams: `js.dead_letters`."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Literal

from natsstream.api.diff import ConfigChange
from natsstream.api.names import check_stream_name, covers
from natsstream.api.requests import Api
from natsstream.api.stream_changes import ensure_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import check_text, check_texts
from natsstream.consume.dead_letters.queue import DeadLetterQueue
from natsstream.consume.dead_letters.replaying import evicts
from natsstream.consume.dead_letters.subjects import (
    advisory_subjects,
    letters_filter,
    with_captured,
)
from natsstream.errors import (
    ConfigError,
    PermissionDeniedError,
    StreamNotFoundError,
    SubjectOverlapError,
)

_log = logging.getLogger("natsstream.worker")

# Workers that begin at the same time add to one stream: each looks whether its own is there still,
# after longer than another one takes between reading and writing.
_TRIES_MAX = 20
_SETTLE_S = 0.1

_REFUSES_NEW = "new"
"""The `discard` of a dead-letter stream: a full one refuses, and the message stays where it is."""


class DeadLetters:
    """The dead-letter streams of the account."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def ensure(
        self,
        name: str,
        *,
        stream: str | Sequence[str] | None = None,
        consumer: str | None = None,
        replicas: int | None = None,
        storage: Literal["file", "memory"] | None = None,
        max_age: float | timedelta | None = None,
        max_msgs: int | None = None,
        max_bytes: int | None = None,
    ) -> DeadLetterQueue:
        """Create a dead-letter stream, or add advisories to what an existing one captures.

        With `stream` it captures the advisory of every message of that stream that a consumer gives
        up: after `max_deliver`, or when a client terminates it. The server does this alone, for
        workers in any language. An advisory does not carry the message: it is looked up in its
        stream when the letter is read. `run(dead_letter=...)` stores the message itself.

        A full dead-letter stream refuses new letters (`discard="new"`), and their messages stay
        with their consumers. A stream with another `discard` is updated, and that is logged. The
        server publishes advisories without an ack, so a full stream misses them. Set no limit where
        you rely on advisories.

        Args:
            name: Name of the dead-letter stream.
            stream: The stream, or streams, whose consumers are watched; None stores letters of
                `run(dead_letter=...)` only.
            consumer: Watch only consumers of this name.
            replicas: Replicas of a new stream; None is as many as the watched one has, or 1.
            storage: "file" or "memory"; None is the server's default.
            max_age: Seconds after which letters are forgotten; None keeps them.
            max_msgs: Most letters and advisories that are kept, two for each message that our
                workers give up where its consumer is watched; None is no limit.
            max_bytes: Most bytes that are kept; None is no limit.

        Raises:
            ConfigError: The stream is no dead-letter stream, cannot keep letters, or is watched as
                well; nothing was changed.
            PermissionDeniedError: This user may not make or change it, and it has to be.
            SubjectOverlapError: Another stream captures the same advisories.
            StreamNotFoundError: A stream that was not watched yet does not exist, and `replicas` is
                not given.
            InvalidConfigError: The server refuses a limit.

        Cost: one round trip where nothing is to be changed; else three or four, and 0.1 to 0.2
        seconds after which it looks whether others have changed the stream at the same time.
        """
        check_stream_name(check_text(name, "name"))
        watched = _names(stream)
        if name in watched:
            raise ConfigError(
                f"dead-letter stream {name} cannot watch itself: each advisory would be a "
                "message that its consumers can fail on",
                hint="watch it with another dead-letter stream",
            )
        if consumer is not None:
            check_consumer(consumer, watched)
        wanted = [letters_filter(name)]
        for each in watched:
            wanted.extend(advisory_subjects(each, consumer or "*"))
        config = StreamConfig(
            name=name,
            replicas=replicas,
            storage=storage,
            max_age=max_age,
            max_msgs=max_msgs,
            max_bytes=max_bytes,
            discard=_REFUSES_NEW,
        )
        held = await self._find(name)
        if held is None and replicas is None and watched:
            infos = [await stream_info(self._api, each) for each in watched]
            config = replace(config, replicas=max(info.config.replicas or 1 for info in infos))
        elif replicas is None:
            for each in watched:
                if not all(
                    _has_captured(held, x) for x in advisory_subjects(each, consumer or "*")
                ):
                    with suppress(PermissionDeniedError):  # Who may not see it may yet watch it.
                        await stream_info(self._api, each)
        for _ in range(_TRIES_MAX):
            subjects = with_captured(_captured(held), wanted)
            change = await self._ensure(replace(config, subjects=subjects), wanted[-1], held)
            if change.action == "unchanged":
                break
            # No server compares before it changes: who had read before may write behind us.
            await asyncio.sleep(_SETTLE_S * (1 + random.random()))  # noqa: S311 - to part them.
            held = await self._find(name)
            if all(_has_captured(held, each) for each in wanted):
                break
        return DeadLetterQueue(self._api, name)

    async def open(self, name: str) -> DeadLetterQueue:
        """Return a dead-letter stream that exists.

        Raises:
            StreamNotFoundError: It does not exist.
            ConfigError: The stream is something else.

        Cost: one round trip.
        """
        check_stream_name(check_text(name, "name"))
        if await self._find(name) is None:
            raise StreamNotFoundError(
                f"there is no dead-letter stream {name}",
                hint=f"make it: js.dead_letters.ensure({name!r}, stream=...)",
            )
        return DeadLetterQueue(self._api, name)

    async def _ensure(
        self, config: StreamConfig, wanted: str, held: StreamInfo | None
    ) -> ConfigChange:
        loses_letters = held is not None and evicts(held.config)
        try:
            _, change = await ensure_stream(self._api, config)
        except SubjectOverlapError as error:
            error.hint = (
                f"one advisory is kept in one stream: find the one that captures {wanted} and use "
                "that, or watch other consumers"
            )
            raise
        except PermissionDeniedError as error:
            if loses_letters:
                error.hint = (
                    f"{config.name} drops its oldest letters when it is full: let a user who may "
                    f"change it run js.dead_letters.ensure({config.name!r})"
                )
                raise
            # Without a limit it drops nothing, and need not be changed for that.
            _, change = await ensure_stream(self._api, replace(config, discard=None))
        if loses_letters:
            _log.warning(
                "dead-letter stream %s dropped its oldest letters when it was full; from now on it "
                "refuses new ones then, and their messages stay with their consumers",
                config.name,
            )
        return change

    async def _find(self, name: str) -> StreamInfo | None:
        """Return the info of a dead-letter stream; another one's name is refused."""
        try:
            info = await stream_info(self._api, name)
        except StreamNotFoundError:
            return None
        letters = letters_filter(name)
        if not any(covers(each, letters) for each in info.config.subjects or ()):
            raise ConfigError(
                f"stream {name} is no dead-letter stream: it does not capture {letters}",
                hint=f"choose another name, such as {name}_DLQ",
            )
        _check_keeps(info.config)
        return info

    def __repr__(self) -> str:
        return f"<DeadLetters {self._api.client.url}>"


def check_consumer(consumer: str, watched: Sequence[str]) -> None:
    """Refuse what is no consumer to watch.

    Raises:
        ConfigError: It is no name, or no stream is named.
    """
    check_text(consumer, "consumer")
    if not consumer or any(each in consumer for each in " .*>\t\r\n"):
        raise ConfigError(f"consumer {consumer!r} is no consumer's name")
    if not watched:
        raise ConfigError(f"consumer {consumer!r} of no stream", hint="give stream= as well")


def _has_captured(info: StreamInfo | None, subject: str) -> bool:
    return any(covers(each, subject) for each in _captured(info))


def _captured(info: StreamInfo | None) -> Sequence[str]:
    return (info.config.subjects or ()) if info is not None else ()


def _names(stream: object) -> list[str]:
    if stream is None:
        return []
    if isinstance(stream, str):
        return [check_stream_name(stream)]
    return [check_stream_name(each) for each in dict.fromkeys(check_texts(stream, "stream"))]


def _check_keeps(config: StreamConfig) -> None:
    """Refuse a stream whose configuration cannot keep letters.

    Raises:
        ConfigError: It forgets messages when others come or are read, or acknowledges nothing.
    """
    if config.retention in ("workqueue", "interest"):
        raise _refusal(
            config,
            f"has retention {config.retention!r}",
            "letters are kept until they are dropped, which needs retention 'limits'",
        )
    if config.max_msgs_per_subject and config.max_msgs_per_subject > 0:
        raise _refusal(
            config,
            f"keeps {config.max_msgs_per_subject} messages of each subject",
            "all advisories of a consumer have one subject: raise max_msgs_per_subject to -1",
        )
    if config.no_ack:
        raise _refusal(
            config,
            "has no_ack: it would not say what it stored",
            f"js.streams.update({config.name!r}, no_ack=False)",
        )


def _refusal(config: StreamConfig, what: str, hint: str) -> ConfigError:
    return ConfigError(f"dead-letter stream {config.name} {what}", hint=hint)
