"""Where a stream's replicas stand.

Law: see `setting.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from natsstream.api.settings.setting import Setting
from natsstream.constructors import answers_arguments


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Placement(Setting):
    """Which servers may hold a stream.

    Attributes:
        cluster: Name of the cluster; None is any.
        tags: Server tags that all must be there.
        preferred: Server that shall lead; for requests to step down only, streams refuse it (2.11).
        extra: Fields that the server sent and this version does not know.
    """

    cluster: str | None = None
    tags: Sequence[str] | None = None
    preferred: str | None = None

    _noun: ClassVar[str] = "placement"
