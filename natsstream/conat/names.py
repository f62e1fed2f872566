"""Where a core stream is: its storage path, its streams and its subjects; pure rules.

Law: no text of a user is part of a subject or of a stream's name. The streams are named after a
hash of service and path, and the stream's metadata has both.
Source: Conat persist/util.ts and auth.ts; core-stream.md sections 0, 1.10 and 5.1.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from natsstream.api.names import check_subject
from natsstream.arguments import check_text, check_utf8
from natsstream.conat.keys import key_of_token, token_of
from natsstream.conat.sizes import utf16_units
from natsstream.errors import ConfigError, StoragePathError

SERVICE = "persist"
"""The service of Conat's own streams."""
PREFIX = "cn"
"""The first token of all subjects, unless another one is chosen."""

_PATH_UNITS_MAX = 4_000
# The other tokens of the longest subject have 295 characters, and servers take 3,584.
_PREFIX_BYTES_MAX = 200
_ID_CHARS = 32
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def owner_path(account_id: str | None = None, project_id: str | None = None) -> str:
    """Return the folder of an owner's streams; an account counts before a project.

    Raises:
        StoragePathError: The id is no UUID.
    """
    for folder, owner_id in (("accounts", account_id), ("projects", project_id)):
        if owner_id is not None:
            if not _UUID.fullmatch(check_text(owner_id, f"the id in {folder}")):
                raise StoragePathError(
                    f"permission denied: {owner_id[:60]!r} is no UUID", hint="give the owner's id"
                )
            return f"{folder}/{owner_id}"
    return "hub"


def storage_path(name: str, *, account_id: str | None = None, project_id: str | None = None) -> str:
    """Return the path of a core stream: the owner's folder and the name.

    The two are joined as Node.js joins paths: `a//b` and `./a/b` name the same stream as `a/b`.

    Raises:
        ConfigError: The name is no text, or UTF-8 cannot encode it.
        StoragePathError: The name is empty; or the path is too long, has a slash at its end, or
            leaves the folder.
    """
    owner = owner_path(account_id, project_id)
    if not check_utf8(name, "the name"):
        raise StoragePathError(
            "permission denied: the name is empty", hint="give a name such as 'chat/general'"
        )
    joined = f"{owner}/{name}"
    end = "/" if joined.endswith("/") else ""
    return check_path(posixpath.normpath(joined) + end, owner)


def check_path(path: str, owner: str) -> str:
    """Return a path in an owner's folder.

    Args:
        path: The path.
        owner: The folder, as `owner_path` returns it.

    Raises:
        StoragePathError: Conat would answer with code 403.
    """
    if utf16_units(path) > _PATH_UNITS_MAX:
        reason = f"it exceeds {_PATH_UNITS_MAX:,} characters"
    elif path.startswith("/") or path.endswith("/"):
        reason = "it begins or ends with '/'"
    elif path != posixpath.normpath(path):
        reason = "it has '.', '..' or an empty part"
    elif not path.startswith(f"{owner}/"):
        reason = f"it is not under {owner}/"
    else:
        return path
    raise StoragePathError(
        f"permission denied: path {path[:80]!r} of a core stream: {reason}",
        hint="give a name such as 'chat/general'",
    )


class KeySubjects(Protocol):
    """Which stored subjects are of keys: those of a core stream, or of one that is only read."""

    @property
    def path(self) -> str:
        """The name for logs and errors."""
        ...

    def is_keyed(self, subject: str) -> bool:
        """Return True if a stored subject is that of a key."""
        ...

    def key_subjects(self, subjects: Iterable[str]) -> list[str]:
        """Return each stored subject that is of a key, and "" for any other."""
        ...

    def key_of(self, subject: str) -> str | None:
        """Return the key of a stored subject; None if the subject does not tell."""
        ...

    def subject_of(self, key: str | None) -> str:
        """Return the subject of a key."""
        ...


