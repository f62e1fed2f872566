"""The order of a run of messages: each expects the message before it in the stream.

Law: the first message of a run expects nothing, and is sent only when all earlier ones have ended.
Each further one is stored only if the one before it is. So a lost message holds back all later
ones.

The method depends on the stream, by nats-server's source (processJetStreamMsg,
checkMsgHeadersPreClusteredProposal) and tests on 2.15:

- With one replica the server looks for duplicates before it compares message ids, and after it has
  compared sequences. An id names one message, also with other writers; a second copy is a
  duplicate. So ids work.
- With replicas nothing works. Ids are compared when a message is applied, on each server for
  itself; one that is refused is then taken for one in flight, and no second copy is stored until
  the duplicate window has passed. Sequences are compared by the leader, against those that it
  expects: a message of another writer takes the place of ours and the one behind fits again, and
  around a change of leaders later messages were seen to be stored before earlier ones without any
  other writer. So a run is one message there.
- Worse, a wrong id breaks a stream with replicas for good, on nats-server 2.14 to 2.15.1: no write
  is answered any more. A stream of a cluster that has one replica may get more at any moment, and
  messages are lost while it does. So ids are used only where the stream's server is in no cluster;
  `is_unclustered` tells, and is asked again after each break and each pause.
"""

from __future__ import annotations

from natsstream._wire.headers import HeaderName
from natsstream.api.stream_info import StreamInfo

Line = tuple[HeaderName, str]

# The line with no id in it; a block that it begins is counted too.
_LINE_BYTES = len(f"NATS/1.0\r\n{HeaderName.EXPECTED_LAST_MSG_ID.value}: \r\n\r\n")
_UTF8_BYTES_MAX = 4


def is_unclustered(stream: StreamInfo) -> bool:
    """Return True if a stream is on a server outside of clusters, where it can get no replica."""
    cluster = stream.cluster
    return (stream.config.replicas or 1) == 1 and (cluster is None or not cluster.name)


class NoChain:
    """Lets every message be a run of its own; for streams of clusters."""

    @property
    def line_bytes_max(self) -> int:
        """Most bytes that the next message's line can have; 0 for the first."""
        return 0

    def begin(self) -> None:
        """Begin a run: the next message is its first."""

    def next(self, msg_id: str) -> Line | None:
        """Return the expectation of the next message, which has this id; None for the first."""
        del msg_id


class MessageIdGuard(NoChain):
    """Expects the id of the message before; for streams that can have no replicas."""

    def __init__(self) -> None:
        self._last = ""

    @property
    def line_bytes_max(self) -> int:
        return _LINE_BYTES + _UTF8_BYTES_MAX * len(self._last) if self._last else 0

    def begin(self) -> None:
        self._last = ""

    def next(self, msg_id: str) -> Line | None:
        last, self._last = self._last, msg_id
        return (HeaderName.EXPECTED_LAST_MSG_ID, last) if last else None
