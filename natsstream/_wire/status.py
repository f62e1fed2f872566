"""Status lines: header blocks of a server instead of a message.

Law: the code decides. Only the meanings of 409 differ by English text, because the server has
nothing else; all these texts are in one table below, compared without case, and an unknown one is
`PullEnd.OTHER`.

Any client can publish a block with a status line, and older servers also store it. So a reader
accepts a status only from a frame whose reply is no ack subject.

Source: nats-server's consumer.go and stream.go; ADR-13 for pulls, ADR-31 for direct get.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from natsstream._wire.headers import VERSION_LINE, HeaderName, Headers

_LINE_START = len(VERSION_LINE)
_LINE_END = _LINE_START + 2
_CODE_SIZE = 3


class StatusCode(IntEnum):
    """The codes that nats-server sends."""

    CONTROL = 100
    """An idle heartbeat, or a request for flow control; see `Status.is_heartbeat`."""
    END_OF_BATCH = 204
    """A direct get, or a snapshot, has sent everything."""
    BAD_REQUEST = 400
    """An invalid pull request; a retry does not help."""
    NOT_FOUND = 404
    """No messages: none pending for a no-wait pull, or none at the sequence or subject."""
    TIMEOUT = 408
    """A pull ended: it expired, lost its interest or queued up. In direct get: a bad request."""
    CONFLICT = 409
    """A pull ended for a reason that only `Status.pull_end` tells."""
    API_LEVEL = 412
    """The request needs a newer API level than the server has."""
    TOO_MANY_RESULTS = 413
    """A direct get for more subjects than the server answers at once."""
    WRONG_PIN = 423
    """Another client of the priority group is pinned."""
    TOO_MANY_REQUESTS = 429
    """The stream takes in less than is sent to it; the payload has the JetStream error."""
    SERVER_ERROR = 500
    """The server failed; the description says at what."""
    NO_RESPONDERS = 503
    """The subject has no responders of the request."""


class PullEnd(Enum):
    """Why a pull ended with 409."""

    BATCH_COMPLETED = "batch completed"
    """All messages that the pull asked for came, with some of its `max_bytes` left: pull again."""
    MESSAGE_TOO_LARGE = "message size exceeds maxbytes"
    """The next message is larger than what is left of `max_bytes`, `Nats-Pending-Bytes`.

    That is how a pull bounded by bytes usually ends: pull again. When nothing came and all of
    `max_bytes` is left, the message never fits.
    """
    LEADERSHIP_CHANGE = "leadership change"
    """The consumer moved to another server: pull again."""
    SERVER_SHUTDOWN = "server shutdown"
    """The consumer's server stops: pull again."""
    CONSUMER_DELETED = "consumer deleted"
    """The consumer is gone for good."""
    PUSH_CONSUMER = "consumer is push based"
    """The consumer is a push consumer."""
    TOO_MANY_PULLS = "exceeded maxwaiting"
    """The consumer has `max_waiting` pulls open: wait until one of them ends."""
    BATCH_LIMIT = "exceeded maxrequestbatch"
    """The pull asks for more messages than `max_batch` of the consumer."""
    EXPIRES_LIMIT = "exceeded maxrequestexpires"
    """The pull asks to wait for longer than `max_expires` of the consumer."""
    BYTES_LIMIT = "exceeded maxrequestmaxbytes"
    """The pull asks for more bytes than `max_bytes` of the consumer."""
    OTHER = ""
    """A text that this version does not know."""


# The values of PullEnd are the texts of nats-server 2.9 to 2.15, which are the same. A limit's text
# continues with " of <limit>".
_PULL_ENDS = {end.value: end for end in PullEnd}


@dataclass(frozen=True, slots=True)
class Status:
    """A status message of a server.

    Attributes:
        code: Three digits, one of `StatusCode` or one that this version does not know.
        description: The server's words, may be empty.
        headers: The other headers of the block.
    """

    code: int
    description: str = ""
    headers: Headers = field(default_factory=Headers)

    @property
    def is_heartbeat(self) -> bool:
        """True for an idle heartbeat, which alone among the 100s carries sequences.

        A heartbeat with the header `Nats-Consumer-Stalled` waits for an answer to the subject in
        it; a 100 that is no heartbeat asks for flow control on its own reply subject.
        """
        return self.code == StatusCode.CONTROL and HeaderName.LAST_CONSUMER in self.headers

    @property
    def pull_end(self) -> PullEnd | None:
        """Why a pull ended, None unless the code is 409."""
        if self.code != StatusCode.CONFLICT:
            return None
        return _PULL_ENDS.get(self.description.lower().partition(" of ")[0], PullEnd.OTHER)

    def number(self, name: str) -> int | None:
        """Return a header that is an unsigned number, such as `Nats-Pending-Messages`.

        None when the header is absent or is no number.
        """
        text = self.headers.get(name, "")
        return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else None


def parse_status(block: bytes) -> Status | None:
    """Return the status of a header block, or None when its first line has none.

    A first line that has something else than three digits after the version is no status, and no
    error.
    """
    # Nearly every block is an ordinary message's: answer for those without a search.
    if block[_LINE_START:_LINE_END] == b"\r\n" or not block.startswith(VERSION_LINE):
        return None
    line = block.partition(b"\r\n")[0][_LINE_START:]
    code, _, description = line.strip(b" \t").partition(b" ")
    if not line.startswith((b" ", b"\t")) or len(code) != _CODE_SIZE or not code.isdigit():
        return None
    text = description.strip(b" \t").decode("utf-8", "surrogateescape")
    return Status(int(code), text, Headers(block))
