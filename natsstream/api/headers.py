"""Headers of messages for the views, which do not import the wire, and the marks of a deletion.

Law: a server's delete marker (`Nats-Marker-Reason`, ADR-43) counts as much as a client's own
`KV-Operation` (ADR-8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from natsstream._wire.headers import HeaderName, Headers, HeaderValues

__all__ = ["Deletion", "HeaderName", "HeaderValues", "Headers", "deletion_of"]

Deletion = Literal["DEL", "PURGE"]

# As nats.go reads them: other operations are values, other reasons too.
_OPERATIONS: Mapping[str, Deletion] = {"DEL": "DEL", "PURGE": "PURGE"}
_REASONS: Mapping[str, Deletion] = {"MaxAge": "PURGE", "Purge": "PURGE", "Remove": "DEL"}
_OPERATION, _REASON = HeaderName.KV_OPERATION.encode(), HeaderName.MARKER_REASON.encode()


def deletion_of(block: bytes) -> Deletion | None:
    """Return how a message with this header block deletes its subject's value; None if it does not.

    A client's header counts before the server's.
    """
    # The bytes first, unparsed: a listing of 100,000 keys looks at each message.
    if not block or (_OPERATION not in block and _REASON not in block):
        return None
    headers = Headers(block)
    operation = headers.get(HeaderName.KV_OPERATION)
    if operation:
        return _OPERATIONS.get(operation)
    return _REASONS.get(headers.get(HeaderName.MARKER_REASON, ""))
