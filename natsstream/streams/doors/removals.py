"""Taking things out of a stream, or the stream itself: purge, one message, sealing, deletion.

Law: nothing is removed that the caller did not name; where the server's refusal has several
causes, the right one is looked up and told.
"""

from __future__ import annotations

from typing import cast

from natsstream._wire import subjects
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream.api.names import check_filter
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import delete_stream
from natsstream.arguments import check_bool, check_int, check_text
from natsstream.errors import (
    ConfigError,
    MessageNotFoundError,
    NotPermittedError,
    ServerError,
    SubjectError,
)
from natsstream.streams.doors.part import Part

_SEQUENCE_MAX = 2**64 - 1


class Removals(Part):
    """Removes from a stream."""

    async def purge(
        self, *, subject: str | None = None, before: int | None = None, keep: int | None = None
    ) -> int:
        """Remove messages and return how many; without arguments all of them.

        Sequences go on where they were. What other systems call truncating is this.

        Args:
            subject: Only messages of this subject; wildcards are taken.
            before: Only messages before this sequence, which itself stays.
            keep: All but the newest `keep`, of the subject when one is given; 0 keeps none.

        Raises:
            ConfigError: `before` and `keep` are given together, or are no such numbers.
            SubjectError: The subject is not legal; nothing was sent.
            NotPermittedError: The stream has `deny_purge`.
            StreamSealedError: The stream is sealed.
            StreamNotFoundError: It does not exist.
            TransportError: No answer; it may be done or not. A purge may be repeated safely unless
                messages were stored meanwhile that `before` or `keep` does not spare.

        Cost: one round trip; a filter makes the server look at each subject that it matches.
        Source: nats.go jetstream/stream.go Purge.
        """
        body: dict[str, object] = {}
        if before is not None and keep is not None:
            raise ConfigError(
                "purge takes before or keep, not both",
                hint="purge twice, or count what to keep from the stream's info",
            )
        if subject is not None:
            body["filter"] = check_filter(check_text(subject, "subject", error=SubjectError))
        if before is not None:
            body["seq"] = check_int(before, "before", minimum=1, maximum=_SEQUENCE_MAX)
            if before == 1:
                return 0  # Nothing stands there; some stores would take it for no limit.
        if keep is not None and check_int(keep, "keep", minimum=0, maximum=_SEQUENCE_MAX):
            body["keep"] = keep
        answer = await self._api.change(
            subjects.stream_purge(self.name), body, what=f"purge of stream {self.name}"
        )
        return answer.count("purged")

    async def delete_message(self, sequence: int, *, secure: bool = False) -> None:
        """Delete one message; readers step over its sequence.

        Args:
            sequence: Which one.
            secure: Also overwrite its bytes on the disk with noise, which is slow.

        Raises:
            ConfigError: The sequence is no number from 1 on.
            MessageNotFoundError: The stream has no message there.
            NotPermittedError: The stream has `deny_delete`.
            StreamSealedError: The stream is sealed.
            TransportError: No answer; it may be done or not. Repeat it: `MessageNotFoundError`
                then says that it is gone.

        Cost: one round trip.
        Source: nats.go jetstream/stream.go DeleteMsg and SecureDeleteMsg.
        """
        check_int(sequence, "sequence", minimum=1, maximum=_SEQUENCE_MAX)
        body: dict[str, object] = {"seq": sequence}
        if not check_bool(secure, "secure"):
            body["no_erase"] = True
        what = f"message {sequence} of stream {self.name}"
        try:
            await self._api.change(subjects.message_delete(self.name), body, what=what)
        except ServerError as error:
            if find_error_code(error.err_code) is not ErrorCode.STREAM_MSG_DELETE_FAILED:
                raise
            raise await self._why_not_deleted(error, sequence, what) from error

    async def _why_not_deleted(self, error: ServerError, sequence: int, what: str) -> ServerError:
        """Return what 10057 means here: it has several causes."""
        info = await self._fresh_info()
        if info.config.deny_delete:
            failure: ServerError = NotPermittedError(
                f"{what}: the stream has deny_delete",
                hint="deny_delete can not be taken back; purge() may be allowed",
            )
        elif not info.state.first_seq <= sequence <= info.state.last_seq:
            failure = MessageNotFoundError(
                f"{what}: the stream has sequences {info.state.first_seq} to {info.state.last_seq}",
                hint="it was removed before, or is not written yet",
            )
        else:
            return error
        failure.code, failure.err_code = error.code, error.err_code
        failure.description = error.description
        return failure

    async def _fresh_info(self) -> StreamInfo:
        answer = await self._api.read(
            subjects.stream_info(self.name), None, what=f"stream {self.name}"
        )
        return StreamInfo.from_json(answer)

    async def seal(self) -> StreamInfo:
        """Forbid all writes and removals for ever; the stream itself can still be deleted.

        The server also takes back `max_age` and other limits that would remove messages. It can
        not be undone.

        Returns:
            What the stream is now; `cached` keeps what it was.

        Raises:
            InvalidConfigError: The server refused it, or did not take it.
            StreamNotFoundError: It does not exist.

        Cost: two round trips.
        """
        info = await self._fresh_info()
        if info.config.sealed:
            return info
        config = {**cast("dict[str, object]", info.raw["config"]), "sealed": True}
        answer = await self._api.change(
            subjects.stream_update(self.name), config, what=f"sealing of stream {self.name}"
        )
        return StreamInfo.from_json(answer)

    async def delete(self) -> None:
        """Delete the stream with all of its messages and consumers, also a sealed one.

        Raises:
            StreamNotFoundError: It does not exist.
            TransportError: No answer, and it is there; it may still be deleted.
        """
        await delete_stream(self._api, self.name)
