"""Requests about one stream, its messages and its subjects, each to a typed answer.

Law: a list with more entries than one answer holds is never cut short in silence. If a refusal
has several possible causes, the actual one is looked up.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from datetime import datetime
from typing import cast

from natsstream._wire import subjects as api_subjects
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream.api.features import GET_BY_TIME
from natsstream.api.message import Message, stored_message
from natsstream.api.message_query import (
    EVERY_SUBJECT,
    SEQUENCE_MAX,
    described_query,
    message_query,
)
from natsstream.api.names import check_filter
from natsstream.api.paging import Gaps, listed_streams, pages
from natsstream.api.requests import Api, ChangeProbe, is_deleted
from natsstream.api.stream_info import StreamInfo, subject_counts, without_deleted
from natsstream.arguments import check_bool, check_int, check_text
from natsstream.errors import (
    ConfigError,
    MessageNotFoundError,
    NatsStreamError,
    NotPermittedError,
    ServerError,
    SubjectError,
)
from natsstream.fields import Fields
from natsstream.iteration import Flattened

# The name of the list in errors.
ALL_STREAMS = "streams of the account"
# The server's words for a message that does not exist, in every release.
_NO_MESSAGE = "no message found"


async def stream_info(
    api: Api,
    stream: str,
    *,
    subjects: str | None = None,
    deleted_details: bool = False,
    timeout: float | None = None,
) -> StreamInfo:
    """Return the configuration and state of a stream.

    Args:
        api: The connection's API.
        stream: The stream's name.
        subjects: Also count the messages of each subject that this filter matches.
        deleted_details: Also list the deleted sequences, and those that the server lost.
        timeout: Seconds in all, reconnects included, without `subjects`; None is
            `request_timeout`.

    Raises:
        StreamNameError: The name is not legal; nothing was sent.
        SubjectError: The filter is no subject; nothing was sent.
        StreamNotFoundError: It does not exist.
        TransportError: The server did not answer in time.

    Cost: one round trip to the stream's leader; with `subjects` one for each 100,000 of them.
    """
    if subjects is not None:
        found = subject_pages(api, stream, subjects, deleted_details=deleted_details)
        infos = [info async for info in found]
        counts = {name: n for info in infos for name, n in (info.state.subjects or {}).items()}
        info = replace(infos[0], state=replace(infos[0].state, subjects=counts))
    else:
        body = {"deleted_details": True} if deleted_details else None
        subject = api_subjects.stream_info(stream)
        answer = await api.read(subject, body, what=f"stream {stream}", timeout=timeout)
        info = StreamInfo.from_json(answer)
    if deleted_details and info.state.deleted is None:  # Servers leave an empty list out.
        info = replace(info, state=replace(info.state, deleted=()))
    return info


async def stream_deleted(api: Api, name: str) -> tuple[StreamInfo, list[int]]:
    """Return a stream's info, and beside it each deleted sequence; errors as for `stream_info`.

    Cost: one round trip to the stream's leader, with some 7 bytes for each deleted sequence.
    """
    body = {"deleted_details": True}
    answer = await api.read(api_subjects.stream_info(name), body, what=f"stream {name}")
    return without_deleted(answer)


async def subject_pages(
    api: Api,
    stream: str,
    subjects: str,
    *,
    deleted_details: bool = False,
) -> AsyncGenerator[StreamInfo]:
    """Yield a stream's info with some of its subjects in `state.subjects`, at least one page.

    The server sorts subjects by name and keeps nothing between two pages: a subject that appears or
    vanishes meanwhile may come twice or not at all.

    Args:
        api: The connection's API.
        stream: The stream's name.
        subjects: Which subjects, with wildcards.
        deleted_details: Also list the deleted sequences, in the first page.

    Raises:
        NatsStreamError: As for `stream_info`.

    Cost: one round trip and the memory of a page for each 100,000 subjects.
    """
    wanted = check_filter(check_text(subjects, "subjects", error=SubjectError))
    answers = pages(
        api,
        api_subjects.stream_info(stream),
        {"subjects_filter": wanted},
        what=f"stream {stream}",
        names=subject_counts,
        at_first={"deleted_details": True} if deleted_details else None,
    )
    async for answer in answers:
        yield StreamInfo.from_json(answer)


async def newest_sequence(api: Api, stream: str) -> int | None:
    """Return the sequence of the newest message that a stream holds; None for none.

    Cost: one round trip, with some 7 bytes for each deleted sequence.
    """
    state = (await stream_info(api, stream, deleted_details=True)).state
    if not state.messages:
        return None
    behind = [each for each in state.deleted or () if each.last_seq >= state.last_seq]
    return behind[0].first_seq - 1 if behind else state.last_seq


async def get_message(
    api: Api,
    stream: str,
    sequence: int | None = None,
    *,
    last_by_subject: str | None = None,
    next_by_subject: str | None = None,
    start_time: datetime | int | None = None,
) -> Message | None:
    """Return one message from the stream's leader, or None; `Stream.get` has the arguments.

    Raises:
        ConfigError: The arguments name no message, or two.
        SubjectError: A subject is not legal; nothing was sent.
        StreamNotFoundError: The stream does not exist.
        UnsupportedServerError: `start_time` was given, and the server is older than 2.11.
        TransportError: The server did not answer in time.

    Cost: one round trip.
    """
    body = message_query(
        sequence,
        last_by_subject=last_by_subject,
        next_by_subject=next_by_subject,
        start_time=start_time,
    )
    if start_time is not None:
        # Servers before 2.11 would answer with the first message of all.
        await api.require(GET_BY_TIME)
        body.setdefault("next_by_subj", ">")
    message = await _message(api, stream, body)
    if message is None and last_by_subject == ">":
        found = [await _message(api, stream, {"last_by_subj": each}) for each in EVERY_SUBJECT]
        message = max(filter(None, found), key=lambda each: each.sequence, default=None)
    return message


async def _message(api: Api, stream: str, body: dict[str, object]) -> Message | None:
    subject, what = api_subjects.message_get(stream), described_query(body, stream)
    try:
        return stored_message(await api.read(subject, body, what=what))
    except MessageNotFoundError:
        return None


async def delete_message(api: Api, stream: str, sequence: int, *, secure: bool = False) -> None:
    """Delete one message of a stream.

    Args:
        api: The connection's API.
        stream: The stream's name.
        sequence: The message's sequence.
        secure: Also overwrite its bytes on the disk with noise.

    Raises:
        ConfigError: The sequence is not a number from 1 on.
        MessageNotFoundError: The stream has no message there.
        NotPermittedError: The stream has `deny_delete`.
        StreamSealedError: The stream is sealed.
        TransportError: There was no answer; it may be deleted.

    Cost: one round trip; up to two more to explain a refusal.
    """
    check_int(sequence, "sequence", minimum=1, maximum=SEQUENCE_MAX)
    body: dict[str, object] = {"seq": sequence}
    if not check_bool(secure, "secure"):
        body["no_erase"] = True
    what = f"message {sequence} of stream {stream}"
    try:
        await api.change(api_subjects.message_delete(stream), body, what=what)
    except ServerError as error:
        if find_error_code(error.err_code) is not ErrorCode.STREAM_MSG_DELETE_FAILED:
            raise
        cause = await _why_not_deleted(api, stream, sequence)
        if cause is None and _NO_MESSAGE in error.description:
            # In an election nobody answers questions; the refusal alone says enough.
            cause = MessageNotFoundError(f"{what}: it is gone", code=error.code)
        if cause is None:
            raise
        cause.code, cause.err_code = error.code, error.err_code
        cause.description = error.description
        raise cause from error


async def _why_not_deleted(api: Api, stream: str, sequence: int) -> ServerError | None:
    """Return the cause of 10057, which has several; None for another one.

    The message comes first: one that has gone is gone, whatever the stream allows.
    """
    what = f"message {sequence} of stream {stream}"
    try:
        is_gone = await get_message(api, stream, sequence) is None
        info = await stream_info(api, stream)
    except NatsStreamError:  # The refusal itself says more than a failed look behind it.
        return None
    if is_gone:
        return MessageNotFoundError(
            f"{what}: the stream has sequences {info.state.first_seq} to {info.state.last_seq}",
            hint="it was removed before, or is not written yet",
        )
    if info.config.deny_delete:
        return NotPermittedError(
            f"{what}: the stream has deny_delete",
            hint="deny_delete cannot be undone; purge() may be allowed",
        )
    return None


async def purge(
    api: Api,
    stream: str,
    *,
    subject: str = ">",
    last_seq: int = SEQUENCE_MAX,
    keep: int = 0,
    timeout: float | None = None,
) -> int:
    """Remove messages of a stream and return how many; `Stream.purge` has the arguments.

    Raises:
        ConfigError: `last_seq` and `keep` are given together, or one is not a legal number.
        SubjectError: The subject is not legal; nothing was sent.
        NotPermittedError: The stream has `deny_purge`, or is sealed.
        StreamNotFoundError: It does not exist.
        TransportError: There was no answer; the purge may be done.

    Cost: one round trip; a filter makes the server look at each subject that it matches.
    """
    # None is refused: the value of a variable that is not set must not remove everything.
    hint = 'give a subject; subject=">" is all messages'
    check_filter(check_text(subject, "subject", error=SubjectError, hint=hint))
    check_int(last_seq, "last_seq", minimum=0, maximum=SEQUENCE_MAX)
    check_int(keep, "keep", minimum=0, maximum=SEQUENCE_MAX)
    if keep and last_seq < SEQUENCE_MAX:
        raise ConfigError(
            "purge takes last_seq or keep, not both",
            hint="purge twice, or count what to keep from the stream's info",
        )
    if not last_seq:
        return 0  # Sequences begin at 1, and some stores read that one as no limit.
    body: dict[str, object] = {}
    if subject != ">":
        body["filter"] = subject
    if last_seq < SEQUENCE_MAX:
        body["seq"] = last_seq + 1  # The server's word is the first sequence that stays.
    if keep:
        body["keep"] = keep
    what = f"purge of {'stream' if subject == '>' else f'{subject} in stream'} {stream}"
    answer = await api.change(api_subjects.stream_purge(stream), body, what=what, timeout=timeout)
    return answer.count("purged")


async def seal_stream(api: Api, stream: str) -> StreamInfo:
    """Forbid all writes and removals forever, and return the stream; see `Stream.seal`."""
    info = await stream_info(api, stream)
    if info.config.sealed:
        return info
    config = {**cast("dict[str, object]", info.raw["config"]), "sealed": True}
    # Sealing also resets `max_age` and the like, so the answer is not compared.
    subject, what = api_subjects.stream_update(stream), f"sealing of stream {stream}"
    return StreamInfo.from_json(await api.change(subject, config, what=what))


async def delete_stream(api: Api, stream: str) -> None:
    """Delete a stream with all of its messages.

    Raises:
        StreamNotFoundError: It does not exist.
        TransportError: There was no answer, and it is there; it may still be deleted.

    Cost: one round trip. A cluster that elects a leader may delete without an answer, which is seen
    after a second.
    """
    look = ChangeProbe(api_subjects.stream_info(stream), is_deleted)
    subject = api_subjects.stream_delete(stream)
    await api.change(subject, None, what=f"stream {stream}", look=look)


async def remove_peer(api: Api, stream: str, server: str) -> None:
    """Move a stream's replica from a server to another one; see `Stream.remove_peer`."""
    body: dict[str, object] = {"peer": check_text(server, "name")}
    what = f"replica of stream {stream} on {server}"
    await api.change(api_subjects.stream_remove_peer(stream), body, what=what)


