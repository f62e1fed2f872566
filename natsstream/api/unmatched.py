"""Filters that match other messages of a stream than was meant, or none, reported in the log.

Law: only what is certain is reported. A stream that copies or renames messages may have any
subject, and one whose subjects were changed may still have messages of the old ones.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from natsstream.api.names import collide, covers, half_wildcard
from natsstream.api.requests import Api
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.errors import NatsStreamError

_log = logging.getLogger("natsstream.consumer")
# Filters that are looked for among the stored messages, with one request each.
_LOOKS_MAX = 4


def unmatched(config: StreamConfig, filters: Sequence[str]) -> tuple[str, ...]:
    """Return the filters that match none of a stream's subjects; none where that is uncertain."""
    if config.mirror is not None or config.sources or config.subject_transform is not None:
        return ()
    subjects = config.subjects or (config.name,)
    return tuple(each for each in filters if not any(collide(each, one) for one in subjects))


def warn_half_wildcards(subjects: Sequence[str], what: str) -> None:
    """Log a warning for each subject with a token such as `new*`, which is no wildcard."""
    for each in subjects:
        token = half_wildcard(each)
        if token:
            _log.warning(
                "%s: %s in %s is no wildcard: `*` is one whole token, and a final `>` the rest",
                what,
                token,
                each,
            )


def warn_schedules(config: StreamConfig, filters: Sequence[str], what: str) -> None:
    """Log a warning for a consumer of all subjects of a stream that may hold schedules."""
    subjects = config.subjects or (config.name,)
    is_of_all = all(any(covers(wide, one) for wide in filters or (">",)) for one in subjects)
    if config.allow_msg_schedules and is_of_all:
        lost = ", and its acks remove them" if config.retention == "workqueue" else ""
        _log.warning(
            "%s gets schedules before they fire%s: give it filters of what they publish",
            what,
            lost,
        )


async def warn_unmatched(api: Api, stream: StreamInfo, filters: Sequence[str], what: str) -> None:
    """Log a warning for filters that match no message now, and none to come.

    Args:
        api: The connection.
        stream: The stream, as of any time.
        filters: The filters.
        what: Name of the reader or the call, for the text.

    Cost: none, if each filter matches a subject; else one round trip for each that matches none, of
    at most four.
    """
    warn_half_wildcards(filters, what)
    for each in unmatched(stream.config, filters)[:_LOOKS_MAX]:
        with suppress(NatsStreamError):
            now = await stream_info(api, stream.name, subjects=each)
            if unmatched(now.config, (each,)) and not now.state.subjects:
                _log.warning(
                    "%s: filter %s matches none of the subjects of stream %s, which are %s",
                    what,
                    each,
                    stream.name,
                    ", ".join(now.config.subjects or (stream.name,)),
                )
