"""What servers refuse about a stream, told as about the bucket that it holds.

What lives here: the errors, made from those of streams. What must not: when they are raised.

Law: what the server said (`code`, `err_code`, `description`) goes along.
"""

from __future__ import annotations

from collections.abc import Mapping

from natsstream.errors import (
    BucketExistsError,
    BucketNotFoundError,
    NotABucketError,
    StreamExistsError,
    StreamNotFoundError,
)
from natsstream.kv.buckets.conventions import is_bucket
from natsstream.streams.config import StreamConfig


def bucket_not_found(bucket: str, error: StreamNotFoundError) -> BucketNotFoundError:
    """Return the error of a bucket that does not exist."""
    return BucketNotFoundError(
        f"bucket {bucket} does not exist",
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint="js.kv.create() or js.kv.ensure() makes it",
    )


def bucket_exists(
    bucket: str, differences: Mapping[str, tuple[object, object]], error: StreamExistsError
) -> BucketExistsError:
    """Return the error of a bucket that is there with another configuration.

    Args:
        bucket: Its name.
        differences: The fields that differ: what the server has, and what was asked for.
        error: What the server said.
    """
    told = ", ".join(f"{name} is {held!r}" for name, (held, _) in differences.items())
    exists = BucketExistsError(
        f"bucket {bucket} exists with another configuration" + (f": {told}" if told else ""),
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint="js.kv.get() opens it as it is, js.kv.ensure() changes what differs",
    )
    exists.differences = dict(differences)
    return exists


def check_is_bucket(config: StreamConfig) -> None:
    """Refuse a stream that has a bucket's name and is none.

    Raises:
        NotABucketError: It is none.
    """
    if not is_bucket(config):
        raise NotABucketError(
            f"stream {config.name} is no bucket",
            detail=f"max_msgs_per_subject is {config.max_msgs_per_subject}",
            hint="a bucket keeps a history of each key, 1 or more; js.streams opens the stream",
        )