async def find_streams(api: Api, subject: str, *, timeout: float | None = None) -> list[str]:
    """Return the names of the streams that capture a subject, as far as the servers know.

    At most 1,024 of them: for a filter use `stream_names`.

    Cost: one round trip.
    """
    return (await _names(api, subject, timeout)).texts("streams")


async def count_streams(api: Api, subject: str) -> int:
    """Return how many streams capture a subject or some subject of a filter.

    Cost: one round trip.
    """
    return (await _names(api, subject, None)).count("total")


async def _names(api: Api, subject: str, timeout: float | None) -> Fields:
    body, what = {"subject": subject}, f"streams of {subject}"
    return await api.read(api_subjects.STREAM_NAMES, body, what=what, timeout=timeout)


def stream_names(api: Api, subject: str | None = None) -> AsyncGenerator[str]:
    """Yield the names of all streams, or of those that capture a subject or filter.

    Raises:
        SubjectError: It is no subject or filter; nothing was sent.
        TransportError: The server did not answer in time.

    Cost: one round trip for each 1,024 names.
    """
    body, subject_names = _subject_body(subject), api_subjects.STREAM_NAMES
    return Flattened(pages(api, subject_names, body, what=ALL_STREAMS, names=_named), _named)


def stream_infos(api: Api, gaps: Gaps, subject: str | None = None) -> AsyncGenerator[StreamInfo]:
    """Yield the infos of all streams, or of those that capture a subject or filter.

    Args:
        api: The connection's API.
        gaps: Collects the streams that cannot be described now.
        subject: Only streams that capture it.

    Raises:
        SubjectError: It is no subject or filter; nothing was sent.
        UnavailableError: Streams are missing, and `gaps` raises; after all others.
        TransportError: The server did not answer in time.

    Cost: one round trip for each 256 streams.
    """
    body, subject_list = _subject_body(subject), api_subjects.STREAM_LIST
    answers = pages(api, subject_list, body, what=ALL_STREAMS, names=listed_streams)
    return Flattened(gaps.gathered(answers), _infos)


def checked_subject(subject: str) -> str:
    """Return the subject or filter whose streams are wanted, or raise SubjectError."""
    return check_filter(check_text(subject, "subject", error=SubjectError))


def _subject_body(subject: str | None) -> dict[str, object]:
    return {} if subject is None else {"subject": checked_subject(subject)}


def _infos(answer: Fields) -> Iterator[StreamInfo]:
    return map(StreamInfo.from_json, answer.parts("streams"))


def _named(answer: Fields) -> list[str]:
    return answer.texts("streams")


def direct_get_subject(api: Api, stream: str, subject: str = "") -> str:
    """Return the subject of direct gets, or of those for a subject's last message (ADR-31)."""
    if subject:
        return api.subject(api_subjects.direct_get_last(stream, subject))
    return api.subject(api_subjects.direct_get(stream))
