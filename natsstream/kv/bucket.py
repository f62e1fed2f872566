"""One bucket: the parts of its surface, put together."""

from __future__ import annotations

from natsstream.kv.doors.part import Part


class KeyValue(Part):
    """A key-value bucket; made by `js.kv`.

    Attributes:
        name: Its name.
    """

    def __repr__(self) -> str:
        return f"<KeyValue {self.name}>"
