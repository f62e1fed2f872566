"""Errors of an object store in its own words, where its stream has others."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from natsstream.errors import (
    BucketExistsError,
    BucketNotFoundError,
    NotABucketError,
    StreamExistsError,
    StreamNotFoundError,
)
from natsstream.objects.config import is_store
from natsstream.streams.config import StreamConfig


def store_not_found(bucket: str, error: StreamNotFoundError) -> BucketNotFoundError:
    """Return the error of a store that does not exist."""
    return BucketNotFoundError(
        f"there is no object store {bucket}",
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint=f"make it: await js.objects.create({bucket!r})",
    )


def store_exists(
    bucket: str, differences: Mapping[str, tuple[object, object]], error: StreamExistsError
) -> BucketExistsError:
    """Return the error of a store that is there with another configuration.

    Args:
        bucket: Its name.
        differences: The fields that differ: what the server has, and what was asked for.
        error: What the server said.
    """
    told = ", ".join(f"{name} is {held!r}" for name, (held, _) in differences.items())
    exists = BucketExistsError(
        f"object store {bucket} exists with another configuration{f': {told}' if told else ''}",
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint="js.objects.get() opens it as it is, js.objects.ensure() changes what differs",
    )
    exists.differences = dict(differences)
    return exists


def check_is_store(config: StreamConfig) -> None:
    """Refuse a stream that has a store's name and is none.

    Raises:
        NotABucketError: It is none.
    """
    if not is_store(config):
        raise NotABucketError(
            f"stream {config.name} is no object store",
            detail=f"it captures {', '.join(config.subjects or ()) or 'nothing'}",
            hint="a store captures its chunks and metas; js.streams opens the stream",
        )


@contextmanager
def told_of_store(bucket: str) -> Generator[None]:
    """Tell of a store where something tells of its stream."""
    try:
        yield
    except BucketNotFoundError:
        raise
    except StreamNotFoundError as error:
        raise store_not_found(bucket, error) from error
