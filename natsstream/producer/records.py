"""The records of a producer: what the stream itself knows of it; pure rules.

Law: the record is stored together with the messages that it describes. Its sequence in the stream
is the producer's token: whoever writes the next record must name it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from itertools import pairwise

from natsstream.api.control import PAST_KEY, Span, read_past
from natsstream.errors import ControlRecordError
from natsstream.fields import Fields
from natsstream.values import to_json

# The instances that a record remembers, so that each learns which of its batches are stored.
_PREVIOUS_MAX = 8
_VERSION = 1
# Each kill of a server leaves one mark at most, until the producer has stored a batch.
_MARKS_BEFORE_MAX = 8


@dataclass(frozen=True, slots=True)
class Instance:
    """One life of a producer, and the last batch that is stored of it.

    Attributes:
        epoch: Its epoch.
        owner: A random text of its own.
        seq: The number of its last stored batch, from 0; -1 for none.
        first: Messages of all instances before it.
    """

    epoch: int
    owner: str
    seq: int = -1
    first: int = 0

    def is_same(self, other: Instance) -> bool:
        """Return True for the same life, whatever is stored of it."""
        return (self.epoch, self.owner) == (other.epoch, other.owner)


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The state of a producer after its last stored batch.

    Attributes:
        instance: The instance that wrote it.
        count: Messages of all instances.
        checkpoint: The application's position, as JSON; None for none.
        is_closed: True if the producer has ended the stream.
        previous: Earlier instances, the newest first.
        past: Sequences of the records that it has replaced, some at both ends: readers tell by them
            that a vanished beginning of the stream held no data.
    """

    instance: Instance
    count: int = 0
    checkpoint: object = None
    is_closed: bool = False
    previous: tuple[Instance, ...] = ()
    past: tuple[Span, ...] = ()

    @property
    def epoch(self) -> int:
        """The epoch of the instance that wrote it."""
        return self.instance.epoch

    @property
    def seq(self) -> int:
        """The number of the last stored batch of that instance; -1 for none."""
        return self.instance.seq

    def followed_by(self, instance: Instance) -> StateRecord:
        """Return the record of an instance that follows this one."""
        if self.instance.is_same(instance):
            return replace(self, instance=replace(instance, first=self.instance.first))
        instance = replace(instance, first=self.count)
        previous = (self.instance, *self.previous)[:_PREVIOUS_MAX]
        return replace(self, instance=instance, previous=previous)

    def find(self, epoch: int, owner: str) -> Instance | None:
        """Return what is known of an instance; None for one that is not remembered."""
        for each in (self.instance, *self.previous):
            if (each.epoch, each.owner) == (epoch, owner):
                return each
        return None

    def heir_of(self, instance: Instance) -> Instance | None:
        """Return the instance that replaced one; None for one that is not remembered."""
        known = (self.instance, *self.previous)
        for heir, each in pairwise(known):
            if each.is_same(instance):
                return heir
        return None

    def to_json(self) -> bytes:
        """Return the payload."""
        body = {
            "v": _VERSION,
            **_plain(self.instance),
            "n": self.count,
            "ckpt": self.checkpoint,
            "closed": self.is_closed,
            "prev": [_plain(each) for each in self.previous],
            PAST_KEY: self.past,
        }
        return to_json(body).encode()

    @classmethod
    def from_json(cls, data: bytes) -> StateRecord:
        """Return the record in a payload.

        Raises:
            ControlRecordError: It is none, or one of a later version.
        """
        fields = Fields.parse(data, "a producer's state record", error=ControlRecordError)
        version = fields.count("v")
        if version != _VERSION:
            raise ControlRecordError(
                f"a producer's state record has version {version}",
                hint="upgrade natsstream: a newer one has written the record",
            )
        return cls(
            _instance(fields),
            fields.count("n"),
            fields.raw.get("ckpt"),
            fields.flag("closed"),
            tuple(map(_instance, fields.parts("prev"))),
            read_past(fields.raw.get(PAST_KEY)),
        )


@dataclass(frozen=True, slots=True)
class BatchMark:
    """The mark in front of a batch.

    Attributes:
        count: Messages behind it up to the state record, which is the last of them.
        before: Sequences of earlier marks that are in no state record.
    """

    count: int
    before: tuple[int, ...] = ()

    def to_json(self) -> bytes:
        """Return the payload; it tells what it has replaced as a state record does."""
        past = [(sequence, sequence) for sequence in self.before[-_MARKS_BEFORE_MAX:]]
        return to_json({"n": self.count, PAST_KEY: past}).encode()

    @classmethod
    def from_json(cls, data: bytes) -> BatchMark:
        """Return the mark in a payload.

        Raises:
            ControlRecordError: It is none.
        """
        fields = Fields.parse(data, "the mark of a batch", error=ControlRecordError)
        spans = read_past(fields.raw.get(PAST_KEY))
        return cls(fields.count("n") or 0, tuple(first for first, _ in spans))


def token_of(producer_id: str) -> str:
    """Return the token of a subject for any id: unpadded base64url."""
    return base64.urlsafe_b64encode(producer_id.encode()).decode().rstrip("=")


def _plain(instance: Instance) -> dict[str, object]:
    return {
        "epoch": instance.epoch,
        "seq": instance.seq,
        "owner": instance.owner,
        "first": instance.first,
    }


def _instance(fields: Fields) -> Instance:
    return Instance(
        fields.count("epoch"), fields.text("owner"), fields.integer("seq"), fields.count("first")
    )
