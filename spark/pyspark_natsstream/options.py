"""The options of `format("nats")`: one dataclass for Spark, Python and the command line.

Law: Spark's option names are the field names in camelCase, in any case. An unknown option is an
error. Spark shows options in plans, logs and its web UI, so an option never holds a secret: the
secret is in a file, and the option is its path.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, cast

from natsstream.api.names import check_filters
from natsstream.credentials import is_jwt_text, is_seed_text
from natsstream.errors import ConfigError
from natsstream.options import DEFAULT_SERVER, INBOX_PREFIX, ConnectOptions, public_url
from natsstream.units import format_rfc3339, parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from dataclasses import Field

Anchor: TypeAlias = Literal[
    "earliest", "latest", "first_seq", "last_seq", "start_time", "end_time", "newest"
]

SECONDS_MAX = 3600.0
"""Longest wait that an option may set: an hour."""

_FILES = ("context", "creds", "nkey", "ca", "cert", "key")
_SECRET_FILES = {"creds", "nkey", "key"}
_SEQUENCE_MAX = 2**63 - 1  # Spark's bigint; the server's own limit is twice that.


class Position(NamedTuple):
    """A position in a stream, as the user writes it.

    Attributes:
        anchor: The word of `Stream.read`, or one of the stream's ends.
        value: The sequence, Unix nanoseconds of a time, or a count of messages (`newest`).
    """

    anchor: Anchor
    value: int = 0

    def __str__(self) -> str:
        if self.anchor in ("earliest", "latest"):
            return self.anchor
        shown = format_rfc3339(self.value) if self.anchor in _TIMES else str(self.value)
        return f"{self.anchor}:{shown}"


EARLIEST = Position("earliest")
LATEST = Position("latest")
_STARTS: tuple[Anchor, ...] = ("earliest", "latest", "first_seq", "start_time", "newest")
_ENDS: tuple[Anchor, ...] = ("latest", "last_seq", "end_time")
_TIMES: tuple[Anchor, ...] = ("start_time", "end_time")
_FORMS = {
    "first_seq": "first_seq:N",
    "last_seq": "last_seq:N",
    "start_time": "start_time:RFC3339",
    "end_time": "end_time:RFC3339",
    "newest": "newest:N",
}


class OptionNote(NamedTuple):
    """The parser and the documentation of an option.

    Attributes:
        parse: Reads the value from an option's text; raises ConfigError.
        doc: Its meaning, with unit and range.
    """

    parse: Callable[[str], object]
    doc: str


def _note(parse: Callable[[str], object], doc: str) -> Mapping[str, OptionNote]:
    return {"note": OptionNote(parse, doc)}


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{text!r} is not a whole number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a number of seconds") from error


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def parse_position(text: str) -> Position:
    """Read `earliest`, `latest`, or a word of `Stream.read` with its value, such as `newest:10`.

    Raises:
        ConfigError: The text is none of these.
    """
    word, colon, rest = text.strip().partition(":")
    known = (*_STARTS, *_ENDS)
    anchor: Anchor | None = next((each for each in known if each == word.lower()), None)
    if anchor is None or bool(colon) != (anchor in _FORMS):
        hint = f"to start, write {_forms(_STARTS)}; to end, {_forms(_ENDS)}"
        raise ConfigError(f"{text!r} is not a position", hint=hint)
    if not colon:
        return Position(anchor)
    return Position(anchor, parse_rfc3339(rest) if anchor in _TIMES else _whole(rest))


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsOptions:
    """The options of a read; `option_table()` prints the fields with their notes.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    servers: tuple[str, ...] = field(
        default=(),
        metadata=_note(_words, "Server URLs, separated by commas. Required, or `context`."),
    )
    context: str | None = field(
        default=None,
        metadata=_note(
            str.strip,
            "Name of a context of the nats CLI, or the path of its file, the same on driver and "
            "executors; the other options override it. Needed for a password or a token. "
            "Default: none, even if one is selected.",
        ),
    )
    stream: str = field(metadata=_note(str.strip, "Name of the stream. Required."))
    subjects: tuple[str, ...] = field(
        default=(),
        metadata=_note(
            _words,
            "Subject filters such as `a.>,b.*.c`; the server sends only matching messages. "
            "Default: every subject.",
        ),
    )
    starting_offsets: Position = field(
        default=EARLIEST,
        metadata=_note(
            parse_position,
            "First message of a batch read, or of a query without a checkpoint: `earliest`, "
            "`latest` (streaming only), `first_seq:N` (inclusive), `start_time:RFC3339` (messages "
            "at or after it), `newest:N` (the newest N messages of `subjects`). "
            "Default `earliest`.",
        ),
    )
    ending_offsets: Position = field(
        default=LATEST,
        metadata=_note(
            parse_position,
            "Batch only. Last message: `latest` when Spark plans the read, `last_seq:N` "
            "(inclusive), `end_time:RFC3339` (messages before it). Default `latest`.",
        ),
    )
    max_messages_per_trigger: int | None = field(
        default=None,
        metadata=_note(
            _whole,
            "Streaming only. Maximum sequences in one micro-batch, 1 or more. Default: no limit.",
        ),
    )
    max_bytes_per_trigger: int | None = field(
        default=None,
        metadata=_note(
            _whole,
            "Streaming only. Maximum bytes in one micro-batch, 1 or more, estimated from the "
            "mean size of the stored messages. Default: no limit.",
        ),
    )
    min_partitions: int = field(
        default=1,
        metadata=_note(
            _whole,
            "Minimum number of ranges in a read, 1 or more; each range has at least one sequence. "
            "Default 1.",
        ),
    )
    max_records_per_partition: int | None = field(
        default=None,
        metadata=_note(_whole, "Maximum sequences in one range, 1 or more. Default: no limit."),
    )
    fail_on_data_loss: bool = field(
        default=True,
        metadata=_note(
            _flag,
            "Fail when messages were lost before they were read, or the stream was created anew; "
            "`false` logs a warning and continues. Default `true`.",
        ),
    )
    include_headers: bool = field(
        default=False,
        metadata=_note(_flag, "Add the column `headers` to the default schema. Default `false`."),
    )
    control: bool = field(
        default=False,
        metadata=_note(
            _flag,
            "Also read the control records of producers, which are left out otherwise. "
            "Default `false`.",
        ),
    )
    creds: str | None = field(
        default=None,
        metadata=_note(
            str.strip,
            "Path of a `.creds` file, the same on driver and executors. Default: none.",
        ),
    )
    nkey: str | None = field(
        default=None,
        metadata=_note(
            str.strip,
            "Path of a file with an nkey seed, the same on driver and executors. Default: none.",
        ),
    )
    ca: str | None = field(
        default=None,
        metadata=_note(
            str.strip,
            "Path of the CA certificates for the servers; requires TLS. Default: the system's.",
        ),
    )
    cert: str | None = field(
        default=None,
        metadata=_note(str.strip, "Path of the client's certificate, with `key`. Default: none."),
    )
    key: str | None = field(
        default=None,
        metadata=_note(str.strip, "Path of the private key of `cert`. Default: none."),
    )
    tls_first: bool = field(
        default=False,
        metadata=_note(
            _flag, "TLS from the first byte, for servers with `handshake_first`. Default `false`."
        ),
    )
    domain: str | None = field(
        default=None,
        metadata=_note(str.strip, "JetStream domain. Default: none."),
    )
    api_prefix: str | None = field(
        default=None,
        metadata=_note(
            str.strip, "Subject of JetStream's API, instead of a domain. Default `$JS.API`."
        ),
    )
    inbox_prefix: str | None = field(
        default=None,
        metadata=_note(str.strip, "Prefix of reply subjects. Default `_INBOX`."),
    )
    request_timeout: float = field(
        default=5.0,
        metadata=_note(
            _seconds, "Seconds that a request waits for its answer, above 0 to 3600. Default 5."
        ),
    )
    reconnect_timeout: float = field(
        default=30.0,
        metadata=_note(
            _seconds,
            "Seconds that a reader tries to reconnect, above 0 to 3600. Default 30.",
        ),
    )

    def __post_init__(self) -> None:
        if not self.servers and self.context is None:
            raise ConfigError(
                'format("nats") needs the option servers, or context',
                hint='add .option("servers", "nats://127.0.0.1:4222")',
            )
        if not self.stream:
            raise ConfigError("stream is empty", hint='name one: .option("stream", "ORDERS")')
        _refuse_secrets(self)
        # Here and not by the server, which only executors ask about them.
        object.__setattr__(self, "subjects", tuple(check_filters(self.subjects)))
        for name, value in _values(self):
            if isinstance(value, bool):
                continue
            if isinstance(value, int) and value < 1:
                raise ConfigError(f"{name} is {value}", hint="give 1 or more, or leave it out")
            if isinstance(value, float) and not 0 < value <= SECONDS_MAX:
                hint = f"give seconds above 0, at most {SECONDS_MAX:g}"
                raise ConfigError(f"{name} is {value:g}", hint=hint)
            if isinstance(value, Position):
                _check_position(name, value)
        # Checks all but the files: executors have their own and check them.
        _ = ConnectOptions(
            servers=self.servers or (DEFAULT_SERVER,),
            domain=self.domain,
            api_prefix=self.api_prefix,
            inbox_prefix=INBOX_PREFIX if self.inbox_prefix is None else self.inbox_prefix,
        )

    def __repr__(self) -> str:
        shown = self.to_text()
        shown |= dict.fromkeys(_SECRET_FILES & shown.keys(), "(set)")
        if self.servers:
            shown["servers"] = ",".join(map(public_url, self.servers))
        return f"NatsOptions({', '.join(f'{name}={text!r}' for name, text in shown.items())})"

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Read Spark's options: text by name, in any case.

        Raises:
            ConfigError: An option is unknown, missing, given twice, or illegal.
        """
        known = {spark_name(each.name).lower(): each for each in fields(cls)}
        values: dict[str, object] = {}
        for given, text in options.items():
            found = known.get(given.lower())
            if found is None:
                raise _unknown(given, (spark_name(each.name) for each in fields(cls)))
            name = spark_name(found.name)
            if found.name in values:
                raise ConfigError(f"{name} is given twice", hint="the case of names is ignored")
            try:
                values[found.name] = _note_of(found).parse(text)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
        if "stream" not in values:
            raise ConfigError(
                'format("nats") needs the option stream', hint='add .option("stream", ...)'
            )
        return cls(**values)  # pyright: ignore[reportArgumentType] - Each parser fits its field.

    def to_text(self) -> dict[str, str]:
        """Return the options that differ from their default, as Spark options."""
        defaults = {spark_name(each.name): each.default for each in fields(self)}
        return {name: _show(value) for name, value in _values(self) if value != defaults[name]}

    def check_batch(self) -> None:
        """Refuse options that only a streaming query has.

        Raises:
            ConfigError: An option is for streaming queries, or the read would be empty.
        """
        if self.starting_offsets == LATEST:
            hint = "use newest:N, first_seq:N or start_time:..., or spark.readStream"
            raise ConfigError("startingOffsets=latest reads nothing in a batch", hint=hint)
        for name in ("max_messages_per_trigger", "max_bytes_per_trigger"):
            if getattr(self, name) is not None:
                message = f"{spark_name(name)} is for streaming queries only"
                raise ConfigError(message, hint="bound a batch with endingOffsets")

    def check_streaming(self) -> None:
        """Refuse options that only a batch read has.

        Raises:
            ConfigError: An option is for batch reads.
        """
        if self.ending_offsets != LATEST:
            hint = "a query that ends: trigger(availableNow=True), or spark.read with endingOffsets"
            raise ConfigError("endingOffsets is for batch reads only", hint=hint)


def spark_name(name: str) -> str:
    """Return the option name of a field: `max_messages_per_trigger` is `maxMessagesPerTrigger`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def option_notes() -> dict[str, OptionNote]:
    """Return the note of each option, by field name."""
    return {each.name: _note_of(each) for each in fields(NatsOptions)}


