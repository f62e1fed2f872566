"""The subjects of a store, of its chunks and its metas, and the legal names of its objects.

Law: any text that UTF-8 can encode is an object's name if its subject is short enough: a server
closes the connection on a longer one. Illegal names are refused before anything is sent. Every
client publishes to these subjects as they are, also through a domain or an API prefix:
servers map `$OBJ.` there, which no client publishes to, and not `$O.`.
Source: ADR-20; nats.go jetstream/object.go; nats-server jetstream_api.go generateJSMappingTable.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from natsstream.api.names import SUBJECT_BYTES_MAX
from natsstream.arguments import check_text, described
from natsstream.errors import ObjectNameError

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

    @property
    def name_bytes_max(self) -> int:
        """The most bytes of an object's name: base64 encodes 3 as 4."""
        room = SUBJECT_BYTES_MAX - len(self.meta_filter[:-1])
        return room // 4 * 3

    def check_object_name(self, name: object, what: str = "the object's name") -> str:
        """Return the legal name of an object.

        Args:
            name: The caller's value.
            what: Its name in errors.

        Raises:
            ObjectNameError: It is no text, empty, too long, or has half of a surrogate pair, as
                Python decodes bytes that are no UTF-8.
        """
        text = check_text(name, what, error=ObjectNameError)
        if not text:
            raise ObjectNameError(f"{what} is empty", hint="give a name such as 'a.bin'")
        try:
            subject = self.meta_subject(text)
        except UnicodeEncodeError as error:
            raise ObjectNameError(
                f"{what} {described(text, with_type=False)} is no text that UTF-8 can encode",
                detail=str(error),
                hint="decode file names with errors='replace', or give a name of your own",
            ) from None
        if len(subject) > SUBJECT_BYTES_MAX:
            raise ObjectNameError(
                f"{what} {text[:40]!r}... has {len(text.encode())} bytes",
                hint=f"names in store {self.bucket} have at most {self.name_bytes_max} bytes: the "
                "server closes the connection on longer subjects",
            )
        return text

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
