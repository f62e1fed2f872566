"""Verifies chains; pure rules.

Law: the first broken link of each writer is reported, and all later ones are ignored. A link is
intact if its number follows, its previous hash is that of the link before, and its own hash is that
of its content.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from natsstream.api.message import Message
from natsstream.errors import ChainBrokenError, ProtocolError
from natsstream.streams.chain.links import ChainHead, ChainLink, is_same_hash, link_hash, read_link

BreakKind = Literal[
    "malformed", "content", "restarted", "replayed", "missing", "previous", "head", "tail"
]
"""The ways in which a chain can be broken.

- malformed: chain headers are missing, doubled or illegal, or the block has more than headers.
- content: payload, subject, headers, number or writer are not what was hashed, or the key is wrong.
- restarted: the link claims to be the first, and is not.
- replayed: the number was used before.
- missing: links before it are missing.
- previous: its previous hash is not that of the link before.
- head: it is not the link of the given head.
- tail: the chain ends before the given head.
"""

_MEANING: Mapping[str, str] = {
    "malformed": "its chain headers are missing, doubled or illegal",
    "content": "its payload, subject or headers are not what was hashed, or the key is wrong",
    "restarted": "it claims to be the first link",
    "replayed": "its number was used before",
    "missing": "links before it are missing",
    "previous": "its previous hash is not that of the link before",
    "head": "it is not the link of the given head",
    "tail": "the chain ends before its head",
}


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The first broken link of a writer.

    Attributes:
        writer: The writer's id; empty if the link has none.
        sequence: Its sequence in the stream; 0 if the end of the chain is missing.
        kind: How the chain is broken.
        detail: The expected and the actual numbers.
    """

    writer: str
    sequence: int
    kind: BreakKind
    detail: str = ""

    def error(self, stream: str) -> ChainBrokenError:
        """Return the error for this link."""
        where = f"at sequence {self.sequence}" if self.sequence else "at its end"
        return ChainBrokenError(
            f"the chain of writer {self.writer!r} in stream {stream} is broken {where}: "
            f"{_MEANING[self.kind]}",
            writer=self.writer,
            sequence=self.sequence,
            kind=self.kind,
            detail=self.detail,
            hint="look at the messages around it; a stream with limits needs since={...}, because "
            "its first links are gone",
        )


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The result of a verification.

    Attributes:
        heads: The newest intact link of each writer; keep them for the next verification.
        breaks: The first broken link of each writer that has one, in the order of the stream.
        links: How many links are intact.
        unchained: Messages that belong to no chain.
    """

    heads: Mapping[str, ChainHead]
    breaks: tuple[BrokenLink, ...]
    links: int
    unchained: int

    @property
    def is_intact(self) -> bool:
        """True if no chain is broken."""
        return not self.breaks


def link_of(message: Message) -> ChainLink | str | None:
    """Return the link that a message is; see `read_link`."""
    try:
        return read_link(message.headers)
    except ProtocolError:
        return None  # The block is no headers to any client.


class ChainVerifier:
    """Verifies the messages of a stream, in their order.

    Args:
        key: The key of the HMAC; None for plain hashes.
        writers: The writers to verify; None for all.
        since: Heads to start behind; earlier links are skipped.
        head: Heads that the chains must have reached.
    """

    def __init__(
        self,
        key: bytes | None,
        writers: Collection[str] | None,
        since: Mapping[str, ChainHead],
        head: Mapping[str, ChainHead],
    ) -> None:
        self._key = key
        self._writers = writers
        self._since = since
        self._wanted = head
        self._heads: dict[str, ChainHead] = dict(since)
        self._breaks: dict[str, BrokenLink] = {}
        self._links = 0
        self._unchained = 0

    def add(self, message: Message) -> BrokenLink | None:
        """Verify the next message; return the broken link if it is one."""
        link = link_of(message)
        if link is None:
            self._unchained += 1
            return None
        writer = link if isinstance(link, str) else link.writer
        if self._writers is not None and writer not in self._writers:
            return None
        if writer in self._breaks:
            return None
        since = self._since.get(writer)
        if since is not None and message.sequence <= since.sequence:
            return None
        problem = self._problem(link, message)
        if problem is None and isinstance(link, ChainLink):
            self._links += 1
            self._heads[writer] = ChainHead(writer, link.count, link.hash, message.sequence)
            return None
        kind, detail = problem or ("malformed", "")
        broken = BrokenLink(writer, message.sequence, kind, detail)
        self._breaks[writer] = broken
        return broken

    def _problem(self, link: ChainLink | str, message: Message) -> tuple[BreakKind, str] | None:
        if isinstance(link, str):
            return "malformed", ""
        content = (message.subject, message.headers, message.data)
        actual = link_hash(link.writer, link.count, link.previous, content, self._key)
        if not is_same_hash(actual, link.hash):
            return "content", f"the hash is {actual}, the header has {link.hash}"
        last = self._heads.get(link.writer, ChainHead(link.writer))
        if link.count <= last.count:
            kind = "restarted" if link.count == 1 else "replayed"
            return kind, f"link {link.count} comes after link {last.count}"
        if link.count > last.count + 1:
            return "missing", f"link {link.count} comes after link {last.count}"
        if link.previous != last.hash:
            return "previous", f"the header has {link.previous}, the link before {last.hash}"
        wanted = self._wanted.get(link.writer)
        if wanted is not None and wanted.count == link.count and wanted.hash != link.hash:
            return "head", f"link {link.count} has hash {link.hash}, the head {wanted.hash}"
        return None

    def report(self) -> ChainReport:
        """Return the result; call it after the last message."""
        breaks = dict(self._breaks)
        for writer, wanted in self._wanted.items():
            last = self._heads.get(writer, ChainHead(writer))
            if writer not in breaks and last.count < wanted.count:
                detail = f"it ends with link {last.count}, the head is link {wanted.count}"
                breaks[writer] = BrokenLink(writer, 0, "tail", detail)
        ordered = sorted(breaks.values(), key=lambda each: each.sequence or 2**64)
        return ChainReport(dict(self._heads), tuple(ordered), self._links, self._unchained)
