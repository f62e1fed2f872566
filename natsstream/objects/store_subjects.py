"""The subjects of a store: those of its chunks and those of its metas.

Law: every client publishes to these subjects as they are, also through a domain or an API prefix:
servers map `$OBJ.` there, which no client publishes to, and not `$O.`.
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
        bucket: The store's name.
    """

    bucket: str

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return STREAM_PREFIX + self.bucket

    @property
    def chunk_filter(self) -> str:
        """The filter for all chunks."""
        return _CHUNKS.format(self.bucket) + ">"

    @property
    def meta_filter(self) -> str:
        """The filter for all metas."""
        return _METAS.format(self.bucket) + ">"

    def chunk_subject(self, nuid: str) -> str:
        """Return the subject of the chunks with a nuid."""
        return _CHUNKS.format(self.bucket) + nuid

    def nuid_of(self, subject: str) -> str:
        """Return the nuid in a subject of chunks."""
        return subject[len(_CHUNKS.format(self.bucket)) :]

    def meta_subject(self, name: str) -> str:
        """Return the subject of an object's meta."""
        encoded = base64.urlsafe_b64encode(name.encode()).decode()
        return _METAS.format(self.bucket) + encoded

    def name_of(self, subject: str) -> str | None:
        """Return the object's name in a meta's subject; None if no client writes that subject."""
        encoded = subject[len(_METAS.format(self.bucket)) :]
        try:
            name = base64.b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            return None
        return name if name and self.meta_subject(name) == subject else None


def domain_of(api_prefix: str) -> str:
    """Return the domain in an API prefix, or an empty text."""
    match = _DOMAIN_PREFIX.fullmatch(api_prefix)
    return match[1] if match else ""
