"""What may be the name of an object store and of an object; pure rules.

Law: any text that UTF-8 can write is a name as long as its subject is short enough: a server closes
the connection on a longer one. What can not be a name is refused before anything is sent.
Source: ADR-20; nats.go jetstream/object.go validBucketRe, encodeName.
"""

from __future__ import annotations

import re
import secrets
import string

from natsstream.api.names import STREAM_NAME_BYTES_MAX, SUBJECT_BYTES_MAX
from natsstream.arguments import check_text, described
from natsstream.errors import ObjectNameError
from natsstream.objects.kind import STORE
from natsstream.objects.store_subjects import STREAM_PREFIX, StoreSubjects

BUCKET_NAME_CHARS_MAX = STREAM_NAME_BYTES_MAX - len(STREAM_PREFIX)
# A nuid is one token of a subject that is purged: with a wildcard it would take the whole store.
_NUID = re.compile(r"[^\s.*>\x00-\x1f\x7f\ud800-\udfff]+")
_NUID_CHARS_MAX = 255
_NUID_CHARS = string.digits + string.ascii_letters
_NUID_SIZE = 22


def check_bucket_name(bucket: object) -> str:
    """Return the name of an object store.

    Raises:
        BucketNameError: It is none.
    """
    return STORE.check_name(bucket)


def check_object_name(
    name: object, subjects: StoreSubjects, what: str = "the object's name"
) -> str:
    """Return the name of an object.

    Args:
        name: What was given.
        subjects: The store's subjects.
        what: What errors call it.

    Raises:
        ObjectNameError: It is no text, empty, too long, or has half of a surrogate pair, which is
            what Python makes of bytes that are no UTF-8.
    """
    text = check_text(name, what, error=ObjectNameError)
    if not text:
        raise ObjectNameError(f"{what} is empty", hint="give a name such as 'a.bin'")
    try:
        subject = subjects.meta_subject(text)
    except UnicodeEncodeError as error:
        raise ObjectNameError(
            f"{what} {described(text, with_type=False)} is no text that UTF-8 can write",
            detail=str(error),
            hint="decode file names with errors='replace', or give a name of your own",
        ) from None
    if len(subject) > SUBJECT_BYTES_MAX:
        raise ObjectNameError(
            f"{what} {text[:40]!r}... has {len(text.encode())} bytes",
            hint=f"names in store {subjects.bucket} have at most {name_bytes_max(subjects)} bytes: "
            "the server closes the connection on longer subjects",
        )
    return text


def name_bytes_max(subjects: StoreSubjects) -> int:
    """Return the most bytes that the name of an object can have: base64 makes 4 of 3."""
    room = SUBJECT_BYTES_MAX - len(subjects.meta_filter[:-1])
    return room // 4 * 3


def is_nuid(value: object) -> bool:
    """Tell whether a text can be the last token of the subject of chunks, and of no others."""
    return (
        isinstance(value, str)
        and len(value) <= _NUID_CHARS_MAX
        and _NUID.fullmatch(value) is not None
    )


def new_nuid() -> str:
    """Return a text that nobody else will come upon, such as every client names chunks by."""
    return "".join(secrets.choice(_NUID_CHARS) for _ in range(_NUID_SIZE))
