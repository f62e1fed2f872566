"""Reads a stream and verifies its chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

from natsstream.api.requests import Api
from natsstream.arguments import check_choice, check_texts, described
from natsstream.errors import ConfigError
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.streams.chain.links import (
    ChainHead,
    check_chain_filters,
    check_head,
    check_key,
    check_writer,
)
from natsstream.streams.chain.verify import ChainReport, ChainVerifier


async def verify_chain(
    api: Api,
    stream: str,
    *,
    key: bytes | None,
    writers: Sequence[str] | None,
    since: Mapping[str, ChainHead] | None,
    head: Mapping[str, ChainHead] | None,
    filters: Sequence[str],
    on_break: Literal["raise", "report"],
) -> ChainReport:
    """Return the report of all chains; see `Stream.verify_chain`."""
    wanted = None
    if writers is not None:
        wanted = {check_writer(each) for each in check_texts(writers, "writers")}
    raises = check_choice(on_break, "on_break", ("raise", "report")) == "raise"
    begins, ends = _check_heads(since, "since"), _check_heads(head, "head")
    if wanted is not None and not ends.keys() <= wanted:
        raise ConfigError(
            f"head names writers that are left out: {', '.join(sorted(ends.keys() - wanted))}",
            hint="name them in writers too, or leave writers out",
        )
    verifier = ChainVerifier(check_key(key), wanted, begins, ends)
    spec = RangeSpec(stream=stream, filters=check_chain_filters(filters), on_loss="report")
    async for message in StreamRange(api, spec):
        broken = verifier.add(message)
        if broken is not None and raises:
            raise broken.error(stream)
    report = verifier.report()
    if raises and report.breaks:
        raise report.breaks[0].error(stream)
    return report


def _check_heads(heads: object, argument: str) -> dict[str, ChainHead]:
    if heads is None:
        return {}
    if not isinstance(heads, Mapping):
        raise ConfigError(
            f"{argument} is {described(heads)}",
            hint=f"give heads by writer: {argument}={{'w1': head}}",
        )
    # The cast names what isinstance cannot see: anything by anything, which is checked here.
    given = cast("Mapping[object, object]", heads)
    return {check_writer(writer): check_head(head, str(writer)) for writer, head in given.items()}
