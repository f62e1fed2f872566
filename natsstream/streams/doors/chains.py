"""Chains of messages: writing them, and finding out whether somebody changed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from natsstream.api.names import check_filter
from natsstream.arguments import check_bool, check_choice, check_text, check_texts, described
from natsstream.errors import ConfigError, SubjectError
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.streams.chain.links import ChainHead, check_key, check_writer
from natsstream.streams.chain.verify import ChainReport, ChainVerifier
from natsstream.streams.chain.writer import ChainedPublisher
from natsstream.streams.doors.part import Part


class Chains(Part):
    """Writes and verifies chains."""

    def chained(
        self,
        *,
        writer: str,
        key: bytes | None = None,
        filters: Sequence[str] = (),
        exclusive: bool = False,
        resume: ChainHead | None = None,
    ) -> ChainedPublisher:
        """Return a publisher whose messages show when one was changed, removed, moved or added.

        Each message has headers with the writer's id, its number, the hash of the writer's message
        before it and its own. Used with `async with`, it goes on behind the writer's last link.

        Args:
            writer: The writer's id: one process at a time, 1 to 64 of letters, digits, `.`, `_`
                and `-`.
            key: The key of an HMAC-SHA256, at least 16 bytes; None is a plain SHA-256, which
                everybody who may write to the stream can make anew.
            filters: Subjects to look for the last link in; none looks at all messages.
            exclusive: Only this writer writes to its subjects: the server then refuses a second
                process at once, and foreign messages on these subjects stop the chain. Needs a
                server of 2.11.
            resume: The writer's head, where it was kept: nothing before it is looked at, and a
                stream that does not have it is refused.

        Raises:
            ConfigError: An argument has no legal value.
            SubjectError: A filter is not a legal subject.

        Cost: to open, a read of the stream from its end back to the writer's last link: all of it
        for a new writer. Then one round trip a message, and about 300 bytes of headers.
        """
        if resume is not None:
            _check_head(resume, check_writer(writer))
        return ChainedPublisher(
            self._api,
            self.name,
            writer=check_writer(writer),
            key=check_key(key),
            filters=_filters(filters),
            exclusive=check_bool(exclusive, "exclusive"),
            resume=resume,
        )

    async def verify_chain(
        self,
        *,
        key: bytes | None = None,
        writers: Sequence[str] | None = None,
        since: Mapping[str, ChainHead] | None = None,
        head: Mapping[str, ChainHead] | None = None,
        filters: Sequence[str] = (),
        on_break: Literal["raise", "report"] = "raise",
    ) -> ChainReport:
        """Read the stream and name the first broken link of each writer.

        Found are: a changed payload, subject or header, an added header, a link that is missing,
        moved or copied, and a second first link. **The loss of the newest links shows only with
        `head`**, and so does a whole chain that was made anew by somebody who has the key, or by
        anybody where there is none.

        Args:
            key: The key that the links were made with.
            writers: Whose chains; None is all that there are.
            since: Begin behind these heads, by writer; for streams whose limits have removed the
                first links.
            head: Heads that the chains must have come to, by writer, such as `publisher.head`.
            filters: Subjects that hold the links; none reads all messages.
            on_break: "raise" ends at the first broken link; "report" reads on for other writers.

        Returns:
            The heads of the chains, the breaks and how much was looked at.

        Raises:
            ChainBrokenError: A link is broken, and `on_break` is "raise".
            ConfigError: An argument has no legal value.
            TransportError: The server did not come back.

        Cost: reads all of the stream; about 40 microseconds of CPU a message.
        """
        wanted = None
        if writers is not None:
            wanted = {check_writer(each) for each in check_texts(writers, "writers")}
        raises = check_choice(on_break, "on_break", ("raise", "report")) == "raise"
        begins, ends = _heads(since, "since"), _heads(head, "head")
        if wanted is not None and not ends.keys() <= wanted:
            raise ConfigError(
                "head names writers that are not looked at: "
                f"{', '.join(sorted(ends.keys() - wanted))}",
                hint="name them in writers too, or leave writers out",
            )
        verifier = ChainVerifier(check_key(key), wanted, begins, ends)
        spec = RangeSpec(stream=self.name, filters=_filters(filters), on_loss="report")
        async for message in StreamRange(self._api, spec):
            broken = verifier.add(message)
            if broken is not None and raises:
                raise broken.error(self.name)
        report = verifier.report()
        if raises and report.breaks:
            raise report.breaks[0].error(self.name)
        return report


def _filters(filters: Sequence[str]) -> tuple[str, ...]:
    given = check_texts(filters, "filters", error=SubjectError)
    return tuple(check_filter(check_text(each, "filter")) for each in given)


def _heads(heads: object, name: str) -> dict[str, ChainHead]:
    if heads is None:
        return {}
    if not isinstance(heads, Mapping):
        raise ConfigError(
            f"{name} is {described(heads)}", hint=f"give heads by writer: {name}={{'w1': head}}"
        )
    found: dict[str, ChainHead] = {}
    # The cast names what isinstance can not see: anything by anything, which is looked at here.
    for writer, head in cast("Mapping[object, object]", heads).items():
        name_of = check_writer(writer)
        found[name_of] = _check_head(head, name_of)
    return found


def _check_head(head: object, writer: str) -> ChainHead:
    if not isinstance(head, ChainHead) or head.writer != writer:
        raise ConfigError(
            f"the head of writer {writer!r} is {described(head)}",
            hint="give a ChainHead of this writer, such as publisher.head",
        )
    return head
