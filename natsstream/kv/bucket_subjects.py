"""The subjects of a bucket's keys, for reads and for writes.

Law: every key is checked here before it becomes a subject, so that no illegal key, and no filter in
place of a key, reaches a server. Both prefixes end in a dot. They differ for a mirror, which is
read here and written at its origin, and under a domain or an API prefix (ADR-19).
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.names import SUBJECT_BYTES_MAX, reached_under
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import check_text
from natsstream.errors import CodecError, KeyNameError
from natsstream.kv.codecs import KeyCodec, ValueCodec, encoded_filter
from natsstream.kv.conventions import STREAM_PREFIX, SUBJECT_PREFIX
from natsstream.kv.keys import ONE_BY_ONE, check_key, check_key_filter, shown


@dataclass(frozen=True, slots=True)
class BucketSubjects:
    """The subjects of one bucket.

    Attributes:
        bucket: Its name.
        stream: The stream that holds it.
        read_prefix: The prefix of a key in a stored subject.
        write_prefix: The prefix of a key in the subject to publish to.
        key_codec: Encodes keys; None leaves them as they are.
        value_codec: Encodes the bytes of values; None leaves them as they are.
    """

    bucket: str
    stream: str
    read_prefix: str
    write_prefix: str
    key_codec: KeyCodec | None = None
    value_codec: ValueCodec | None = None

    def read_subject(self, key: str) -> str:
        """Return the subject under which a key is stored.

        Raises:
            KeyNameError: It is no legal key, or too long for a subject.
        """
        return self._subject(self.read_prefix, self.stored_key(key), key)

    def read_filter(self, filter: str) -> str:  # noqa: A002 - The field's own word.
        """Return the subject of a filter of keys; `*` and `>` are wildcards.

        Raises:
            KeyNameError: It is no legal filter, too long, or the codec takes no wildcards.
        """
        stored = check_text(filter, "filter", error=KeyNameError, hint=ONE_BY_ONE)
        if self.key_codec is not None:
            stored = encoded_filter(self.key_codec, filter)
        return self._subject(self.read_prefix, check_key_filter(stored), filter)

    def write_subject(self, key: str) -> str:
        """Return the subject to publish a key to.

        Raises:
            KeyNameError: It is no legal key, or too long for a subject.
        """
        return self._subject(self.write_prefix, self.stored_key(key), key)

    def stored_key(self, key: str) -> str:
        """Return a key as it is stored.

        Raises:
            KeyNameError: It is no legal key.
        """
        if self.key_codec is None:
            return check_key(key)
        return check_key(self.key_codec.encode(check_text(key, "key", error=KeyNameError)))

    def key_of(self, subject: str) -> str:
        """Return the key of a stored subject.

        Raises:
            CodecError: The codec cannot decode it.
        """
        stored = subject[len(self.read_prefix) :]
        if self.key_codec is None:
            return stored
        try:
            return self.key_codec.decode(stored)
        except ValueError as error:
            raise CodecError(
                f"bucket {self.bucket}: {self.key_codec!r} cannot decode key {shown(stored)}",
                bucket=self.bucket,
                key=stored,
                detail=str(error),
                hint="another program wrote it without the codec; read the bucket without it",
            ) from error

    def stored_value(self, value: bytes) -> bytes:
        """Return the bytes of a value as they are stored."""
        return value if self.value_codec is None else self.value_codec.encode(value)

    def value_of(self, stored: bytes, key: str, revision: int) -> bytes:
        """Return the bytes of a stored value.

        Args:
            stored: The stored bytes.
            key: The key, for errors.
            revision: The revision, for errors.

        Raises:
            CodecError: The codec cannot decode them.
        """
        if self.value_codec is None:
            return stored
        try:
            return self.value_codec.decode(stored)
        except ValueError as error:
            raise CodecError(
                f"bucket {self.bucket}: {self.value_codec!r} cannot decode the value of key "
                f"{shown(key)} at revision {revision}",
                bucket=self.bucket,
                key=key,
                revision=revision,
                detail=str(error),
                hint="another program wrote it without the codec; read the key without it",
            ) from error

    def _subject(self, prefix: str, stored: str, key: str) -> str:
        # The prefixes differ in length, and the longer subject must fit.
        longest = max(len(self.read_prefix), len(self.write_prefix)) + len(stored)
        if longest > SUBJECT_BYTES_MAX:
            room = SUBJECT_BYTES_MAX - longest + len(stored)
            raise KeyNameError(
                f"key {shown(key)} is too long: {len(stored)} bytes as it is stored, and bucket "
                f"{self.bucket} has room for {room}",
                hint="the server closes the connection on longer subjects; shorten it, or hash it",
            )
        return prefix + stored


def subjects_of(
    config: StreamConfig, api_prefix: str, origin: BucketSubjects | None = None
) -> BucketSubjects:
    """Return the subjects of a bucket.

    A mirror keeps keys under the subjects of its origin: it is read here, and written to at the
    origin (ADR-57). Where the connection reaches JetStream under a domain or an API prefix, writes
    have that prefix too, for `$KV` is no part of JetStream's API (ADR-19).

    Args:
        config: Its stream's configuration.
        api_prefix: The prefix of JetStream's API on this connection.
        origin: The subjects of the mirrored bucket, if that is a mirror itself; None if it has its
            own subjects.

    Source: nats.go jetstream/kv.go mapStreamToKVS, which has no mirrors of mirrors.
    """
    bucket = config.name.removeprefix(STREAM_PREFIX)
    own = f"{SUBJECT_PREFIX}{bucket}."
    mirror = config.mirror
    if mirror is None:
        return BucketSubjects(bucket, config.name, own, reached_under(own, api_prefix))
    theirs = f"{SUBJECT_PREFIX}{mirror.name.removeprefix(STREAM_PREFIX)}."
    external = mirror.external.api if mirror.external is not None else ""
    read, write = theirs, reached_under(theirs, external or api_prefix)
    if origin is not None:
        read, write = origin.read_prefix, origin.write_prefix
    return BucketSubjects(bucket, config.name, _mapped(mirror, read), write)


def _mapped(mirror: StreamSource, prefix: str) -> str:
    """Return the prefix of the keys in a mirror, which may map the subjects."""
    for each in mirror.transforms or ():
        if each.source == f"{prefix}>" and each.destination.endswith(".>"):
            return each.destination.removesuffix(">")
    return prefix
