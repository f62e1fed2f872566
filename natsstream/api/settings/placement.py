"""Where a stream's replicas stand.

Law: see `setting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from natsstream.api.settings.setting import Reader, Setting
from natsstream.arguments import check_text, check_texts
from natsstream.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
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
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {
        "cluster": "cluster",
        "tags": "tags",
        "preferred": "preferred",
    }
    _readers: ClassVar[Mapping[str, Reader]] = {"tags": Fields.texts}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
        """
        for name in ("cluster", "preferred"):
            if getattr(self, name) is not None:
                check_text(getattr(self, name), f"placement.{name}")
        if self.tags is not None:
            check_texts(self.tags, "placement.tags")
