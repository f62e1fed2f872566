"""Reading one key of a bucket."""

from __future__ import annotations

from natsstream.arguments import check_bool, check_int
from natsstream.errors import ConfigError
from natsstream.kv.doors.part import Part
from natsstream.kv.entry import Entry, entry_of
from natsstream.kv.lookup import at_revision, newest

_REVISION_MAX = 2**64 - 1


class Reads(Part):
    """Reads keys."""

    async def get(
        self, key: str, *, revision: int | None = None, consistent: bool = False
    ) -> Entry | None:
        """Return the entry of a key.

        Args:
            key: The key; no wildcards.
            revision: An older revision of this key, as long as the bucket's history has it.
            consistent: Ask the stream's leader, which knows every acknowledged write, instead of
                any replica, which may lag behind: read your own writes.

        Returns:
            The entry, or None where the key has no value: it was never written, is deleted, purged
            or expired, or the revision is gone, a deletion or another key's.

        Raises:
            KeyNameError: It is no legal key; nothing was sent.
            ConfigError: The revision is no number from 1 on, or the bucket is a mirror and
                `consistent` is asked for: its origin alone knows every write.
            BucketNotFoundError: The bucket was deleted.
            CodecError: The value is not of the codec's form.
            TransportError: No answer in time.

        Cost: one round trip; a second one for a revision that the first replica has not.
        Source: ADR-8, ADR-31; nats.go jetstream/kv.go Get and GetRevision.
        """
        subject = self._place.read_subject(key)
        if revision is not None:
            check_int(revision, "revision", minimum=1, maximum=_REVISION_MAX)
        if check_bool(consistent, "consistent") and self._stream.cached.config.mirror is not None:
            raise ConfigError(
                f"bucket {self.name} is a mirror: its leader may lag behind its origin",
                hint="read the origin: js.kv.get(...) of its name, where it lives",
            )
        if revision is None:
            found = await newest(self._stream, self._place, subject, consistent=consistent)
        else:
            found = await at_revision(self._stream, self._place, revision, consistent=consistent)
        if found is None or found.subject != subject:
            return None
        entry = entry_of(self._place, found)
        return None if entry.is_deleted else entry
