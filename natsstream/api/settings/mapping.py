"""Subject mappings of a stream: before it stores, and when it republishes.

Law: see `setting.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from natsstream.api.settings.field_kinds import FILLED_TEXT, FILTER_OR_EMPTY, TEXT, FieldKind
from natsstream.api.settings.setting import Setting
from natsstream.constructors import answers_arguments


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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

    _noun: ClassVar[str] = "subject_transform"
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "source": FILTER_OR_EMPTY.named("src"),
        "destination": TEXT.named("dest"),
    }


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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

    _noun: ClassVar[str] = "republish"
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "source": FILTER_OR_EMPTY.named("src"),
        "destination": FILLED_TEXT.named("dest"),
    }
