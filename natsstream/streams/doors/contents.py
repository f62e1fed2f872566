"""What a stream holds: its info, and single messages from its leader."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from natsstream._wire import subjects as api
from natsstream.api.features import GET_BY_TIME
from natsstream.api.message import Message, stored_message
from natsstream.api.stream_info import StreamInfo
from natsstream.arguments import check_bool
from natsstream.errors import MessageNotFoundError
from natsstream.read.direct.questions import EVERY_SUBJECT, which
from natsstream.streams.doors.part import Part
from natsstream.streams.doors.subject_pages import ask_info, subject_pages


class Contents(Part):
    """Looks at a stream."""

    async def info(
        self, *, subjects: str | None = None, deleted_details: bool = False
    ) -> StreamInfo:
        """Return the stream's configuration and state now.

        Args:
            subjects: Also count the messages of each subject that this filter matches, into
                `state.subjects`; ">" is all.
            deleted_details: Also tell which sequences are gone, in `state.deleted`, and which the
                server knows to be lost, in `state.lost`.

        Raises:
            StreamNotFoundError: It was deleted.
            ConfigError: `deleted_details` is no bool; nothing was sent.
            SubjectError: The filter is no subject; nothing was sent.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader; with `subjects` one for each 100,000 of them,
        and the memory of all: `subject_counts` gives them page by page. Each deleted sequence
        takes some 7 bytes of the answer.
        """
        body: dict[str, object] = {}
        if check_bool(deleted_details, "deleted_details"):
            body["deleted_details"] = True
        if subjects is None:
            info = StreamInfo.from_json(await ask_info(self._api, self.name, body))
            counts = None
        else:
            pages = [page async for page in subject_pages(self._api, self.name, subjects, body)]
            info = StreamInfo.from_json(pages[0].answer)
            counts = {name: count for page in pages for name, count in page.counts.items()}
        # Servers leave an empty list out.
        deleted = (info.state.deleted or ()) if deleted_details else None
        return replace(info, state=replace(info.state, subjects=counts, deleted=deleted))

    async def get(
        self,
        sequence: int | None = None,
        *,
        last_by_subject: str | None = None,
        next_by_subject: str | None = None,
        start_time: datetime | int | None = None,
    ) -> Message | None:
        """Return one message, or None when the stream has none there.

        Args:
            sequence: The message with this sequence; with `next_by_subject`, where to begin.
            last_by_subject: The newest message of this subject; wildcards are taken.
            next_by_subject: The first message of this subject at or after `sequence`.
            start_time: The first message at or after this moment (datetime with a time zone, or
                Unix nanoseconds); with `next_by_subject`, of that subject.

        Raises:
            ConfigError: The arguments name no message, or two.
            SubjectError: A subject is not legal; nothing was sent.
            UnsupportedServerError: `start_time` was given, and the server is older than 2.11.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader, so it sees every acknowledged write.
        Source: nats.go jetstream/stream.go GetMsg; `start_time` needs a server of 2.11.
        """
        body = which(sequence, last_by_subject, next_by_subject, start_time)
        if start_time is not None:
            # Servers before 2.11 would answer with the first message of all.
            await self._api.require(GET_BY_TIME)
            body.setdefault("next_by_subj", ">")
        message = await self._ask_message(body)
        if message is None and last_by_subject == ">":
            # For ">" servers look at their last sequence alone, which may be deleted.
            found = [await self._ask_message({"last_by_subj": each}) for each in EVERY_SUBJECT]
            message = max(filter(None, found), key=lambda each: each.sequence, default=None)
        return message

    async def _ask_message(self, body: dict[str, object]) -> Message | None:
        subject = api.message_get(self.name)
        try:
            answer = await self._api.read(subject, body, what=f"message of stream {self.name}")
        except MessageNotFoundError:
            return None
        return stored_message(answer)
