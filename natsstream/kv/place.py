"""Where a bucket's keys are: the subjects that it is read under and written to.

What lives here: the prefixes, and key to subject and back. What must not: which keys are legal
(`keys.py`), and finding out what a stream mirrors (`manager.py`).

Law: both prefixes end in a dot. They differ where a mirror is read here and written at its origin,
or where the connection reaches JetStream under a domain or an API prefix (ADR-19).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The subjects of one bucket.

    Attributes:
        bucket: Its name.
        stream: The stream that holds it.
        read_prefix: What stands before a key in a stored subject.
        write_prefix: What stands before a key in the subject that is published to.
    """

    bucket: str
    stream: str
    read_prefix: str
    write_prefix: str

    def read_subject(self, key: str) -> str:
        """Return the subject that a key, or a filter of keys, is stored under."""
        return self.read_prefix + key

    def write_subject(self, key: str) -> str:
        """Return the subject that a key is published to."""
        return self.write_prefix + key

    def key_of(self, subject: str) -> str:
        """Return the key of a stored subject."""
        return subject[len(self.read_prefix) :]
