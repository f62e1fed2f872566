"""The limits that a stream sets for its consumers.

Law: see `setting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, cast

from natsstream.api.settings.plain_fields import check_duration, check_limit
from natsstream.api.settings.setting import Reader, Setting, Writer
from natsstream.fields import Fields
from natsstream.units import duration_ns


def _nanoseconds(value: object) -> int:
    return duration_ns(cast("float | timedelta", value))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLimits(Setting):
    """Defaults of a stream's consumers, and their upper bounds too (2.10).

    Attributes:
        inactive_threshold: Seconds after which an unused consumer is deleted; 0 sets neither a
            default nor a bound.
        max_ack_pending: Unacknowledged messages of one consumer; -1 is no limit.
        extra: Fields that the server sent and this version does not know.
    """

    inactive_threshold: float | timedelta | None = None
    max_ack_pending: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {
        "inactive_threshold": "inactive_threshold",
        "max_ack_pending": "max_ack_pending",
    }
    _readers: ClassVar[Mapping[str, Reader]] = {
        "inactive_threshold": Fields.seconds,
        "max_ack_pending": Fields.integer,
    }
    _writers: ClassVar[Mapping[str, Writer]] = {"inactive_threshold": _nanoseconds}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
        """
        if self.inactive_threshold is not None:
            check_duration(self.inactive_threshold, "consumer_limits.inactive_threshold")
        if self.max_ack_pending is not None:
            check_limit(self.max_ack_pending, "consumer_limits.max_ack_pending")
