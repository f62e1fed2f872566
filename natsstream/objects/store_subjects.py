"""Where a store's objects are: the subjects of its chunks and of what it says of its objects.

Law: every client writes these subjects as they are, also where it reaches JetStream under a domain
or an API prefix: servers map `$OBJ.` there, which nobody writes, and not `$O.`.
Source: ADR-20; nats.go jetstream/object.go; nats-server jetstream_api.go generateJSMappingTable.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

STREAM_PREFIX = "OBJ_"
_CHUNKS = "$O.{}.C."
_METAS = "$O.{}.M."
_DOMAIN_PREFIX = re.compile(r"\$JS\.([^.]+)\.API")


@dataclass(frozen=True, slots=True)
class StoreSubjects:
    """The subjects of one store.

    Attributes:
        bucket: Its name.
    """

    bucket: str

    @property
    def stream(self) -> str:
        """The stream that holds it."""
        return STREAM_PREFIX + self.bucket

    @property
    def chunk_filter(self) -> str:
        """All subjects of chunks."""
        return _CHUNKS.format(self.bucket) + ">"

    @property
    def meta_filter(self) -> str:
        """All subjects of what the store says of its objects."""
        return _METAS.format(self.bucket) + ">"

    def chunk_subject(self, nuid: str) -> str:
        """Return the subject of the chunks that are kept under a nuid."""
        return _CHUNKS.format(self.bucket) + nuid

    def nuid_of(self, subject: str) -> str:
        """Return the nuid in the subject of chunks."""
        return subject[len(_CHUNKS.format(self.bucket)) :]

    def meta_subject(self, name: str) -> str:
        """Return the subject of what the store says of an object."""
        encoded = base64.urlsafe_b64encode(name.encode()).decode()
        return _METAS.format(self.bucket) + encoded

    def name_of(self, subject: str) -> str | None:
        """Return the object's name in such a subject; None where no client would write it."""
        encoded = subject[len(_METAS.format(self.bucket)) :]
        try:
            name = base64.b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        return name if name and self.meta_subject(name) == subject else None


def domain_of(api_prefix: str) -> str:
    """Return the domain that requests under a prefix go to; empty where the prefix names none."""
    found = _DOMAIN_PREFIX.fullmatch(api_prefix)
    return found[1] if found else ""
