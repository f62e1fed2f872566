"""The options of a read of an object bucket with `format("nats")`."""

from __future__ import annotations

from dataclasses import dataclass, field

from natsstream.errors import ConfigError
from natsstream.objects.kind import STORE
from pyspark_natsstream.options import NatsOptions, note, whole, words
from pyspark_natsstream.schema import CONTENT, OBJECT_TYPES

CONTENT_BYTES_MAX = 2**31 - 1 - 1024
"""Bytes of content at most: Spark holds a value as one Java array, whose length is an int."""

_GLOB_ONLY_SPARK = "{}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObjectOptions(NatsOptions):
    """The options of a read of an object bucket.

    Attributes:
        stream: Name of the stream that holds the bucket.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    object_bucket: str = field(
        metadata=note(
            str.strip,
            "Name of the object bucket, instead of `stream`. Batch only.",
        )
    )
    columns: tuple[str, ...] = field(
        default=(),
        metadata=note(
            words,
            "Columns to build, instead of `.schema()`, such as `path,content`. "
            "Default: every column but `content`.",
        ),
    )
    path_glob_filter: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Only objects whose whole name matches: `*` is any text, also with slashes, `?` one "
            "character, `[ab]` one of several. Default: every object.",
        ),
    )
    max_object_size: int | None = field(
        default=None,
        metadata=note(
            whole,
            "Bytes of an object, 1 or more, above which its `content` is null. "
            "Default: an object that does not fit into a Spark value, 2 GiB, fails the read.",
        ),
    )
    max_bytes_per_partition: int = field(
        default=128 << 20,
        metadata=note(
            whole,
            "Bytes of content that one task reads, 1 or more; a larger object has a task of its "
            "own. Default 134217728, as for Spark's files.",
        ),
    )
    stream: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "stream", STORE.stream_of(self.object_bucket))
        NatsOptions.__post_init__(self)  # super() fails in a dataclass with slots.
        unknown = [name for name in self.columns if name not in OBJECT_TYPES]
        if unknown or len(set(self.columns)) < len(self.columns):
            told = f"has no column {unknown[0]!r}" if unknown else "names a column twice"
            raise ConfigError(f"columns {told}", hint=f"choose from {', '.join(OBJECT_TYPES)}")
        glob = self.path_glob_filter
        if glob is not None and (not glob or set(_GLOB_ONLY_SPARK) & set(glob)):
            raise ConfigError(
                f"pathGlobFilter is {glob!r}",
                hint="write it with * ? and [ab]; alternatives in braces are not supported",
            )

    @property
    def default_columns(self) -> tuple[str, ...]:
        """The columns of a read without a schema of its own."""
        return self.columns or tuple(name for name in OBJECT_TYPES if name != CONTENT)
