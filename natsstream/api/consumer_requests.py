"""Requests about one consumer and the consumers of a stream, each to a typed answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import NamedTuple

from natsstream._wire import subjects
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream.api import consumer_rules as rules
from natsstream.api.consumer_info import ConsumerInfo, ConsumerPause
from natsstream.api.features import CONSUMER_PAUSE, CONSUMER_RESET, CONSUMER_UNPIN
from natsstream.api.message_query import SEQUENCE_MAX
from natsstream.api.paging import Gaps, pages
from natsstream.api.requests import Api, ChangeProbe, is_deleted
from natsstream.arguments import check_int
from natsstream.errors import ResourceExhaustedError
from natsstream.fields import Fields
from natsstream.iteration import Flattened
from natsstream.units import format_rfc3339


async def consumer_info(
    api: Api, stream: str, name: str, *, timeout: float | None = None
) -> ConsumerInfo:
    """Return the configuration and progress of a consumer.

    Args:
        api: The connection's API.
        stream: The stream's name.
        name: The consumer's name.
        timeout: Seconds in all, reconnects included; None is `request_timeout`.

    Raises:
        StreamNameError: The stream's name is not legal; nothing was sent.
        ConsumerNameError: The consumer's name is not legal; nothing was sent.
        ConsumerNotFoundError: It does not exist.
        StreamNotFoundError: Its stream does not exist.
        TransportError: The server did not answer in time.

    Cost: one round trip to the consumer's leader.
    """
    subject = subjects.consumer_info(stream, name)
    answer = await api.read(subject, None, what=_what(stream, name), timeout=timeout)
    return ConsumerInfo.from_json(answer)


def consumer_names(api: Api, stream: str) -> AsyncGenerator[str]:
    """Yield the names of a stream's consumers.

    Raises:
        StreamNotFoundError: The stream does not exist.
        TransportError: The server did not answer in time.

    Cost: one round trip for each 1,024 names.
    """
    what, subject = f"consumers of stream {stream}", subjects.consumer_names(stream)
    return Flattened(pages(api, subject, {}, what=what, names=_named), _named)


def consumer_infos(api: Api, gaps: Gaps, stream: str) -> AsyncGenerator[ConsumerInfo]:
    """Yield the infos of a stream's consumers.

    Args:
        api: The connection's API.
        gaps: Collects the consumers that cannot be described now.
        stream: The stream's name.

    Raises:
        UnavailableError: Consumers are missing, and `gaps` raises; after all others.
        StreamNotFoundError: The stream does not exist.
        TransportError: The server did not answer in time.

    Cost: one round trip for each 256 consumers.
    """
    what, subject = f"consumers of stream {stream}", subjects.consumer_list(stream)
    answers = pages(api, subject, {}, what=what, names=_described)
    return Flattened(gaps.gathered(answers), _infos)


def _infos(answer: Fields) -> Iterator[ConsumerInfo]:
    return map(ConsumerInfo.from_json, answer.parts("consumers"))


def _named(answer: Fields) -> list[str]:
    return answer.texts("consumers")


def _described(answer: Fields) -> list[str]:
    return [each.text("name") for each in answer.parts("consumers")]


class StartedConsumer(NamedTuple):
    """A consumer that was created for one reader.

    Attributes:
        pending: Messages that it has yet to deliver.
        leader: The server that holds it; empty for a single server.
    """

    pending: int
    leader: str


async def start_consumer(
    api: Api, stream: str, name: str, config: Mapping[str, object]
) -> StartedConsumer:
    """Create a consumer for one reader, whose configuration we wrote ourselves.

    Raises:
        ServerError: The server refused.
        TransportError: There was no answer; it may exist.

    Cost: one round trip.
    """
    one = config.get("filter_subject")
    try:
        answer = await api.change(
            subjects.consumer_create(stream, name, one if isinstance(one, str) else ""),
            {"stream_name": stream, "config": config, "action": "create"},
            what=f"read of stream {stream}",
        )
    except ResourceExhaustedError as error:
        # Seen on 2.15.1: a cluster in an election takes its other servers for gone. Where a server
        # is really full, the reader gives up later.
        error.retryable = find_error_code(error.err_code) is ErrorCode.INSUFFICIENT_RESOURCES
        raise
    leader = answer.part("cluster", {}).text("leader", "")
    return StartedConsumer(answer.count("num_pending"), leader)


async def delete_consumer(api: Api, stream: str, name: str) -> None:
    """Delete a consumer.

    Raises:
        ConsumerNameError: The name is not legal; nothing was sent.
        ConsumerNotFoundError: It does not exist.
        TransportError: There was no answer, and it still exists; it may yet be deleted.

    Cost: one round trip. A cluster that elects a leader may delete without an answer, which is seen
    after a second.
    """
    subject = subjects.consumer_delete(stream, name)
    look = ChangeProbe(subjects.consumer_info(stream, name), is_deleted)
    await api.change(subject, None, what=_what(stream, name), look=look)


async def pause_consumer(api: Api, stream: str, name: str, until_ns: int | None) -> ConsumerPause:
    """Pause a consumer until a moment, or resume it.

    Args:
        api: The connection's API.
        stream: The stream's name.
        name: The consumer's name.
        until_ns: Unix nanoseconds; None or a moment that has passed resumes it.

    Raises:
        ConsumerNotFoundError: It does not exist.
        UnsupportedServerError: The server is older than 2.11; nothing was sent.
        TransportError: There was no answer.
    """
    subject = subjects.consumer_pause(stream, name)
    body = None if until_ns is None else {"pause_until": format_rfc3339(until_ns)}
    await api.require(CONSUMER_PAUSE)
    return ConsumerPause.from_json(await api.change(subject, body, what=_what(stream, name)))


async def reset_consumer(api: Api, stream: str, name: str, *, sequence: int | None = None) -> int:
    """Reset a consumer and return the sequence that it continues at; see `consumers.reset`."""
    body: dict[str, object] | None = None
    if sequence is not None:
        body = {"seq": check_int(sequence, "sequence", minimum=1, maximum=SEQUENCE_MAX)}
    subject = subjects.consumer_reset(stream, name)
    await api.require(CONSUMER_RESET)
    # Servers up to 2.15.1 do not answer if the consumer does not exist.
    await consumer_info(api, stream, name)
    answer = await api.change(subject, body, what=_what(stream, name))
    return answer.integer("reset_seq", minimum=0)


async def unpin_consumer(api: Api, stream: str, name: str, group: str) -> None:
    """Unpin the pinned client of a priority group; see `consumers.unpin`."""
    body = {"group": rules.check_group(group)}
    subject = subjects.consumer_unpin(stream, name)
    await api.require(CONSUMER_UNPIN)
    await api.change(subject, body, what=_what(stream, name))


def next_subject(api: Api, stream: str, name: str) -> str:
    """Return the subject for a consumer's pull requests."""
    return api.subject(subjects.consumer_next(stream, name))


def delete_subject(api: Api, stream: str, name: str) -> str:
    """Return the subject that deletes a consumer, for readers that do not wait for the answer."""
    return api.subject(subjects.consumer_delete(stream, name))


def _what(stream: str, name: str) -> str:
    return f"consumer {name} of stream {stream}"
