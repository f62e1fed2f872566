"""Errors of natsstream as the codes of Conat; pure rules.

Source: core-stream.md section 1.10.
"""

from __future__ import annotations

from natsstream import errors

# The first class that fits counts, so that subclasses stand before their bases.
_CODES: tuple[tuple[type[errors.NatsStreamError], int | str], ...] = (
    (errors.StoragePathError, 403),
    (errors.PermissionDeniedError, 403),
    (errors.ReadOnlyStreamError, 403),
    (errors.WrongLastSequenceError, "wrong-last-sequence"),
    (errors.RejectedError, "reject"),
    (errors.StreamFullError, "reject"),
    (errors.MessageTooLargeError, "reject"),
    (errors.ResourceExhaustedError, 429),
    (errors.TooManyBatchesError, 429),
    (errors.UnsupportedServerError, 404),
    (errors.UnavailableError, 503),
    (errors.RequestTimeoutError, 408),
    (errors.NoRespondersError, 503),
    (errors.ConnectError, 503),
    (errors.ConnectionLostError, 503),
    (errors.IncompleteReadError, 503),
    (errors.SlowReaderError, 503),
)


def conat_code(error: BaseException) -> int | str | None:
    """Return the code that Conat's error would have; None for errors that Conat has no code for.

    403 is no permission, 404 a command that the server does not know, 408 no answer in time, 429
    too many streams or too much storage in the account, 503 no server or an answer with holes.
    "reject" is a limit of the stream, "wrong-last-sequence" a lost compare-and-set.
    """
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return None
