"""The options of a read of a key-value bucket with `format("nats")`.

Law: a bucket is read as its stream is. The name of the stream and its filters follow from the name
of the bucket and the keys, so they are no options here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from natsstream.api.names import drop_covered
from natsstream.errors import ConfigError
from natsstream.kv.conventions import BUCKET
from natsstream.kv.keys import check_key_filter
from pyspark_natsstream.options import filters, flag, note, spark_name
from pyspark_natsstream.payloads import DataFormat, Mode
from pyspark_natsstream.read_options import EARLIEST, LATEST, PENDING_BYTES, ReadOptions


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BucketOptions(ReadOptions):
    """The options of a read of a bucket.

    Attributes:
        stream: Name of the stream that holds the bucket.
        subjects: The filters of keys that no other one covers.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    bucket: str = field(
        metadata=note(
            str.strip,
            "Name of the key-value bucket, instead of `stream`. The options of reads apply, but "
            "not `subjects`, `includeHeaders`, `control` and `maxPendingBytes`.",
        )
    )
    keys: tuple[str, ...] = field(
        default=(),
        metadata=note(
            filters,
            "Filters of keys such as `orders.*,eu.>`; the server sends only matching keys. "
            "Default: every key.",
        ),
    )
    history: bool = field(
        default=False,
        metadata=note(
            flag,
            "Every revision that the bucket keeps, with the markers of deleted keys, instead of "
            "each key's value now. Streaming queries always read them. Default `false`.",
        ),
    )
    stream: str = field(init=False, default="")
    subjects: tuple[str, ...] = field(init=False, default=())
    max_pending_bytes: int = field(init=False, default=PENDING_BYTES)
    include_headers: bool = field(init=False, default=False)
    control: bool = field(init=False, default=False)
    data_format: DataFormat = field(init=False, default="bytes")
    mode: Mode = field(init=False, default="FAILFAST")
    filter_pushdown: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stream", BUCKET.stream_of(self.bucket))
        object.__setattr__(self, "subjects", drop_covered(map(check_key_filter, self.keys)))
        ReadOptions.__post_init__(self)  # super() fails in a dataclass with slots.
        if self.starting_offsets.anchor == "newest":
            raise ConfigError(
                f"startingOffsets of a bucket cannot be {self.starting_offsets}",
                hint="write earliest, latest, first_seq:N (a revision), or start_time:RFC3339",
            )

    @property
    def eviction_is_loss(self) -> bool:
        """False: newer revisions replace the oldest ones of a bucket."""
        return False

    def check_batch(self) -> None:
        """Refuse options that a batch read of a bucket does not have.

        Raises:
            ConfigError: An option is for streaming queries, or for `history=true`.
        """
        ReadOptions.check_batch(self)
        if self.history:
            return
        plain = {"starting_offsets": EARLIEST, "ending_offsets": LATEST, "min_partitions": 1}
        for name, default in (plain | {"max_records_per_partition": None}).items():
            if getattr(self, name) != default:
                raise ConfigError(
                    f"{spark_name(name)} needs history=true",
                    hint="a read of the values now is one range: that of the whole bucket",
                )
