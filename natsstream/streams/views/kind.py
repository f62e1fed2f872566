"""What kind of thing a view makes of a stream: its words, its name, and its fields.

Law: what the server said of a stream (`code`, `err_code`, `description`) goes along where the same
is told of the thing in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from natsstream.api.existing import described
from natsstream.api.names import STREAM_NAME_BYTES_MAX
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import check_text
from natsstream.errors import (
    BucketExistsError,
    BucketNameError,
    BucketNotFoundError,
    NotABucketError,
    StreamExistsError,
    StreamNotFoundError,
)

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of thing that is a stream.

    Attributes:
        noun: What one is called.
        plural: What several are called.
        door: Where users make them.
        prefix: What stands before a name in that of its stream.
        absent: That there is none; `{name}` is its name.
        absent_hint: What to do then.
        is_one: Tells whether a stream is one.
        seen: What a stream has that makes it none.
        trait: What each one has.
        fields: Python name of a field to that of the stream's field which holds it.
        own: More fields of the stream that follow from the name, by the server's names.
        filled_in: What servers write where a new one says nothing, by the server's names.
    """

    noun: str
    plural: str
    door: str
    prefix: str
    absent: str
    absent_hint: str
    is_one: Callable[[StreamConfig], bool]
    seen: Callable[[StreamConfig], str]
    trait: str
    fields: Mapping[str, str]
    own: frozenset[str] = frozenset()
    filled_in: Mapping[str, object]

    @property
    def names(self) -> dict[str, str]:
        """The stream's Python name of a field to the thing's."""
        return {theirs: name for name, theirs in self.fields.items()}

    def check_name(self, name: object) -> str:
        """Return a name.

        Raises:
            BucketNameError: No client would take it.
        """
        text = check_text(name, f"the {self.noun}'s name", error=BucketNameError)
        if not text:
            raise BucketNameError(
                f"the {self.noun}'s name is empty", hint="use letters, digits, '-' and '_'"
            )
        if not _LEGAL_NAME.fullmatch(text):
            raise BucketNameError(
                f"{self.noun} name {text[:80]!r} has a character that it can not have",
                hint="use letters, digits, '-' and '_'",
            )
        room = STREAM_NAME_BYTES_MAX - len(self.prefix)
        if len(text) > room:
            raise BucketNameError(
                f"{self.noun} name {text[:40]!r}... exceeds {room} bytes",
                hint="servers name files by it; shorten it",
            )
        return text

    def is_named(self, stream: str) -> bool:
        """Tell whether a stream has the name of one."""
        return stream.startswith(self.prefix)

    def name_of(self, stream: str) -> str:
        """Return the name of the thing in a stream."""
        return stream.removeprefix(self.prefix)

    def stream_of(self, name: object) -> str:
        """Return the name of the stream that holds one.

        Raises:
            BucketNameError: No client would take the thing's name.
        """
        return self.prefix + self.check_name(name)

    def not_found(self, name: str, error: StreamNotFoundError) -> BucketNotFoundError:
        """Return the error of one that does not exist."""
        return BucketNotFoundError(
            self.absent.format(name=name),
            code=error.code,
            err_code=error.err_code,
            description=error.description,
            hint=self.absent_hint.format(name=name),
        )

    @contextmanager
    def translate_errors(self, name: str) -> Generator[None]:
        """Tell of the thing where something tells of its stream."""
        try:
            yield
        except BucketNotFoundError:
            raise
        except StreamNotFoundError as error:
            raise self.not_found(name, error) from error

    def exists(
        self,
        name: str,
        differences: Mapping[str, tuple[object, object]],
        error: StreamExistsError,
    ) -> BucketExistsError:
        """Return the error of one that is there with another configuration.

        Args:
            name: Its name.
            differences: The fields that differ: what the server has, and what was asked for.
            error: What the server said.
        """
        exists = BucketExistsError(
            f"{self.noun} {name} exists with another configuration: {described(differences)}",
            code=error.code,
            err_code=error.err_code,
            description=error.description,
            hint=f"{self.door}.get() opens it as it is, {self.door}.ensure() changes what differs",
        )
        exists.differences = dict(differences)
        return exists

    def check(self, config: StreamConfig) -> None:
        """Refuse a stream that has the name of one and is none.

        Raises:
            NotABucketError: It is none.
        """
        if not self.is_one(config):
            raise NotABucketError(
                f"stream {config.name} is no {self.noun}",
                detail=self.seen(config),
                hint=f"{self.trait}; js.streams opens the stream",
            )


def is_legal_name(name: str) -> bool:
    """Tell whether every client takes a name, as far as its characters go."""
    return bool(_LEGAL_NAME.fullmatch(name))
