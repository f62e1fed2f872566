"""The options of a write to `format("nats")`, batch and streaming."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

from natsstream.arguments import check_choice
from natsstream.errors import ConfigError
from pyspark_natsstream.options import ELSEWHERE, NatsOptions, flag, note, seconds, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

Guarantee: TypeAlias = Literal["exactly-once", "duplicate-window"]

_JOB_BYTES_MAX = 200

_NO_BUCKET = "a write goes to a stream, never to a bucket; js.kv and js.objects write to buckets"
_ONE_STREAM = "stream; a write goes to one"

UNNAMED = "once-"
"""Begin of the names of writes that have none."""


# Without repr=False it would not inherit the one that hides paths of secrets.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WriteOptions(NatsOptions):
    """The options of a write.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        **ELSEWHERE,
        "bucket": _NO_BUCKET,
        "objectbucket": _NO_BUCKET,
        "streams": _ONE_STREAM,
    }

    subject: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Subject of the messages; names of columns in braces stand for their values, as in "
            "`orders.{region}`. Default: the column `subject`.",
        ),
    )
    guarantee: Guarantee = field(
        default="exactly-once",
        metadata=note(
            str.strip,
            "`exactly-once`: each row is stored once, whatever crashes; needs nats-server 2.12. "
            "`duplicate-window`: message ids, so a row that is sent again within the stream's "
            "duplicate window is stored once; works on all servers. Default `exactly-once`.",
        ),
    )
    job: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Batch only. Name of the write: a second write of the same name stores the rows that "
            "are not stored yet. Default: each write is a new one.",
        ),
    )
    partitions: int | None = field(
        default=None,
        metadata=note(
            whole,
            "Number of partitions of the DataFrame (`df.rdd.getNumPartitions()`), kept with the "
            "rows: a task that runs again in a write with another number is refused. Default: the "
            "number is not compared.",
        ),
    )
    id_column: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Column with a text that identifies a row. It is the message id in the duplicate "
            "window; otherwise rows that are written again are compared by it. Default: rows are "
            "numbered, and compared as a whole.",
        ),
    )
    min_duplicate_window: float = field(
        default=600.0,
        metadata=note(
            seconds,
            "With `guarantee=duplicate-window`: seconds that the stream's duplicate window must "
            "have, above 0 to 3600. Default 600.",
        ),
    )
    update_stream: bool = field(
        default=False,
        metadata=note(
            flag,
            "Update the stream with the settings that exactly-once writes need. Default `false`.",
        ),
    )

    def __post_init__(self) -> None:
        NatsOptions.__post_init__(self)  # super() fails in a dataclass with slots.
        if self.subject == "":
            raise _bad_subject(self.subject, "it is empty")
        check_choice(self.guarantee, "guarantee", get_args(Guarantee))
        if self.job is not None and not 0 < len(self.job.encode()) <= _JOB_BYTES_MAX:
            raise ConfigError(
                f"job has {len(self.job.encode())} bytes, 1 to {_JOB_BYTES_MAX} are allowed",
                hint="give a name such as backfill-2026-11",
            )
        _ = self.subject_parts

    @property
    def subject_parts(self) -> tuple[tuple[str, str | None], ...]:
        """The subject as texts, each with the column that follows it; none without the option.

        Raises:
            ConfigError: The braces do not match, or are empty.
        """
        try:
            parsed = [*string.Formatter().parse(self.subject or "")]
        except ValueError as error:
            raise _bad_subject(self.subject, str(error)) from error
        for _, name, form, conversion in parsed:
            if name == "" or form or conversion:
                raise _bad_subject(self.subject, "braces hold the name of a column alone")
        return tuple((text, name) for text, name, _, _ in parsed)

    @property
    def is_repeatable(self) -> bool:
        """True if the user may run the write again, under its name."""
        return self.job is not None and not self.job.startswith(UNNAMED)

    def check_streaming(self) -> None:
        """Refuse options that only a batch write has.

        Raises:
            ConfigError: An option is for batch writes.
        """
        if self.job is not None:
            raise ConfigError(
                "job is for batch writes only",
                hint="leave it out: the query's checkpoint tells what is stored",
            )


def _bad_subject(subject: str | None, why: str) -> ConfigError:
    return ConfigError(f"subject is {subject!r}: {why}", hint="write it like orders.{region}")
