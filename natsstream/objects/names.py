"""The legal names of object stores and objects; pure rules.

Law: any text that UTF-8 can encode is an object's name if its subject is short enough: a server
closes the connection on a longer one. Illegal names are refused before anything is sent.
Source: ADR-20; nats.go jetstream/object.go validBucketRe, encodeName.
"""

from __future__ import annotations

import re
import secrets
import string

from natsstream.api.names import SUBJECT_BYTES_MAX
from natsstream.arguments import check_text, described
from natsstream.errors import ObjectNameError
from natsstream.objects.store_subjects import StoreSubjects

# A nuid is one token of a subject that is purged: with a wildcard it would take the whole store.
_NUID = re.compile(r"[^\s.*>\x00-\x1f\x7f\ud800-\udfff]+")
_NUID_CHARS_MAX = 255
_NUID_CHARS = string.digits + string.ascii_letters
_NUID_SIZE = 22


def check_object_name(
    name: object, subjects: StoreSubjects, what: str = "the object's name"
) -> str:
    """Return the legal name of an object.

    Args:
        name: The caller's value.
        subjects: The store's subjects.
        what: Its name in errors.

    Raises:
        ObjectNameError: It is no text, empty, too long, or has half of a surrogate pair, as Python
            decodes bytes that are no UTF-8.
    """
    text = check_text(name, what, error=ObjectNameError)
    if not text:
        raise ObjectNameError(f"{what} is empty", hint="give a name such as 'a.bin'")
    try:
        subject = subjects.meta_subject(text)
    except UnicodeEncodeError as error:
        raise ObjectNameError(
            f"{what} {described(text, with_type=False)} is no text that UTF-8 can encode",
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
    """Return the most bytes of an object's name: base64 encodes 3 as 4."""
    room = SUBJECT_BYTES_MAX - len(subjects.meta_filter[:-1])
    return room // 4 * 3


def is_nuid(value: object) -> bool:
    """Return True if a value can be the last token of a subject, and no wildcard."""
    return (
        isinstance(value, str)
        and len(value) <= _NUID_CHARS_MAX
        and _NUID.fullmatch(value) is not None
    )


def new_nuid() -> str:
    """Return a new unique id for the subject of an object's chunks."""
    return "".join(secrets.choice(_NUID_CHARS) for _ in range(_NUID_SIZE))
