"""Encodes a publisher's messages: the bytes around the payload.

Law: a message that may be sent again has an id.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace

from natsstream._wire.encode import publish_start
from natsstream._wire.headers import encode_headers
from natsstream.api.requests import Api
from natsstream.errors import ConfigError
from natsstream.publish.admission import check_with_stream, insist, is_unclustered
from natsstream.publish.destination import Destination
from natsstream.publish.outgoing import (
    Prepared,
    PublishMessage,
    check_publish_subject,
    given_msg_id,
    message_headers,
)

_SUBJECTS_MAX = 1_024
# A server needs longer than this to be started again in a cluster and to give a stream replicas.
_REPLICAS_KNOWN_S = 1.0
# Common to all expectations of an order.
_ORDER_LINE = b"\r\nNats-Expected-Last-"


class MessageEncoder:
    """Makes command prefixes and header blocks for one publisher.

    Args:
        api: The connection.
        retry_for: Seconds within which a message may be sent again; None for never.

    Attributes:
        starts: Command prefix by subject; these subjects are legal.
        destination: The stream of all messages; None for any.
    """

    def __init__(self, api: Api, *, retry_for: float | None) -> None:
        self._api = api
        self._is_retried = retry_for is not None
        self._retry_for = retry_for or 0.0
        self._reply_prefix = ""
        self.starts: dict[str, bytes] = {}
        self._ids = f"{secrets.token_urlsafe(9)}-"
        self._ids_given = 0
        self.destination: Destination | None = None
        # Time until which the stream of a subject is known to be outside of clusters.
        self._alone_until: dict[str, float] = {}

    def begin(self, reply_prefix: str) -> None:
        """Begin a `with` block; its acks go to subjects with this prefix."""
        self._reply_prefix = reply_prefix
        self.destination = None
        self.starts.clear()

    async def start(self, subject: object) -> bytes:
        """Return the command prefix of a subject.

        Raises:
            SubjectError: The subject is illegal.
            WrongStreamError: Another stream captures it.
        """
        legal = check_publish_subject(subject)
        if self.destination is not None:
            await self.destination.check(legal)
        elif self._api.make_stream is not None:
            # Before the first message, or later ones of the subject would be lost as well.
            make = self._api.make_stream
            await insist(lambda: make(legal), self._retry_for)
        if len(self.starts) >= _SUBJECTS_MAX:
            self.starts.clear()
        start = self.starts[legal] = publish_start(legal, self._reply_prefix)
        return start

    async def make(self, subject: str, data: bytes, given: PublishMessage | None) -> bytes:
        """Return the header block of a message, with an id if it may be sent again.

        Args:
            subject: A legal subject.
            data: The payload.
            given: The message with more than these; None if there is no more.

        Raises:
            HeaderError: A header is illegal.
            ConfigError: An argument is illegal here.
            UnsupportedServerError: The server is too old for an argument.
        """
        if given is None:
            return encode_headers({"Nats-Msg-Id": self._new_id()})
        if self._is_retried and given.msg_id is None:
            # An id in the headers counts as well.
            found = given_msg_id(given.headers)
            given = replace(given, msg_id=self._new_id() if found is None else found)
        block, needs, expects_last_id = message_headers(given)
        if self._is_retried and _ORDER_LINE in block:
            raise ConfigError(
                "retry_for allows no expectation of the message before",
                detail="the second copy would be refused because of the first",
                hint="leave retry_for out, or the expectation",
            )
        if needs or expects_last_id:
            await self._check_with_stream(Prepared(subject, data, block, needs, expects_last_id))
        return block

    async def _check_with_stream(self, message: Prepared) -> None:
        """Check a message with the servers and the stream; outside of clusters once a second."""
        now = asyncio.get_running_loop().time()
        if message.expects_last_id and now < self._alone_until.get(message.subject, 0.0):
            message = message._replace(expects_last_id=False)
        asked = message
        stream = await insist(lambda: check_with_stream(self._api, asked), self._retry_for)
        if stream is not None and is_unclustered(stream):
            if len(self._alone_until) >= _SUBJECTS_MAX:
                self._alone_until.clear()
            self._alone_until[message.subject] = now + _REPLICAS_KNOWN_S

    def _new_id(self) -> str:
        """Return an id by which the stream knows a second copy."""
        self._ids_given += 1
        return f"{self._ids}{self._ids_given:x}"
