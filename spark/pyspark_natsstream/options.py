"""The options that reads and writes of `format("nats")` share: the connection and the stream.

Law: Spark's option names are the field names in camelCase, in any case. An unknown option is an
error. Spark shows options in plans, logs and its web UI, so an option never holds a secret: the
secret is in a file, and the option is its path.
"""

from __future__ import annotations

import difflib
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from natsstream.credentials import is_jwt_text, is_seed_text
from natsstream.errors import ConfigError
from natsstream.options import DEFAULT_SERVER, INBOX_PREFIX, ConnectOptions, public_url
from natsstream.units import format_rfc3339, parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from dataclasses import Field

SECONDS_MAX = 3600.0
"""Longest wait that an option may set: an hour."""

_FILES = ("context", "creds", "nkey", "ca", "cert", "key")
_SECRET_FILES = {"creds", "nkey", "key"}


_SECRETS = "creds or nkey, the path of a file, or a context that has the secret"
_START_TIME = "startingOffsets=start_time:RFC3339"
_END_TIME = "endingOffsets=end_time:RFC3339"
_NO_GROUP = "no groups; the checkpoint has the place of a query"
_NO_MINIMUM = "no minimum; a longer interval of the trigger makes larger micro-batches"
ELSEWHERE: Mapping[str, str] = {
    "assign": "stream, and subjects for a part of it",
    "endingoffsetsbytimestamp": _END_TIME,
    "endingtimestamp": _END_TIME,
    "groupidprefix": _NO_GROUP,
    "kafka.bootstrap.servers": "servers",
    "kafka.group.id": _NO_GROUP,
    "kafka.sasl.jaas.config": _SECRETS,
    "maxoffsetspertrigger": "maxMessagesPerTrigger",
    "maxtriggerdelay": _NO_MINIMUM,
    "minoffsetspertrigger": _NO_MINIMUM,
    "password": _SECRETS,
    "provider": "create temporary view v using nats options (servers '...', stream '...'); Spark "
    "gives no options to a Python source that is a table of a catalog",
    "path": "load() takes no path; the stream is named by the option stream",
    "startingoffsetsbytimestamp": _START_TIME,
    "startingtimestamp": _START_TIME,
    "subscribe": "stream",
    "subscribepattern": "streams, such as A,B, or subjects",
    "token": _SECRETS,
    "topic": "stream; for a part of it subjects in a read, and subject in a write",
    "url": "servers",
    "user": _SECRETS,
}
"""Options of Spark's other sources, in lower case, and what stands for them here."""

# Below it, words have little more than their letters in common: `bucket` and `cert` have 0.6.
_LIKENESS_MIN = 0.7


class OptionNote(NamedTuple):
    """The parser and the documentation of an option.

    Attributes:
        parse: Reads the value from an option's text; raises ConfigError.
        doc: Its meaning, with unit and range.
    """

    parse: Callable[[str], object]
    doc: str


def note(parse: Callable[[str], object], doc: str) -> Mapping[str, OptionNote]:
    return {"note": OptionNote(parse, doc)}


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def upper(text: str) -> str:
    return text.strip().upper()


def lower(text: str) -> str:
    return text.strip().lower()


def filters(text: str) -> tuple[str, ...]:
    if text.strip().startswith("["):
        raise ConfigError(f"{text!r} is one filter", hint="write several with commas: a.>,b.*.c")
    if not words(text):
        raise ConfigError("it is empty", hint="leave it out to read all")
    return words(text)


def times(text: str) -> tuple[str, ...]:
    return tuple(format_rfc3339(parse_rfc3339(word)) for word in words(text))


def whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{text!r} is not a whole number", hint="write digits only, such as 10")
    return int(text)


def seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        hint = "write a number without a unit, such as 2.5"
        raise ConfigError(f"{text!r} is not a number of seconds", hint=hint) from error


def flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{text!r} is neither true nor false", hint="write true or false")
    return text.lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsOptions:
    """The options of every use; `option_table()` prints the fields with their notes.

    Raises:
        ConfigError: A value is illegal; the message names the option, the hint what to give.
    """

    elsewhere: ClassVar[Mapping[str, str]] = ELSEWHERE

    servers: tuple[str, ...] = field(
        default=(),
        metadata=note(words, "Server URLs, separated by commas. Required, or `context`."),
    )
    context: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Name of a context of the nats CLI, or the path of its file, the same on driver and "
            "executors; the other options override it. Needed for a password or a token. "
            "Default: none, even if one is selected.",
        ),
    )
    stream: str = field(
        metadata=note(
            str.strip,
            "Name of the stream. Required, or in a read `bucket` or `objectBucket`.",
        )
    )
    creds: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Path of a `.creds` file, the same on driver and executors. Default: none.",
        ),
    )
    nkey: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Path of a file with an nkey seed, the same on driver and executors. Default: none.",
        ),
    )
    ca: str | None = field(
        default=None,
        metadata=note(
            str.strip,
            "Path of the CA certificates for the servers; requires TLS. Default: the system's.",
        ),
    )
    cert: str | None = field(
        default=None,
        metadata=note(str.strip, "Path of the client's certificate, with `key`. Default: none."),
    )
    key: str | None = field(
        default=None,
        metadata=note(str.strip, "Path of the private key of `cert`. Default: none."),
    )
    tls_first: bool = field(
        default=False,
        metadata=note(
            flag, "TLS from the first byte, for servers with `handshake_first`. Default `false`."
        ),
    )
    domain: str | None = field(
        default=None,
        metadata=note(str.strip, "JetStream domain. Default: none."),
    )
    api_prefix: str | None = field(
        default=None,
        metadata=note(
            str.strip, "Subject of JetStream's API, instead of a domain. Default `$JS.API`."
        ),
    )
    inbox_prefix: str | None = field(
        default=None,
        metadata=note(str.strip, "Prefix of reply subjects. Default `_INBOX`."),
    )
    request_timeout: float = field(
        default=5.0,
        metadata=note(
            seconds, "Seconds that a request waits for its answer, above 0 to 3600. Default 5."
        ),
    )
    reconnect_timeout: float = field(
        default=30.0,
        metadata=note(
            seconds,
            "Seconds to wait for servers that are away, above 0 to 3600. Default 30.",
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
        for name, value in _values(self):
            if isinstance(value, bool):
                continue
            if isinstance(value, int) and value < 1:
                raise ConfigError(f"{name} is {value}", hint="give 1 or more, or leave it out")
            if isinstance(value, float) and not 0 < value <= SECONDS_MAX:
                hint = f"give seconds above 0, at most {SECONDS_MAX:g}"
                raise ConfigError(f"{name} is {value:g}", hint=hint)
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
        told = ", ".join(f"{name}={text!r}" for name, text in shown.items())
        return f"{type(self).__name__}({told})"

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Read Spark's options: text by name, in any case.

        Raises:
            ConfigError: An option is unknown, missing, given twice, or illegal.
        """
        known = {spark_name(each.name).lower(): each for each in _given_fields(cls)}
        values: dict[str, object] = {}
        for given, text in options.items():
            found = known.get(given.lower())
            if found is None:
                raise _unknown(given, map(spark_name, option_notes(cls)), cls.elsewhere)
            name = spark_name(found.name)
            if found.name in values:
                raise ConfigError(f"{name} is given twice", hint="the case of names is ignored")
            try:
                values[found.name] = _note_of(found).parse(text)
            except ConfigError as error:
                raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
        for each in known.values():
            if each.default is MISSING and each.name not in values:
                name = spark_name(each.name)
                hint = f'add .option("{name}", ...)'
                raise ConfigError(f'format("nats") needs the option {name}', hint=hint)
        return cls(**values)  # pyright: ignore[reportArgumentType] - Each parser fits its field.

    def to_text(self) -> dict[str, str]:
        """Return the options that differ from their default, as Spark options."""
        defaults = {spark_name(each.name): each.default for each in _given_fields(type(self))}
        return {name: _show(value) for name, value in _values(self) if value != defaults[name]}


def spark_name(name: str) -> str:
    """Return the option name of a field: `max_messages_per_trigger` is `maxMessagesPerTrigger`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a wrong one was probably meant to be; None if none is near."""
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=_LIKENESS_MIN)), None)


def option_notes(kind: type[NatsOptions]) -> dict[str, OptionNote]:
    """Return the note of each option of a class, by field name."""
    return {each.name: _note_of(each) for each in _given_fields(kind)}


def option_table(notes: Mapping[str, OptionNote]) -> str:
    """Return options as a Markdown table."""
    rows = [f"| `{spark_name(name)}` | {each.doc} |" for name, each in notes.items()]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _note_of(option: Field[object]) -> OptionNote:
    found: object = option.metadata["note"]
    if not isinstance(found, OptionNote):
        raise TypeError(f"field {option.name} has no note")
    return found


def _given_fields(kind: type[NatsOptions]) -> list[Field[object]]:
    """Return the fields that are options; the others follow from them."""
    return [each for each in fields(kind) if each.init]


def _values(options: NatsOptions) -> list[tuple[str, object]]:
    names = [each.name for each in _given_fields(type(options))]
    return [(spark_name(name), getattr(options, name)) for name in names]


def _show(value: object) -> str:
    if type(value) is tuple:  # Not a position, which is a tuple with a text of its own.
        # type() does not narrow the items; here they are strings.
        return ",".join(cast("tuple[str, ...]", value))
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def _unknown(given: str, names: Iterable[str], elsewhere: Mapping[str, str]) -> ConfigError:
    by_lower = {name.lower(): name for name in names}
    near = nearest(given.lower(), by_lower)
    ask = f"did you mean {by_lower[near]}? " if near else ""
    if given.lower() in elsewhere:
        ask = f"in natsstream: {elsewhere[given.lower()]}. "
    return ConfigError(
        f'unknown option {given!r} for format("nats")',
        hint=f"{ask}Options: {', '.join(by_lower.values())}",
    )
