"""One dead-letter stream: what is in it, sending it again, dropping it.

Law: a letter is dropped only when its message was sent again, or when somebody says so; the message
is let go of before the letter is, so that a crash between leaves the letter.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from natsstream._wire.headers import HeaderName
from natsstream._wire.subjects import is_command
from natsstream.api.message import Message
from natsstream.api.names import check_subject
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import get_message, stream_info
from natsstream.arguments import check_bool, check_int, check_text, described
from natsstream.consume.dead_letters.captured import AdvisoryLog, Captured, read_captured
from natsstream.consume.dead_letters.envelope import decode, for_replay, read_failure
from natsstream.consume.dead_letters.letter import DeadLetter
from natsstream.consume.dead_letters.originals import (
    delete_message,
    find_original,
    header_block_of,
    keeps_until_acked,
    let_go,
)
from natsstream.consume.dead_letters.replaying import evicts, find_sent, forget_note
from natsstream.consume.dead_letters.subjects import (
    advisory_subjects,
    letters_filter,
    read_letter_subject,
    replay_id,
)
from natsstream.errors import ConfigError, MessageNotFoundError
from natsstream.iteration import Flattened
from natsstream.publish.outgoing import Prepared, add_header
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import publish
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec


class DeadLetterQueue:
    """The letters of one dead-letter stream; made by `js.dead_letters`.

    Every call that asks the server raises `TransportError` when no answer comes in time.

    Attributes:
        name: The stream's name.
    """

    def __init__(self, api: Api, name: str) -> None:
        self._api = api
        self.name: str = name
        self._can_note: bool | None = None

    async def info(self) -> StreamInfo:
        """Return the dead-letter stream's configuration and state now.

        Raises:
            StreamNotFoundError: It was deleted.

        Cost: one round trip.
        """
        return await stream_info(self._api, self.name)

    def list(self, *, stream: str = "*", consumer: str = "*") -> AsyncGenerator[DeadLetter]:
        """Yield the letters that are there now.

        Letters that workers stored come first, then those made of advisories; each oldest first. A
        message is one letter, however many advisories name it.

        Args:
            stream: Only messages of this stream; "*" is all. None is refused.
            consumer: Only messages of consumers of this name; "*" is all. None is refused.

        Raises:
            StreamNotFoundError: The dead-letter stream was deleted.

        Cost: reads the whole dead-letter stream, and its advisories before anything else; one round
        trip for each letter that only the server told of, to find the message in its stream, and
        for each stream where it found messages gone; some 200 bytes of memory for each advisory.
        """
        return Flattened(self._list(_Wanted(stream, consumer)), iter)

    async def _list(
        self, wanted: _Wanted, log: AdvisoryLog | None = None
    ) -> AsyncGenerator[Sequence[DeadLetter]]:
        if log is None:
            log = await self._advisories(wanted=wanted.stream)
        async with aclosing(self._read([letters_filter(self.name)]).runs()) as runs:
            async for run in runs:
                written = [await self._written(message, log) for message in run]
                yield [
                    letter
                    for letter in written
                    if letter is not None and wanted(letter.stream, letter.consumer)
                ]
        for captured, numbers in log.entries():
            if wanted(captured.stream, captured.consumer):
                yield [await self._told(captured, numbers)]

    async def count(self, *, stream: str = "*", consumer: str = "*") -> int:
        """Return how many letters there are; arguments as in `list`.

        Cost: that of `list` without the round trips for single letters.
        """
        wanted = _Wanted(stream, consumer)
        log = await self._advisories(wanted=stream)
        found = 0
        async with aclosing(aiter(self._read([letters_filter(self.name)]))) as messages:
            async for message in messages:
                letter = await self._written(message, log)
                found += letter is not None and wanted(letter.stream, letter.consumer)
        told = (each for each, _ in log.entries())
        return found + sum(wanted(each.stream, each.consumer) for each in told)

    async def get(self, number: int) -> DeadLetter | None:
        """Return one letter, or None when there is none of this number.

        Args:
            number: `DeadLetter.number`, its sequence in the dead-letter stream.

        Raises:
            ConfigError: The number is no sequence.

        Cost: two to four round trips, and reading the advisories of the same consumer.
        """
        check_int(number, "number", minimum=1)
        message = await get_message(self._api, self.name, number)
        if message is None:
            return None
        key = read_letter_subject(message.subject)
        if key is not None:
            log = await self._advisories(advisory_subjects(key.stream, key.consumer))
            return await self._written(message, log)
        captured = read_captured(message.subject, message.data, message.time_ns)
        if captured is None:
            return None
        log = await self._advisories(advisory_subjects(captured.stream, captured.consumer))
        for told, numbers in log.entries():
            if number in numbers:
                return await self._told(told, numbers)
        return None

    async def replay(
        self,
        letter: DeadLetter | int,
        *,
        to: str | None = None,
        keep_effects: bool = False,
        timeout: float | None = None,
    ) -> PubAck:
        """Republish a letter's message, then drop the letter.

        The message keeps its payload and headers, and gets a new message id. A replay that was
        interrupted can be repeated, also after the duplicate window: the message is looked up in
        the stream that it was sent to, and is stored once. A message that was deleted there
        meanwhile, such as handled work, is sent again after the window. If the queue has `max_msgs`
        or `max_bytes` and discards the oldest, only the duplicate window prevents a second copy.
        `Nats-Expected-*` conditions of the first publish are left out.

        Args:
            letter: The letter, or its number.
            to: The subject to send to; None is the one that it was published to.
            keep_effects: True sends also headers that change other messages: a rollup, which
                deletes what is newer than this old message, a schedule, a counter's increment.
            timeout: Seconds to wait for the ack; None is `request_timeout`.

        Returns:
            The ack of the stream that has it now.

        Raises:
            ConfigError: The letter's subject is a command to the server; nothing was sent.
            MessageNotFoundError: There is no such letter any more, or its message is gone.
            NoRespondersError: No stream captures the subject; the letter stays.
            ServerError: The stream refuses the message; the letter stays.
            TransportError: There was no answer in time; calling it again is safe.

        Cost: two round trips, that of a publish, and of `drop`.
        """
        check_bool(keep_effects, "keep_effects")
        letter = await self._letter(letter)
        message = letter.message
        if message is None:
            raise MessageNotFoundError(
                f"the message of letter {letter.number} is gone: sequence {letter.sequence} of "
                f"stream {letter.stream}",
                hint="only its death is known; drop the letter",
            )
        # Also the original's: whoever may write letters says what it was.
        subject = check_subject(message.subject if to is None else check_text(to, "to"))
        if to is None and is_command(subject):
            raise ConfigError(
                f"letter {letter.number} says that its subject was {subject}: servers act on that",
                hint="no stream has such messages: drop the letter",
            )
        if await get_message(self._api, self.name, letter.number) is None:
            raise _no_letter(self.name, letter.number)
        id_ = replay_id(self.name, letter.key)
        if self._can_note is None:
            # A note must not evict a letter.
            self._can_note = not evicts((await self.info()).config)
        ack = None
        if self._can_note:
            first = min((letter.number, *letter.related))
            ack = await find_sent(self._api, self.name, letter.key, subject, id_, first=first)
        if ack is None:
            headers = for_replay(header_block_of(message), keep_effects=keep_effects)
            headers = add_header(headers, HeaderName.MSG_ID, id_)
            again = Prepared(subject, message.data, headers, (), expects_last_id=False)
            ack = await publish(self._api, again, timeout=timeout)
        await self._remove(letter)
        return ack

    async def replay_all(
        self,
        *,
        to: str | None = None,
        stream: str = "*",
        consumer: str = "*",
        keep_effects: bool = False,
    ) -> int:
        """Replay all letters, oldest first; a letter without its message stays.

        Arguments as in `replay` and `list`. It ends at the first refusal; that letter stays.

        Returns:
            How many were sent.

        Raises:
            NatsStreamError: As for `replay`; calling it again replays the rest.

        Cost: that of `list`, and of `replay` for each.
        """
        sent = 0
        async with aclosing(self.list(stream=stream, consumer=consumer)) as letters:
            async for letter in letters:
                if letter.message is None:
                    continue
                with suppress(MessageNotFoundError):  # Another client has sent or dropped it.
                    await self.replay(letter, to=to, keep_effects=keep_effects)
                    sent += 1
        return sent

    async def drop(self, letter: DeadLetter | int) -> None:
        """Delete a letter, and release its message where it is stuck in its stream.

        A message that was delivered `max_deliver` times stays in a work-queue or interest stream
        for ever. It is acked for that consumer, so the server deletes it once no other consumer
        needs it.

        Args:
            letter: The letter, or its number.

        Raises:
            MessageNotFoundError: There is no such letter.
            ServerError: A stream denies deletion.
            TransportError: There was no answer in time; calling it again is safe.

        Cost: four to six round trips.
        """
        await self._remove(await self._letter(letter))

    async def drop_all(self, *, stream: str = "*", consumer: str = "*") -> int:
        """Drop all letters, or those of a stream or consumer; return how many.

        Cost: that of `list`, and of `drop` for each.
        """
        dropped = 0
        wanted = _Wanted(stream, consumer)
        log = await self._advisories(wanted=stream)
        async with aclosing(Flattened(self._list(wanted, log), iter)) as letters:
            async for letter in letters:
                await self._remove(letter)
                dropped += 1
        # Advisories that make no letter would fill the stream for ever.
        for captured, number in log.of_no_letter():
            if wanted(captured.stream, captured.consumer):
                await delete_message(self._api, self.name, number)
        return dropped

    # The contents of the stream.

    def _read(self, filters: Sequence[str]) -> StreamRange:
        """Return what is there now; letters that are dropped meanwhile are no loss."""
        spec = RangeSpec(stream=self.name, filters=filters, on_loss="report")
        return StreamRange(self._api, spec)

    async def _advisories(self, filters: Sequence[str] = (), *, wanted: str = "*") -> AdvisoryLog:
        log = AdvisoryLog()
        async with aclosing(aiter(self._read(filters or advisory_subjects("*")))) as messages:
            async for message in messages:
                captured = read_captured(message.subject, message.data, message.time_ns)
                if captured is not None:
                    log.add(message.sequence, captured)
        for stream in log.streams_of_gone:
            if wanted in ("*", stream) and await keeps_until_acked(self._api, stream):
                log.leave_out_gone(stream)
        return log

    async def _written(self, message: Message, log: AdvisoryLog) -> DeadLetter | None:
        """Return the letter that a worker has written."""
        key = read_letter_subject(message.subject)
        if key is None:
            return None
        told, block = decode(header_block_of(message))
        failure = read_failure(told, key.stream, key.consumer, key.sequence)
        subject = failure.subject.encode("utf-8", "surrogateescape")
        original = Message((subject, b"", block, message.data), (key.sequence, key.time_ns))
        return DeadLetter(
            queue=self.name,
            number=message.sequence,
            stream=key.stream,
            consumer=key.consumer,
            sequence=key.sequence,
            reason=failure.reason,
            error=failure.error,
            deliveries=failure.deliveries,
            time_ns=message.time_ns,
            message=original,
            is_copy=True,
            related=tuple(number for number, _ in log.claim(key.triple, key.time_ns)),
        )

    async def _told(self, captured: Captured, numbers: Sequence[int]) -> DeadLetter:
        """Return the letter of an advisory, with its message while that exists."""
        message = await find_original(
            self._api, captured.stream, captured.sequence, captured.can_mean
        )
        return DeadLetter(
            queue=self.name,
            number=numbers[-1],
            stream=captured.stream,
            consumer=captured.consumer,
            sequence=captured.sequence,
            reason=captured.reason,
            error=captured.error,
            deliveries=captured.deliveries,
            time_ns=captured.time_ns,
            message=message,
            is_copy=False,
            related=tuple(numbers[:-1]),
        )

    async def _letter(self, letter: object) -> DeadLetter:
        if isinstance(letter, DeadLetter):
            if letter.queue != self.name:
                raise ConfigError(
                    f"letter {letter.number} is in {letter.queue}, not in {self.name}",
                    hint=f"js.dead_letters.open({letter.queue!r})",
                )
            return letter
        if not isinstance(letter, int) or isinstance(letter, bool):
            raise ConfigError(
                f"letter is {described(letter)}", hint="give a letter of list() or its number"
            )
        found = await self.get(letter)
        if found is None:
            raise _no_letter(self.name, letter)
        return found

    async def _remove(self, letter: DeadLetter) -> None:
        # None is meant by a letter that has no message.
        time_ns = -1 if letter.message is None else letter.message.time_ns
        await let_go(
            self._api, letter.stream, letter.consumer, letter.sequence, lambda at: at == time_ns
        )
        # The letter last: what else is told of the same message would make a letter of its own.
        for number in (*letter.related, letter.number):
            await delete_message(self._api, self.name, number)
        if letter.message is not None:
            await forget_note(self._api, self.name, letter.key)

    def __repr__(self) -> str:
        return f"<DeadLetterQueue {self.name}>"


class _Wanted:
    """The stream and consumer that letters are wanted of."""

    def __init__(self, stream: str, consumer: str) -> None:
        # None is refused: a variable that is not set must not drop the letters of all streams.
        self.stream = check_text(stream, "stream", hint='give a name; "*" is all streams')
        self._consumer = check_text(consumer, "consumer", hint='give a name; "*" is all consumers')

    def __call__(self, stream: str, consumer: str) -> bool:
        return self.stream in ("*", stream) and self._consumer in ("*", consumer)


def _no_letter(queue: str, number: int) -> MessageNotFoundError:
    return MessageNotFoundError(
        f"{queue} has no letter {number}",
        hint="it was dropped or sent again; list() has those that are there",
    )
