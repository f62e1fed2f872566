"""Codecs of keys and values (ADR-54).

Law: encoding is lossless: a key that would be decoded as another one is refused. Filters are
encoded token by token, so that wildcards stay wildcards; a codec that cannot do that takes none.

Source: ADR-54; orbit.go kvcodec (base64_codec.go, path_codec.go, chain_codec.go); nats.js kv
Base64KeyCodec.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Literal, Protocol, cast, runtime_checkable

from natsstream.arguments import check_choice
from natsstream.errors import ConfigError, KeyNameError

if TYPE_CHECKING:  # Python 3.11 has no defaults of type variables at run time.
    from typing_extensions import TypeVar

    T = TypeVar("T", default=bytes)
else:
    from typing import TypeVar

    T = TypeVar("T")

_WILDCARDS = ("*", ">")
_ROOT = "_root_"


@runtime_checkable
class KeyCodec(Protocol):
    """Encodes an application's keys into legal ones, and decodes stored keys."""

    def encode(self, key: str) -> str:
        """Return the key to store.

        Raises:
            KeyNameError: This codec has no form for the key.
        """
        ...

    def decode(self, stored: str) -> str:
        """Return the application's key.

        Raises:
            ValueError: The stored key is not of this codec's form.
        """
        ...


@runtime_checkable
class FilterKeyCodec(KeyCodec, Protocol):
    """A key codec that also takes filters with wildcards."""

    def encode_filter(self, filter: str) -> str:  # noqa: A002 - The field's own word.
        """Return the filter of stored keys; `*` and `>` stay wildcards.

        Raises:
            KeyNameError: This codec has no form for the filter.
        """
        ...


@runtime_checkable
class ValueCodec(Protocol[T]):
    """Encodes values and decodes stored bytes.

    `with_codec` takes one from bytes to bytes, which compresses or encrypts. `typed` takes one from
    any type to bytes.
    """

    def encode(self, value: T, /) -> bytes:
        """Return the bytes to store."""
        ...

    def decode(self, stored: bytes, /) -> T:
        """Return the value of stored bytes.

        Raises:
            ValueError: The codec did not write these bytes.
        """
        ...


class Base64Keys:
    """Any text as a key: each token between dots as base64.

    Args:
        alphabet: "url" is without padding, as orbit.go's kvcodec writes. "standard" is with
            padding, as nats.js writes; it cannot encode characters above U+00FF, nor some texts
            whose base64 has a `+`.

    Raises:
        ConfigError: The alphabet is another one.
    """

    def __init__(self, alphabet: Literal["url", "standard"] = "url") -> None:
        self.alphabet: str = check_choice(alphabet, "alphabet", ("url", "standard"))

    def encode(self, key: str) -> str:
        """Return the key with each token as base64."""
        return ".".join(map(self._encode, key.split(".")))

    def encode_filter(self, filter: str) -> str:  # noqa: A002 - The field's own word.
        """Return the filter with each token as base64 that is no wildcard."""
        tokens = filter.split(".")
        return ".".join(each if each in _WILDCARDS else self._encode(each) for each in tokens)

    def decode(self, stored: str) -> str:
        """Return the key of the stored tokens."""
        return ".".join(map(self._decode, stored.split(".")))

    def _encode(self, token: str) -> str:
        if not token:
            raise KeyNameError(
                "the key is empty or has an empty token",
                hint="no dot at its beginning or end, and no two together",
            )
        try:
            if self.alphabet == "url":
                return base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()
            return base64.b64encode(token.encode("latin-1")).decode()
        except UnicodeEncodeError as error:
            raise KeyNameError(
                f"key token {token[:60]!r} cannot be encoded: {error.reason}",
                hint="Base64Keys() takes all text; 'standard' only characters up to U+00FF",
            ) from error

    def _decode(self, token: str) -> str:
        try:
            if self.alphabet == "url":
                text = base64.b64decode(
                    token + "=" * (-len(token) % 4), altchars=b"-_", validate=True
                ).decode()
            else:
                text = base64.b64decode(token, validate=True).decode("latin-1")
            is_same = self._encode(text) == token
        except (binascii.Error, ValueError, KeyNameError):
            is_same, text = False, ""
        if not is_same:
            raise ValueError(f"{token[:60]!r} is no base64 token of a key")
        return text

    def __repr__(self) -> str:
        return f"Base64Keys({self.alphabet!r})"


class PathKeys:
    """Paths as keys: `/config/app` is stored as `_root_.config.app`, `a/b` as `a.b`.

    As orbit.go writes them, except for keys that it would decode as others: dots, a slash at the
    end, and two slashes together are refused.
    """

    def encode(self, key: str) -> str:
        """Return the key with dots for slashes."""
        stored = self.encode_filter(key)
        if self.decode(stored) != key:
            raise KeyNameError(
                f"path {key[:60]!r} would be decoded as {self.decode(stored)[:60]!r}",
                hint="no dots, no slash at the end, and no first part '_root_'",
            )
        return stored

    def encode_filter(self, filter: str) -> str:  # noqa: A002 - The field's own word.
        """Return the filter with dots for slashes; `/config/*` is one level, `/config/>` all."""
        if filter == "/":
            return _ROOT
        if filter.startswith("/"):
            filter = f"{_ROOT}.{filter[1:]}"  # noqa: A001 - As above.
        return filter.removesuffix("/").replace("/", ".")

    def decode(self, stored: str) -> str:
        """Return the path of a stored key."""
        if stored == _ROOT:
            return "/"
        if stored.startswith(f"{_ROOT}."):
            stored = stored[len(_ROOT) :]
        return stored.replace(".", "/")

    def __repr__(self) -> str:
        return "PathKeys()"


