"""Whether chains are as their writers made them; pure rules.

Law: of each writer the first broken link is named, and nothing after it is believed. A link is
right when its number follows, it names the hash before it, and its own hash is that of what it
holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from natsstream.api.message import Message
from natsstream.errors import ChainBrokenError, ProtocolError
from natsstream.streams.chain.links import (
    ChainHead,
    ChainLink,
    is_same_hash,
    link_hash,
    read_link,
)

BreakKind = Literal[
    "malformed", "content", "restarted", "replayed", "missing", "previous", "head", "tail"
]
"""How a chain can be broken.

- malformed: the headers of a link are missing, doubled or no such values, or their block holds
  something else than headers.
- content: payload, subject, headers, number or writer are not what was hashed, or the key differs.
- restarted: it claims to be the first link, and is not.
- replayed: its number was there before.
- missing: links before it are not there.
- previous: it names another link before it than there is.
- head: it is not the link that the given head names.
- tail: the chain ends before the given head.
"""

_MEANING: Mapping[str, str] = {
    "malformed": "its chain headers are missing, doubled or no such values",
    "content": "its payload, subject or headers are not what was hashed, or the key is another",
    "restarted": "it claims to be the first link",
    "replayed": "its number was there before",
    "missing": "links before it are not there",
    "previous": "it names another link before it",
    "head": "it is not the link that the head names",
    "tail": "the chain ends before its head",
}


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The first broken link of a writer.

    Attributes:
        writer: Whose chain; empty where the link does not tell.
        sequence: Its sequence in the stream; 0 where the end of the chain is missing.
        kind: What differs.
        detail: Numbers that were expected and found.
    """

    writer: str
    sequence: int
    kind: BreakKind
    detail: str = ""

    def error(self, stream: str) -> ChainBrokenError:
        """Return the error that tells it."""
        where = f"at sequence {self.sequence}" if self.sequence else "at its end"
        return ChainBrokenError(
            f"the chain of writer {self.writer!r} in stream {stream} is broken {where}: "
            f"{_MEANING[self.kind]}",
            writer=self.writer,
            sequence=self.sequence,
            kind=self.kind,
            detail=self.detail,
            hint="look at the messages around it; a stream with limits needs since={...}, since "
            "its first links are gone",
        )


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a verification has found.

    Attributes:
        heads: The newest right link of each writer; keep them for the next verification.
        breaks: The first broken link of each writer that has one, in the order of the stream.
        links: How many links are right.
        unchained: Messages that belong to no chain.
    """

    heads: Mapping[str, ChainHead]
    breaks: tuple[BrokenLink, ...]
    links: int
    unchained: int

    @property
    def is_intact(self) -> bool:
        """True when no chain is broken."""
        return not self.breaks


def link_of(message: Message) -> ChainLink | str | None:
    """Return the link that a message is; see `read_link`."""
    try:
        return read_link(message.headers)
    except ProtocolError:
        return None  # Something that no client calls headers.


class ChainVerifier:
    """Walks over the messages of a stream, in their order.

    Args:
        key: The key of the HMAC; None for plain hashes.
        writers: Whose chains; None for all.
        since: Heads to begin behind; what stands before them is not looked at.
        head: Heads that the chains must have come to.
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
        """Look at the next message; returns the break that it is, if it is one."""
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
        found = self._problem(link, message)
        if found is None and isinstance(link, ChainLink):
            self._links += 1
            self._heads[writer] = ChainHead(writer, link.count, link.hash, message.sequence)
            return None
        kind, detail = found or ("malformed", "")
        broken = BrokenLink(writer, message.sequence, kind, detail)
        self._breaks[writer] = broken
        return broken

    def _problem(self, link: ChainLink | str, message: Message) -> tuple[BreakKind, str] | None:
        if isinstance(link, str):
            return "malformed", ""
        content = (message.subject, message.headers, message.data)
        found = link_hash(link.writer, link.count, link.previous, content, self._key)
        if not is_same_hash(found, link.hash):
            return "content", f"the hash is {found}, it says {link.hash}"
        last = self._heads.get(link.writer, ChainHead(link.writer))
        if link.count <= last.count:
            kind = "restarted" if link.count == 1 else "replayed"
            return kind, f"link {link.count} comes after link {last.count}"
        if link.count > last.count + 1:
            return "missing", f"link {link.count} comes after link {last.count}"
        if link.previous != last.hash:
            return "previous", f"it names {link.previous}, before it is {last.hash}"
        wanted = self._wanted.get(link.writer)
        if wanted is not None and wanted.count == link.count and wanted.hash != link.hash:
            return "head", f"link {link.count} has hash {link.hash}, the head {wanted.hash}"
        return None

    def report(self) -> ChainReport:
        """Return what was found; call it after the last message."""
        breaks = dict(self._breaks)
        for writer, wanted in self._wanted.items():
            last = self._heads.get(writer, ChainHead(writer))
            if writer not in breaks and last.count < wanted.count:
                detail = f"it ends with link {last.count}, the head is link {wanted.count}"
                breaks[writer] = BrokenLink(writer, 0, "tail", detail)
        ordered = sorted(breaks.values(), key=lambda each: each.sequence or 2**64)
        return ChainReport(dict(self._heads), tuple(ordered), self._links, self._unchained)
