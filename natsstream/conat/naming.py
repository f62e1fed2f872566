"""Puts the path of a core stream into errors that show only its hash, which tells a user nothing.

Law: an error that several calls share shows no hash, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from natsstream.conat.names import KeySubjects, StreamNames
from natsstream.errors import NatsStreamError, RejectedError


@contextmanager
def naming(names: KeySubjects) -> Generator[None]:
    """Name the core stream in the errors of a block."""
    try:
        yield
    except NatsStreamError as error:
        name_error(error, names)
        raise


def name_error(error: NatsStreamError, names: KeySubjects) -> None:
    """Name the core stream in an error that does not do so, once."""
    if not isinstance(names, StreamNames) or names.path in error.message:
        return
    if names.id in error.message or isinstance(error, RejectedError):
        error.name_call(f"core stream {names.path!r}")