class Base64Values:
    """Values as url-safe base64 without padding, as orbit.go's kvcodec writes them."""

    def encode(self, value: bytes) -> bytes:
        """Return the value as base64."""
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    def decode(self, stored: bytes) -> bytes:
        """Return the value of the stored base64."""
        return base64.b64decode(stored + b"=" * (-len(stored) % 4), altchars=b"-_", validate=True)

    def __repr__(self) -> str:
        return "Base64Values()"


class ChainedKeys:
    """Several key codecs, one behind the other: the first encodes first and decodes last.

    Raises:
        ConfigError: None is given, or one of them is no key codec.
    """

    def __init__(self, *codecs: KeyCodec) -> None:
        self.codecs: tuple[KeyCodec, ...] = tuple(map(checked_key_codec, codecs))
        if not codecs:
            raise ConfigError("ChainedKeys of nothing", hint="give at least one key codec")

    def encode(self, key: str) -> str:
        """Return the key behind all codecs."""
        for codec in self.codecs:
            key = codec.encode(key)
        return key

    def encode_filter(self, filter: str) -> str:  # noqa: A002 - The field's own word.
        """Return the filter behind all codecs; each must take wildcards, where it has some."""
        for codec in self.codecs:
            filter = encoded_filter(codec, filter)  # noqa: A001 - As above.
        return filter

    def decode(self, stored: str) -> str:
        """Return the key before all codecs."""
        for codec in reversed(self.codecs):
            stored = codec.decode(stored)
        return stored

    def __repr__(self) -> str:
        return f"ChainedKeys({', '.join(map(repr, self.codecs))})"


class ChainedValues:
    """Several value codecs, one behind the other: the first encodes first and decodes last.

    Raises:
        ConfigError: None is given, or one of them is no value codec.
    """

    def __init__(self, *codecs: ValueCodec) -> None:
        self.codecs: tuple[ValueCodec, ...] = tuple(map(checked_value_codec, codecs))
        if not codecs:
            raise ConfigError("ChainedValues of nothing", hint="give at least one value codec")

    def encode(self, value: bytes) -> bytes:
        """Return the value behind all codecs."""
        for codec in self.codecs:
            value = codec.encode(value)
        return value

    def decode(self, stored: bytes) -> bytes:
        """Return the value before all codecs."""
        for codec in reversed(self.codecs):
            stored = codec.decode(stored)
        return stored

    def __repr__(self) -> str:
        return f"ChainedValues({', '.join(map(repr, self.codecs))})"


def encoded_filter(codec: KeyCodec, filter: str) -> str:  # noqa: A002 - The field's own word.
    """Return a filter in a codec's form.

    Raises:
        KeyNameError: It has a wildcard, and the codec takes none.
    """
    if isinstance(codec, FilterKeyCodec):
        return codec.encode_filter(filter)
    if "*" in filter or ">" in filter:
        raise KeyNameError(
            f"filter {filter[:60]!r}: {codec!r} takes no wildcards",
            hint="ask for all keys and choose among them, or give the codec an encode_filter",
        )
    return codec.encode(filter)


def checked_key_codec(codec: object) -> KeyCodec:
    """Return a key codec.

    Raises:
        ConfigError: It is none.
    """
    if isinstance(codec, Base64Values | ChainedValues):
        raise ConfigError(f"{codec!r} encodes values", hint=f"with_codec(values={codec!r})")
    if isinstance(codec, KeyCodec) and _is_object(codec):
        return codec
    raise _no_codec(codec, "key", "Base64Keys()")


def checked_value_codec(codec: object) -> ValueCodec:
    """Return a value codec.

    Raises:
        ConfigError: It is none.
    """
    if isinstance(codec, Base64Keys | PathKeys | ChainedKeys):
        raise ConfigError(f"{codec!r} encodes keys", hint=f"with_codec(keys={codec!r})")
    if _is_object(codec) and isinstance(codec, ValueCodec):
        return cast("ValueCodec[bytes]", codec)
    raise _no_codec(codec, "value", "Base64Values()")


def _is_object(codec: object) -> bool:
    # Text and bytes have methods of these names, and a class is not yet a codec.
    return not isinstance(codec, str | bytes | bytearray | type)


def _no_codec(codec: object, noun: str, example: str) -> ConfigError:
    way = f"{codec.__name__}()" if isinstance(codec, type) else f"ns.{example}"
    return ConfigError(
        f"{codec!r} is no {noun} codec", hint=f"give an object with encode and decode: {way}"
    )
