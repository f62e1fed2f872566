"""The options of a read of several streams with `format("nats")`.

Law: several streams are read as each is alone. All options hold for each of them, but the limits of
a micro-batch, which hold for all together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import cast

from natsstream.errors import ConfigError
from pyspark_natsstream.options import note, words
from pyspark_natsstream.read_options import (
    EARLIEST,
    LATEST,
    Position,
    ReadOptions,
    parse_position,
)


class StreamPositions(dict[str, Position]):
    """A position for each stream."""

    def __str__(self) -> str:
        return json.dumps({name: str(position) for name, position in self.items()})


def parse_positions(text: str) -> Position | StreamPositions:
    """Read one position for all streams, or a JSON object with one for each.

    Raises:
        ConfigError: The text is neither.
    """
    if not text.lstrip().startswith("{"):
        return parse_position(text)
    try:
        found = cast("dict[str, object]", json.loads(text))
    except ValueError as error:
        raise ConfigError(f"{text!r} is not JSON", detail=str(error)) from error
    return StreamPositions({name: parse_position(str(each)) for name, each in found.items()})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamsOptions(ReadOptions):
    """The options of a read of several streams.

    Attributes:
        each: The options of each stream, in the order of their names.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    streams: tuple[str, ...] = field(
        metadata=note(
            words,
            "Names of several streams, separated by commas, instead of `stream`. Each has its own "
            "place in the checkpoint; limits per trigger hold for all together.",
        )
    )
    starting_offsets: Position | StreamPositions = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=EARLIEST,
        metadata=note(
            parse_positions,
            "As for one stream, for all of them or as JSON for each: "
            '`{"ORDERS":"first_seq:7","EVENTS":"earliest"}`. Default `earliest`.',
        ),
    )
    ending_offsets: Position | StreamPositions = field(  # pyright: ignore[reportIncompatibleVariableOverride]
        default=LATEST,
        metadata=note(
            parse_positions, "As for one stream, for all or as JSON for each. Default `latest`."
        ),
    )
    stream: str = field(init=False, default="")
    each: tuple[ReadOptions, ...] = field(init=False, default=(), metadata={})

    def __post_init__(self) -> None:
        names = sorted(set(self.streams))
        if not names or len(names) < len(self.streams):
            told = "names a stream twice" if names else "is empty"
            raise ConfigError(f"streams {told}", hint='name them: .option("streams", "A,B")')
        object.__setattr__(self, "stream", names[0])
        object.__setattr__(self, "each", tuple(map(self._of, names)))

    def _of(self, stream: str) -> ReadOptions:
        """Return the options of one stream, which check all values."""
        own = {each.name: getattr(self, each.name) for each in fields(ReadOptions) if each.init}
        own["stream"] = stream
        if self.max_bytes_per_trigger is not None:
            own["max_bytes_per_trigger"] = max(self.max_bytes_per_trigger // len(self.streams), 1)
        for name in ("starting_offsets", "ending_offsets"):
            own[name] = self._position(name, own[name], stream)
        return ReadOptions(**own)

    def _position(self, name: str, given: Position | StreamPositions, stream: str) -> Position:
        if isinstance(given, Position):
            return given
        if given.keys() != set(self.streams):
            option = "startingOffsets" if name == "starting_offsets" else "endingOffsets"
            raise ConfigError(
                f"{option} is of {', '.join(sorted(given)) or 'no stream'}, but streams is "
                f"{', '.join(sorted(self.streams))}",
                hint="give a position for each of them",
            )
        return given[stream]

    def check_batch(self) -> None:
        """Refuse options that only a streaming read has; see `ReadOptions`."""
        for each in self.each:
            each.check_batch()

    def check_streaming(self) -> None:
        """Refuse options that only a batch read has; see `ReadOptions`."""
        for each in self.each:
            each.check_streaming()


def shares(rows: int, backlogs: Mapping[str, int]) -> dict[str, int]:
    """Divide the rows of a micro-batch equally; what a stream does not need is for the others.

    Args:
        rows: Rows of the micro-batch at most.
        backlogs: Messages of each stream that wait.
    """
    found: dict[str, int] = {}
    left = rows
    # The smallest first: what it leaves is for the others.
    for place, (name, backlog) in enumerate(sorted(backlogs.items(), key=lambda each: each[1])):
        found[name] = min(backlog, -(-left // (len(backlogs) - place)))
        left -= found[name]
    return found
