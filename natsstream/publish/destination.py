"""The stream that messages are for, without a header that says so.

Law: no header is added. `Nats-Expected-Stream` would be stored with the message, and a copy of the
message with its headers into another stream would be refused. So each subject is checked before its
first message, and the stream's name in each ack. If another stream captures a subject in between,
the ack shows it, and the message is stored in the other stream.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from natsstream._wire.error_codes import ErrorCode
from natsstream.api.names import covers
from natsstream.api.requests import Api
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import find_streams, stream_info
from natsstream.errors import (
    ConfigError,
    PermissionDeniedError,
    StreamNotFoundError,
    WrongStreamError,
)

_SUBJECTS_MAX = 1_024
# Answers that are kept: a thousand subjects of each of some configurations, a few MiB at most.
_CONFIGS_MAX = 16


def keeps_ids(config: StreamConfig) -> bool:
    """Return True if a server that restarts knows the ids of the last messages of a stream.

    It reads them from the messages that are stored. A stream that removes messages once they are
    acked, or for the next ones of their subjects, may lack them. Seen on 2.15.
    """
    return config.retention in (None, "limits") and (config.max_msgs_per_subject or 0) <= 0


class Destination:
    """The stream that messages are for.

    Args:
        api: The connection.
        stream: The stream, as last read.

    Attributes:
        name: Its name.
        stream: The stream, as last read; None if it was deleted.
    """

    def __init__(self, api: Api, stream: StreamInfo) -> None:
        self._api = api
        self.name: str = stream.name
        self.stream: StreamInfo | None = stream
        # Captured as far as the servers know: accounts and imports may map subjects.
        self._asked: set[str] = set()
        # Those of them that no stream captures.
        self._lacking: set[str] = set()

    async def check(self, subject: str) -> None:
        """Refuse a subject that another stream captures.

        Raises:
            WrongStreamError: Another stream captures it; nothing was sent.

        Cost: nothing for a subject in the stream's configuration, else one round trip, once.
        """
        is_known = self.stream is not None and captures(self.stream.config, subject)
        if is_known or subject in self._asked:
            return
        found: list[str] | None = None
        with suppress(PermissionDeniedError):  # The ack tells.
            found = await find_streams(self._api, subject)
        if found and self.name not in found:
            raise wrong_stream(
                f"publish to {subject}: stream {found[0]} captures the subject, not stream "
                f"{self.name}; nothing was sent"
            )
        if len(self._asked) >= _SUBJECTS_MAX:
            self._forget()
        self._asked.add(subject)
        if found == []:
            self._lacking.add(subject)

    def lacks(self, subject: str) -> bool:
        """Return True if no stream captures a subject, as last looked at."""
        return subject in self._lacking

    def _forget(self) -> None:
        self._asked.clear()
        self._lacking.clear()

    async def strays(self, subjects: Collection[str]) -> set[str]:
        """Read the stream again, and return the subjects that another one captures by now.

        Cost: one round trip, and one for each subject outside of the stream's configuration.
        """
        try:
            self.stream = await stream_info(self._api, self.name)
        except StreamNotFoundError:
            self.stream = None
        self._forget()
        strays: set[str] = set()
        for subject in subjects:
            try:
                await self.check(subject)
            except WrongStreamError:
                strays.add(subject)
        return strays


def captures(config: StreamConfig, subject: str) -> bool:
    """Return True if a stream's configuration captures a subject; a mirror captures none.

    Cost: about a microsecond for a subject that was asked for before, else one for each of the
    stream's subjects.
    """
    subjects = config.subjects
    if subjects is None:
        return config.mirror is None and not config.sources and subject == config.name
    known = _known(_Same(subjects))
    found = known.get(subject)
    if found is None:
        if len(known) >= _SUBJECTS_MAX:
            known.clear()
        found = subject in subjects or any(covers(each, subject) for each in subjects)
        known[subject] = found
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """The subjects of one configuration, told apart without a look at each of them."""

    subjects: Sequence[str]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.subjects is other.subjects

    def __hash__(self) -> int:
        return id(self.subjects)


@lru_cache(_CONFIGS_MAX)
def _known(_: _Same) -> dict[str, bool]:
    """Return the answers for a configuration so far."""
    return {}


def check_teller(subject: str, teller: str, sequence: int, wanted: str) -> None:
    """Refuse the ack of another stream.

    Args:
        subject: Subject of the message.
        teller: The stream in the ack.
        sequence: The sequence in the ack.
        wanted: The stream that the message is for.

    Raises:
        WrongStreamError: Another stream has stored the message.
    """
    if teller != wanted:
        raise wrong_stream(
            f"publish to {subject}: stream {teller} has stored the message as {sequence}, not "
            f"stream {wanted}"
        )


def taken_over(subject: str, wanted: str) -> WrongStreamError:
    """Return the error of a sent message whose subject another stream captures by now."""
    error = wrong_stream(
        f"publish to {subject}: another stream captures the subject by now, not stream {wanted}; "
        "the message is not sent again"
    )
    error.detail = f"it may be stored in stream {wanted}"
    return error


def wrong_stream(message: str) -> WrongStreamError:
    """Return the error of a message for another stream, with the server's code for it."""
    return WrongStreamError(
        message,
        code=400,
        err_code=ErrorCode.STREAM_NOT_MATCH.value,
        hint="see which stream captures a subject with streams.find(subject)",
    )


def check_acks(config: StreamConfig) -> None:
    """Refuse a stream that acks nothing.

    Raises:
        ConfigError: The stream has `no_ack`.
    """
    if config.no_ack:
        raise ConfigError(
            f"stream {config.name} has no_ack: it would not say what it stored",
            hint="js.streams.update(name, no_ack=False)",
        )
