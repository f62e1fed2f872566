"""The limits that a stream sets for its consumers.

Law: see `setting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from natsstream.api.settings.field_kinds import LIMIT, FieldKind
from natsstream.api.settings.setting import Setting
from natsstream.constructors import answers_arguments


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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

    _noun: ClassVar[str] = "consumer_limits"
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {"max_ack_pending": LIMIT}
