"""Subject mappings of a stream: before it stores, and when it republishes.

Law: see `setting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from natsstream.api.names import check_filter
from natsstream.api.settings.setting import Reader, Setting
from natsstream.arguments import check_bool, check_text
from natsstream.errors import ConfigError
from natsstream.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTransform(Setting):
    """A subject mapping that a stream applies before it stores (2.10).

    Attributes:
        source: Subjects that it maps, with wildcards.
        destination: The new subject, such as `orders.{{wildcard(1)}}`; empty keeps the subject, so
            that a source's transform is only a filter.
        extra: Fields that the server sent and this version does not know.
    """

    source: str
    destination: str = ""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {"src": "source", "dest": "destination"}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
            SubjectError: The source is no subject.
        """
        if check_text(self.source, "source of a subject transform"):
            check_filter(self.source)
        check_text(self.destination, "destination of a subject transform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Republish(Setting):
    """Republishes each stored message to plain NATS, before the publisher gets its ack.

    Headers of the copy hold the stream, subject, sequence, time, and the previous sequence of the
    same subject.

    Attributes:
        source: Subjects that are copied, with wildcards; None is all.
        destination: The new subject, such as `copy.>`; not a subject of the stream itself.
        headers_only: True leaves the payload out; a header has its size.
        extra: Fields that the server sent and this version does not know.
    """

    source: str | None = None
    destination: str
    headers_only: bool | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    _json_names: ClassVar[Mapping[str, str]] = {
        "src": "source",
        "dest": "destination",
        "headers_only": "headers_only",
    }
    _readers: ClassVar[Mapping[str, Reader]] = {"headers_only": Fields.flag}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
            SubjectError: The source is no subject.
        """
        if self.source is not None and check_text(self.source, "republish.source"):
            check_filter(self.source)
        if not check_text(self.destination, "republish.destination"):
            raise ConfigError("republish.destination is empty", hint="where do the copies go?")
        if self.headers_only is not None:
            check_bool(self.headers_only, "republish.headers_only")