@dataclass(frozen=True, slots=True)
class StreamNames:
    """The streams and subjects of one core stream.

    Keyed messages have one subject for each key, all others share one. The server republishes both
    below `feed_filter`. `control` is there too, and no stored message is ever copied to it.

    Attributes:
        path: The storage path.
        service: The service, which has paths of its own.
        prefix: The first tokens of all subjects.
        id: The hash of service and path: 32 letters and digits.

    Raises:
        ConfigError: The prefix is too long, or the service is no text.
        SubjectError: The prefix is no part of a subject.
    """

    path: str
    service: str = SERVICE
    prefix: str = PREFIX
    id: str = field(init=False)

    def __post_init__(self) -> None:
        if len(check_subject(self.prefix).encode()) > _PREFIX_BYTES_MAX:
            raise ConfigError(
                f"the prefix {self.prefix[:40]!r}... exceeds {_PREFIX_BYTES_MAX} bytes",
                hint="give a short one, such as 'cn'",
            )
        texts = (check_utf8(self.service, "service"), check_utf8(self.path, "the path"))
        digest = hashlib.sha256("\0".join(texts).encode()).digest()
        stream_id = base64.b32encode(digest)[:_ID_CHARS].decode().lower()
        object.__setattr__(self, "id", stream_id)

    @property
    def stream(self) -> str:
        """The stream of all messages."""
        return f"CN_{self.id}"

    @property
    def blob_stream(self) -> str:
        """The stream of the chunks of big values."""
        return f"CNB_{self.id}"

    @property
    def unkeyed(self) -> str:
        """The subject of all messages without a key."""
        return f"{self.prefix}.d.{self.id}.m"

    @property
    def keys_filter(self) -> str:
        """The subjects of all keys."""
        return f"{self.prefix}.d.{self.id}.k.*"

    @property
    def data_filter(self) -> str:
        """The subjects of all messages, and of none of another stream."""
        return f"{self.prefix}.d.{self.id}.>"

    @property
    def feed_filter(self) -> str:
        """The subjects of the live feed and of announcements."""
        return f"{self.prefix}.f.{self.id}.>"

    @property
    def control(self) -> str:
        """The subject of announcements between clients, which no stream stores."""
        return f"{self.prefix}.f.{self.id}.ctl"

    @property
    def blobs_filter(self) -> str:
        """The subjects of all big values."""
        return f"{self.prefix}.b.{self.id}.*"

    def blob(self, blob_id: str) -> str:
        """Return the subject of a big value's chunks."""
        return f"{self.prefix}.b.{self.id}.{blob_id}"

    def subject_of(self, key: str | None) -> str:
        """Return the subject to publish to.

        Raises:
            ConfigError: The key is no text, or UTF-8 cannot encode it.
        """
        return self.unkeyed if key is None else f"{self.keys_filter[:-1]}{token_of(key)}"

    def is_keyed(self, subject: str) -> bool:
        """Return True if a stored subject is that of a key."""
        return subject.startswith(self.keys_filter[:-1])

    def key_subjects(self, subjects: Iterable[str]) -> list[str]:
        """Return each stored subject that is of a key, and "" for any other."""
        start = self.keys_filter[:-1]
        return [subject if subject.startswith(start) else "" for subject in subjects]

    def key_of(self, subject: str) -> str | None:
        """Return the key of a stored subject; None for none, a long one or a foreign token."""
        return (
            key_of_token(subject[len(self.keys_filter) - 1 :]) if self.is_keyed(subject) else None
        )

    def feed_of(self, subject: str) -> str:
        """Return the subject to which a stored subject's messages are republished."""
        return self.feed_filter[:-1] + subject[len(self.data_filter) - 1 :]

    def data_of(self, subject: str) -> str | None:
        """Return the stored subject of one in the feed; None for an announcement."""
        rest = subject[len(self.feed_filter) - 1 :]
        return self.data_filter[:-1] + rest if rest == "m" or rest.startswith("k.") else None
