"""The record that ends a stream: who closed it; pure rules.

```
{"v":1,"producer":"order-service-1","epoch":3,"seq":17}
```

It stands directly behind the last message, which may be stored together with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.errors import ControlRecordError
from natsstream.fields import Fields
from natsstream.values import to_json

_VERSION = 1
_WHAT = "the end of the stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfStream:
    """The end of a stream, as the producer that closed it wrote it.

    Attributes:
        producer_id: Id of the producer that closed it.
        epoch: That producer's epoch.
        seq: Number of the closing batch in this epoch.
    """

    producer_id: str
    epoch: int
    seq: int

    def to_json(self) -> bytes:
        """Return the record's payload."""
        record = {
            "v": _VERSION,
            "producer": self.producer_id,
            "epoch": self.epoch,
            "seq": self.seq,
        }
        return to_json(record, ascii_only=True).encode()

    @classmethod
    def from_json(cls, data: bytes) -> EndOfStream:
        """Return what a record's payload says.

        Raises:
            ControlRecordError: The payload is another one, or of a newer version.
        """
        fields = Fields.parse(data, _WHAT, error=ControlRecordError)
        if (version := fields.count("v", None)) != _VERSION:
            raise ControlRecordError(
                f"{_WHAT} has version {version}, not {_VERSION}",
                hint="a newer natsstream wrote it: update this one",
            )
        return cls(
            producer_id=fields.text("producer"),
            epoch=fields.count("epoch", None),
            seq=fields.count("seq", None),
        )
