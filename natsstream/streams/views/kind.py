"""A kind of view: its words, the names of its streams, and its fields.

Law: an error of a view has the `code`, `err_code` and `description` of the stream's error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from natsstream.api.change_plan import described
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
    """A kind of view of a stream, such as a bucket.

    Attributes:
        noun: The word for one.
        manager: Where users create them.
        prefix: The start of its stream's name, before its own name.
        mismatch: Returns why a stream with such a name is none of the kind, or an empty text.
        requirement: The trait that `mismatch` looks for.
        elsewhere: How to get the one named `{name}` with another storage, for a hint.
        derived: The stream's fields that follow from the name, by the server's names.
    """

    noun: str
    manager: str
    prefix: str
    mismatch: Callable[[StreamConfig], str]
    requirement: str
    elsewhere: str
    derived: frozenset[str] = frozenset()

    def check_name(self, name: object) -> str:
        """Return a legal name.

        Raises:
            BucketNameError: The name is not legal in every client.
        """
        text = check_text(name, f"the {self.noun}'s name", error=BucketNameError)
        if not text:
            raise BucketNameError(
                f"the {self.noun}'s name is empty", hint="use letters, digits, '-' and '_'"
            )
        if not _LEGAL_NAME.fullmatch(text):
            raise BucketNameError(
                f"{self.noun} name {text[:80]!r} has an illegal character",
                hint="use letters, digits, '-' and '_'",
            )
        room = STREAM_NAME_BYTES_MAX - len(self.prefix)
        if len(text) > room:
            raise BucketNameError(
                f"{self.noun} name {text[:40]!r}... exceeds {room} bytes",
                hint="servers name files after it; shorten it",
            )
        return text

    def is_named(self, stream: str) -> bool:
        """Return True if a stream has the name of this kind."""
        return stream.startswith(self.prefix)

    def is_one(self, config: StreamConfig) -> bool:
        """Return True if a stream is of this kind."""
        return self.is_named(config.name) and not self.mismatch(config)

    def name_of(self, stream: str) -> str:
        """Return the view's name for the name of its stream."""
        return stream.removeprefix(self.prefix)

    def stream_of(self, name: object) -> str:
        """Return the name of a view's stream.

        Raises:
            BucketNameError: The view's name is not legal in every client.
        """
        return self.prefix + self.check_name(name)

    def not_found(self, name: str, error: StreamNotFoundError) -> BucketNotFoundError:
        """Return the error of a view that does not exist."""
        bare = self.name_of(name)
        hint = f"create it: await {self.manager}.create({name!r})"
        if bare and bare != name:
            hint = f"only its stream has {self.prefix} in its name: {self.manager}.get({bare!r})"
        return BucketNotFoundError(
            f"{self.noun} {name} does not exist",
            code=error.code,
            err_code=error.err_code,
            description=error.description,
            hint=hint,
        )

    @contextmanager
    def translate_errors(self, name: str) -> Generator[None]:
        """Raise BucketNotFoundError for the view instead of StreamNotFoundError."""
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
        """Return the error of a view that exists with another configuration.

        Args:
            name: Its name.
            differences: The fields that differ: the server's value and the wanted one.
            error: The server's error.
        """
        exists = BucketExistsError(
            f"{self.noun} {name} exists with another configuration: {described(differences)}",
            code=error.code,
            err_code=error.err_code,
            description=error.description,
            hint=f"{self.manager}.get() opens it as it is, {self.manager}.ensure() updates it",
        )
        exists.differences = dict(differences)
        return exists

    def check_stream(self, config: StreamConfig) -> None:
        """Refuse a stream that has the name of this kind and is not of it.

        Raises:
            NotABucketError: It is none.
        """
        if not self.is_one(config):
            raise NotABucketError(
                f"stream {config.name} is no {self.noun}",
                detail=self.mismatch(config),
                hint=f"{self.requirement}; js.streams opens the stream",
            )


def is_legal_name(name: str) -> bool:
    """Return True if a name has legal characters only."""
    return bool(_LEGAL_NAME.fullmatch(name))
