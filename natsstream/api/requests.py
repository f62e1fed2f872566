"""Requests to JetStream's API: one request, one JSON answer, one deadline.

Law: a read is retried within its deadline while the server is away or does not answer. A change is
sent once, and again only after "no responders", or if a server has no leader and the look-up does
not show the change. Every request carries the connection's domain or
prefix. A change that can be looked up is done once it is seen, with or without an answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from natsstream._wire import subjects
from natsstream._wire.client import Client
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream._wire.errors_map import server_error
from natsstream.api.features import (
    ALL,
    Feature,
    api_level,
    is_too_old,
    require,
    unknown_field,
    unsupported,
)
from natsstream.errors import (
    JetStreamNotEnabledError,
    NatsStreamError,
    NoRespondersError,
    NotFoundError,
    ProtocolError,
    RequestTimeoutError,
    ServerError,
    TransportError,
    UnavailableError,
)
from natsstream.fields import Fields

# A server that restarts has no responders for some tens of milliseconds (ADR-22 waits 250 ms).
_RETRY_WAIT_S = 0.1
_CHANGE_RETRIES = 2
# Silence after which a change is looked up; an answer takes some milliseconds.
_LOOK_EVERY_S = 1.0
# Errors that a request for the API level may raise while other requests work.
_NO_LEVEL = (ServerError, NoRespondersError, RequestTimeoutError, ProtocolError)


class ChangeProbe(NamedTuple):
    """How to look up a change that a cluster makes without an answer.

    Each replica leaves the answer to the leader. While the leader steps down, no replica answers
    (up to 2.15.1), though the change is made within milliseconds.

    Attributes:
        info: The API subject that describes the stream or the consumer.
        is_done: Returns True if the answer shows the change; the answer is None if the stream or
            the consumer does not exist.
    """

    info: str
    is_done: Callable[[Fields | None], bool]


def is_deleted(found: Fields | None) -> bool:
    """Return True if the stream or the consumer is gone; the `is_done` of a deletion."""
    return found is None


class Api:
    """JetStream's API over one connection.

    Attributes:
        client: The connection.
        prefix: Prefix of each request: `$JS.API`, or that of a domain or an import.
        make_stream: Creates the stream for a subject that no stream captures, and returns True if
            one captures it now. Publishers call it; None if the connection has no templates.
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

        Every request uses it, also those that do not wait for an answer.
        """
        return subjects.under_prefix(subject, self.prefix)

    async def level(self) -> int | None:
        """Return JetStream's API level (ADR-44), 0 before 2.11; None if it cannot be read.

        Raises:
            ConnectionLostError: The connection broke, and was not back within `request_timeout`.

        Cost: one round trip for each connection, since a reconnect may reach another server or an
        upgraded one.
        """
        if self._level_of == self.client.connections:
            return self._level
        async with self._level_lock:  # Thousands of messages may need it at once.
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
        """Refuse features that the servers lack, before anything is sent.

        Raises:
            UnsupportedServerError: The servers lack a feature.

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
        """Send a request that changes something, once.

        After "no responders" nothing was done, so the request is retried twice, 250 ms apart
        (ADR-22): an election may be in progress. A server that knows no leader says so, though the
        leader may make the change: with `look` it is looked up, and sent again if it is not seen.

        Args:
            subject: The API subject.
            body: The JSON of the request.
            what: Name of what is changed, for errors.
            timeout: Seconds in all; None is `request_timeout`.
            look: How to look up the change if no answer comes.

        Returns:
            The answer. If the change was looked up: the info that shows it, empty after a deletion.

        Raises:
            ServerError: The server refused.
            JetStreamNotEnabledError: The server has no JetStream.
            TransportError: There was no answer. The change may be done; with `look`, it was not
                seen.

        Cost: one round trip; with `look` one more for each second of silence.
        """
        timeout = self.client.options.request_timeout if timeout is None else timeout

        def ask(left: float) -> Coroutine[Any, Any, Fields]:
            return self._ask(subject, body, what, left, retries=_CHANGE_RETRIES)

        return await (ask(timeout) if look is None else self._insisting(ask, look, what, timeout))

    async def _insisting(
        self,
        ask: Callable[[float], Coroutine[Any, Any, Fields]],
        look: ChangeProbe,
        what: str,
        timeout: float,
    ) -> Fields:
        loop = asyncio.get_running_loop()
        deadline, left = loop.time() + timeout, timeout
        refused: UnavailableError | None = None
        while True:
            try:
                return await self._watching(ask(left), look, what)
            except NotFoundError:
                if refused is not None and look.is_done(None):
                    return Fields({}, what)  # The first request has deleted it.
                raise
            except RequestTimeoutError as error:
                if refused is not None:
                    raise refused from error  # It says more than that time is up.
                raise
            except UnavailableError as error:
                is_leaderless = find_error_code(error.err_code) is ErrorCode.CLUSTER_NOT_AVAIL
                if not is_leaderless or loop.time() + _RETRY_WAIT_S >= deadline:
                    raise
                refused = error
            await asyncio.sleep(_RETRY_WAIT_S)
            with suppress(NatsStreamError):
                found = await self._find(look, what)
                if look.is_done(found):
                    return found or Fields({}, what)
            left = max(deadline - loop.time(), 0.001)

    async def _watching(
        self, asking: Coroutine[Any, Any, Fields], look: ChangeProbe, what: str
    ) -> Fields:
        answer = asyncio.ensure_future(asking)
        try:
            while not (await asyncio.wait({answer}, timeout=_LOOK_EVERY_S))[0]:
                # A failed look-up is repeated; the request itself has the deadline.
                with suppress(NatsStreamError):
                    found = await self._find(look, what)
                    if look.is_done(found):
                        return found or Fields({}, what)
            return await answer
        finally:
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # The change was seen, so its late failure is not reported.

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
        """Send a request that only reads; retry while the server is away or does not answer.

        A server that has just started, or lost its leader, takes requests without answering them.

        Args:
            subject: The API subject.
            body: The JSON of the request.
            what: Name of what is read, for errors.
            timeout: Seconds in all; None is `request_timeout`.

        Raises:
            ServerError: The server refused.
            JetStreamNotEnabledError: The server has no JetStream.
            TransportError: There was no answer in time.
        """
        timeout = self.client.options.request_timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline, left = loop.time() + timeout, timeout
        told: NatsStreamError | None = None
        while True:
            try:
                return await self._ask(subject, body, what, left, repeats=True)
            except (TransportError, ServerError) as error:
                # A timeout has used up the deadline; other failures may pass in a moment.
                left = deadline - loop.time() - _RETRY_WAIT_S
                if told is not None and isinstance(error, RequestTimeoutError):
                    # The last attempt had little time left: the earlier error says more.
                    raise told from error
                if not error.retryable or isinstance(error, RequestTimeoutError) or left <= 0:
                    raise
                told = error
            await asyncio.sleep(_RETRY_WAIT_S)
            left = max(deadline - loop.time(), 0.001)

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
                self.subject(subject),
                payload,
                timeout=timeout,
                retries=retries,
                repeats=repeats,
                what=what,
            )
        except NoRespondersError as error:
            raise self._no_jetstream(what) from error
        return decode(frame[3], what)

    def _check_age(self) -> None:
        """Refuse a server older than any that was tested; behind a domain it may be any."""
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
            hint="is the account enabled for JetStream, and does the cluster have a leader?",
            retryable=True,
        )


async def send_config(
    api: Api,
    subject: str,
    body: Mapping[str, object],
    *,
    what: str,
    look: ChangeProbe | None = None,
) -> Fields:
    """Send a configuration; see `Api.change`.

    Raises:
        UnsupportedServerError: The server does not know a field, or cannot read its value.
        NatsStreamError: As for `Api.change`.
    """
    try:
        return await api.change(subject, body, what=what, look=look)
    except ServerError as error:
        if find_error_code(error.err_code) is not ErrorCode.INVALID_JSON:
            raise
        raise unknown_field(error, what) from error


def decode(payload: bytes, what: str) -> Fields:
    """Return the JSON object of an answer, or raise the error that it carries.

    Raises:
        ServerError: The answer is an error.
        ProtocolError: The answer is not a JSON object.
    """
    hint = "does another program answer on the subject?"
    answer = Fields.parse(payload, f"the answer for {what}", hint=hint)
    error = answer.part_or_none("error")
    if error is not None:
        raise server_error(error.raw, what=what)
    return answer