def option_table() -> str:
    """Return the options as a Markdown table."""
    rows = [f"| `{spark_name(name)}` | {note.doc} |" for name, note in option_notes().items()]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _note_of(option: Field[object]) -> OptionNote:
    note: object = option.metadata["note"]
    if not isinstance(note, OptionNote):
        raise TypeError(f"field {option.name} has no note")
    return note


def _values(options: NatsOptions) -> list[tuple[str, object]]:
    return [(spark_name(each.name), getattr(options, each.name)) for each in fields(options)]


def _show(value: object) -> str:
    if isinstance(value, tuple) and not isinstance(value, Position):
        # isinstance does not narrow the items; here they are strings.
        return ",".join(cast("tuple[str, ...]", value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _forms(anchors: Iterable[Anchor]) -> str:
    return ", ".join(_FORMS.get(anchor, anchor) for anchor in anchors)


def _check_position(name: str, position: Position) -> None:
    legal = _STARTS if name == spark_name("starting_offsets") else _ENDS
    if position.anchor not in legal:
        raise ConfigError(f"{name} cannot be {position}", hint=f"write {_forms(legal)}")
    if (
        position.anchor in ("first_seq", "last_seq", "newest")
        and not 0 < position.value <= _SEQUENCE_MAX
    ):
        raise ConfigError(f"{name} is {position}", hint="sequences and counts begin at 1")


def _refuse_secrets(options: NatsOptions) -> None:
    """Refuse credentials in the text of options, without repeating them."""
    for url in options.servers:
        # Not urlsplit: a URL that it cannot parse may still hold a password.
        if "@" in url:
            raise ConfigError(
                "servers has a URL with a user, password or token in it",
                hint="options are shown in Spark's plans and logs: put them into a .creds file "
                "and give its path as creds, or into a context of the nats CLI",
            )
    for name in _FILES:
        value: str | None = getattr(options, name)
        if value is not None and ("\n" in value or is_seed_text(value) or is_jwt_text(value)):
            raise ConfigError(
                f"{name} holds the credentials themselves",
                hint=f"give the path of the .creds file, seed file or PEM file as {name}",
            )


def _unknown(given: str, names: Iterable[str]) -> ConfigError:
    by_lower = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower(), by_lower, n=1)
    ask = f"did you mean {by_lower[close[0]]}? " if close else ""
    if given.lower() == "path":
        ask = "load() takes no path; the stream is named by the option stream. "
    return ConfigError(
        f'unknown option {given!r} for format("nats")',
        hint=f"{ask}Options: {', '.join(by_lower.values())}",
    )
