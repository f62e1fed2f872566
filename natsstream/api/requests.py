"""Requests to JetStream's API: one question, one JSON answer, one deadline.

Law: a request that only reads is asked again while the server is away or says nothing, within its
deadline; one that changes something is asked once, unless nobody was there to do it. No request
leaves without the connection's domain or prefix. A change that can be seen is over when it is seen,
answered or not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from natsstream._wire import subjects
from natsstream._wire.client import Client
from natsstream._wire.errors_map import server_error
from natsstream.api.features import ALL, Feature, api_level, is_too_old, require, unsupported
from natsstream.errors import (
    JetStreamNotEnabledError,
    NatsStreamError,
    NoRespondersError,
    NotFoundError,
    ProtocolError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)
from natsstream.fields import Fields

# A server that restarts has no responders for some tens of milliseconds (ADR-22 waits 250 ms).
_RETRY_WAIT_S = 0.1
_CHANGE_RETRIES = 2
# How long a change is silent before it is looked after; an answer takes some milliseconds.
_LOOK_EVERY_S = 1.0
# What asking for the API level may end in where everything else works.
_NO_LEVEL = (ServerError, NoRespondersError, RequestTimeoutError, ProtocolError)


class ChangeProbe(NamedTuple):
    """Where a change can be seen that a cluster carries out without a word.

    Each replica leaves the answer to the leader. While that steps down it can be nobody's (up to
    2.15.1), and then there is none, though the change is there in milliseconds.

    Attributes:
        info: The API's subject that describes the thing.
        is_done: Tells by the answer, None where the thing does not exist, whether it is changed.
    """

    info: str
    is_done: Callable[[Fields | None], bool]


def is_deleted(found: Fields | None) -> bool:
    """Tell that a thing is deleted; what `Look` needs of a deletion."""
    return found is None


class Api:
    """JetStream's API over one connection.

    Attributes:
        client: The connection.
        prefix: What stands before each request: `$JS.API`, or that of a domain or an import.
        make_stream: Makes the stream of a subject that none captures, and tells whether there is
            one now; None where the connection has no templates. Whoever publishes asks it.
    """

    def __init__(self, client: Client) -> None:
        self.client: Client = client
        options = client.options
        self.prefix: str = subjects.api_prefix(options.domain, options.api_prefix)
        self.make_stream: Callable[[str], Awaitable[bool]] | None = None
        self._level: int | None = None
        self._level_of = 0
        self._level_lock = asyncio.Lock()

    def subject(self, subject: str) -> str:
        """Return a subject of the API under this connection's domain or prefix.

        Every request goes through here, also those that are written without waiting for an answer.
        """
        return subjects.under_prefix(subject, self.prefix)

    async def level(self) -> int | None:
        """Return JetStream's API level (ADR-44), 0 before 2.11; None where it can not be read.

        Raises:
            ConnectionLostError: The connection broke before the answer came.

        Cost: one round trip for each connection, so that a server that was upgraded, or another
        one, is asked again.
        """
        if self._level_of == self.client.connections:
            return self._level
        async with self._level_lock:  # Thousands of messages may want to know at once.
            connection = self.client.connections
            if self._level_of != connection:
                timeout = self.client.options.request_timeout
                try:
                    answer = await self._ask(subjects.INFO, None, "account", timeout, repeats=True)
                except _NO_LEVEL:
                    # An import may leave this request out, and permissions may forbid it.
                    self._level = None
                else:
                    self._level = api_level(answer.raw)
                self._level_of = connection
        return self._level

    async def require(self, *wanted: Feature) -> None:
        """Refuse what the servers lack, before anything of it is sent.

        Raises:
            UnsupportedServerError: They lack a feature.

        Cost: none, or `level()` when a feature is younger than 2.10.
        """
        is_young = any(feature.level for feature in wanted)
        require(self.client, *wanted, level=await self.level() if is_young else None)

    async def change(
        self,
        subject: str,
        body: Mapping[str, object] | None,
        *,
        what: str,
        timeout: float | None = None,
        look: ChangeProbe | None = None,
    ) -> Fields:
        """Ask once for something that changes the server.

        Where nobody listens nothing was done, so it is asked again after 250 ms, twice (ADR-22): a
        leader may be on its way.

        Args:
            subject: The API's subject.
            body: The JSON of the request.
            what: The thing that is changed, for errors.
            timeout: Seconds in all; None is `request_timeout`.
            look: Where the change can be seen if nobody answers.

        Returns:
            The answer; that of the look where the change was seen, empty where the thing is gone.

        Raises:
            ServerError: The server refused.
            JetStreamNotEnabledError: The server has no JetStream.
            TransportError: There was no answer; whether it was done is not known, or, with a look,
                it was not seen.

        Cost: one round trip; with a look one more for each second of silence.
        """
        timeout = self.client.options.request_timeout if timeout is None else timeout
        asking = self._ask(subject, body, what, timeout, retries=_CHANGE_RETRIES)
        return await (asking if look is None else self._watching(asking, look, what))

    async def _watching(
        self, asking: Coroutine[Any, Any, Fields], look: ChangeProbe, what: str
    ) -> Fields:
        answer = asyncio.ensure_future(asking)
        try:
            while not (await asyncio.wait({answer}, timeout=_LOOK_EVERY_S))[0]:
                # What can not be seen now may be seen the next time; the answer has the deadline.
                with suppress(NatsStreamError):
                    found = await self._find(look, what)
                    if look.is_done(found):
                        return found or Fields({}, what)
            return await answer
        finally:
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # It failed while the change was seen: nobody is to hear of it.

    async def _find(self, look: ChangeProbe, what: str) -> Fields | None:
        try:
            return await self.read(look.info, None, what=what, timeout=_LOOK_EVERY_S)
        except NotFoundError:
            return None

    async def read(
        self,
        subject: str,
        body: Mapping[str, object] | None,
        *,
        what: str,
        timeout: float | None = None,
    ) -> Fields:
        """Ask for something that only reads, again while the server is away or says nothing.

        A node that has just started, or lost its leader, takes questions that nobody answers.

        Args:
            subject: The API's subject.
            body: The JSON of the request.
            what: The thing that is asked for, for errors.
            timeout: Seconds in all; None is `request_timeout`.

        Raises:
            ServerError: The server refused.
            JetStreamNotEnabledError: The server has no JetStream.
            TransportError: There was no answer in time.
        """
        timeout = self.client.options.request_timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        told: NatsStreamError | None = None
        while True:
            left = deadline - loop.time()
            try:
                await self.client.wait_connected(max(left, 0.001))
                return await self._ask(subject, body, what, max(left, 0.001), repeats=True)
            except (TransportError, ServerError) as error:
                # A timeout has used the deadline up; the others may be over in a moment.
                left = deadline - loop.time() - _RETRY_WAIT_S
                if told is not None and isinstance(error, RequestTimeoutError):
                    # The last attempt had what the others left; what they were told says more.
                    raise told from error
                if not error.retryable or isinstance(error, RequestTimeoutError) or left <= 0:
                    raise
                told = error
            await asyncio.sleep(_RETRY_WAIT_S)

    async def _ask(
        self,
        subject: str,
        body: Mapping[str, object] | None,
        what: str,
        timeout: float,
        *,
        retries: int = 0,
        repeats: bool = False,
    ) -> Fields:
        self._check_age()
        payload = json.dumps(body).encode() if body else b""
        try:
            frame = await self.client.request(
                self.subject(subject), payload, timeout=timeout, retries=retries, repeats=repeats
            )
        except NoRespondersError as error:
            raise self._no_jetstream(what) from error
        return decode(frame[3], what)

    def _check_age(self) -> None:
        """Refuse a server older than all that were tried; behind a domain it may be any."""
        version = self.client.server_info.get("version")
        if self.prefix == subjects.PREFIX and is_too_old(version):
            raise unsupported(
                f"natsstream needs nats-server {ALL.needs_text}, {self.client.url} has {version}",
                ALL,
                version=str(version),
                hint="upgrade the server",
            )

    def _no_jetstream(self, what: str) -> JetStreamNotEnabledError | NoRespondersError:
        url = self.client.url
        if self.prefix != subjects.PREFIX:
            return NoRespondersError(
                f"{what}: no JetStream answers under {self.prefix} at {url}",
                hint="is the domain's server linked to this one, and is the API exported to this "
                "account?",
                retryable=True,
            )
        if not self.client.server_info.get("jetstream", False):
            return JetStreamNotEnabledError(
                f"{url} has no JetStream",
                hint="start it with: nats-server -js; or name the domain of a server behind it",
            )
        return NoRespondersError(
            f"{what}: JetStream does not answer at {url}",
            hint="is the account enabled for JetStream, and has the cluster a leader?",
            retryable=True,
        )


def decode(payload: bytes, what: str) -> Fields:
    """Return the JSON object of an answer, or raise the error that it carries.

    Raises:
        ServerError: The answer is an error.
        ProtocolError: The answer is no JSON object.
    """
    hint = "does some other program listen on the subject?"
    answer = Fields.parse(payload, f"the answer for {what}", hint=hint)
    error = answer.part_or_none("error")
    if error is not None:
        raise server_error(error.raw, what=what)
    return answer
