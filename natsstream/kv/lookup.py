"""The newest record of a key: through any replica, or through the leader.

Law: a decision rests on the leader's word; another replica may lag behind (ADR-8 promises no read
of one's own write).
"""

from __future__ import annotations

from natsstream.api.message import Message
from natsstream.errors import ConfigError, NoRespondersError
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.buckets.conventions import BUCKET
from natsstream.streams.stream import Stream


async def newest(
    stream: Stream, place: BucketSubjects, subject: str, *, consistent: bool
) -> Message | None:
    """Return the last message of a key, markers included; None where there is none.

    Args:
        stream: The bucket's stream.
        place: The bucket's place.
        subject: Where the key is stored.
        consistent: Ask the leader, which knows every acknowledged write.

    Raises:
        BucketNotFoundError: The bucket is gone.
        TransportError: No answer in time.
    """
    if not consistent and stream.cached.config.allow_direct:
        try:
            return await stream.direct.get(last_by_subject=subject)
        except (NoRespondersError, ConfigError):
            # The bucket answers no direct reads any more, or is away: its leader will tell.
            pass
    with BUCKET.translate_errors(place.bucket):
        return await stream.get(last_by_subject=subject)


async def at_revision(
    stream: Stream, place: BucketSubjects, revision: int, *, consistent: bool
) -> Message | None:
    """Return the message at a revision, whichever key it is of; None where there is none.

    Raises:
        BucketNotFoundError: The bucket is gone.
        TransportError: No answer in time.

    Cost: one round trip; a second one to the leader where a replica has nothing there, for it may
    not have it yet.
    """
    if not consistent and stream.cached.config.allow_direct:
        try:
            found = await stream.direct.get(revision)
        except (NoRespondersError, ConfigError):
            found = None
        if found is not None:
            return found
    with BUCKET.translate_errors(place.bucket):
        return await stream.get(revision)
