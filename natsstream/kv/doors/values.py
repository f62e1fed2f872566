"""Values as objects, and a local mirror of a bucket."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from natsstream.arguments import check_callable, described
from natsstream.errors import ConfigError
from natsstream.kv.cache.cached import CachedKeyValue
from natsstream.kv.cache.sync import CACHE_BYTES_MAX, CacheOptions
from natsstream.kv.plain import PlainBucket
from natsstream.kv.typed.formats import T, ValueFormat
from natsstream.kv.typed.typed import TypedKeyValue


class Values(PlainBucket):
    """Views of a bucket's values."""

    def typed(
        self,
        encode: ValueFormat[T] | Callable[[T], bytes],
        decode: Callable[[bytes], T] | None = None,
    ) -> TypedKeyValue[T]:
        """Return this bucket with objects for values.

        Args:
            encode: A ready format: `ns.JSON`, `ns.MSGPACK`, `ns.TEXT`, `ns.RAW`; or a function
                that makes bytes of an object.
            decode: The function that makes the object of the bytes.

        Raises:
            ConfigError: One of the two functions is missing, is async, or can not be called.

        Cost: none; nothing is sent.
        """
        if isinstance(encode, ValueFormat):
            if decode is not None:
                raise ConfigError(
                    f"typed() has the format {encode.name} and a decode function",
                    hint="give a format, or two functions",
                )
            return TypedKeyValue(self, cast("ValueFormat[T]", encode))
        if decode is None:
            raise ConfigError(
                f"typed() has {described(encode)} and nothing to read values with",
                hint="give a format such as ns.JSON, or two functions: encode and decode",
            )
        check_callable(encode, "encode", takes="an object and returns bytes")
        name = "/".join(getattr(each, "__qualname__", repr(each)) for each in (encode, decode))
        return TypedKeyValue(self, ValueFormat(name, encode, decode))

    def cached(
        self,
        *filters: str,
        max_bytes: int = CACHE_BYTES_MAX,
        timeout: float = 30.0,
    ) -> CachedKeyValue:
        """Describe a local mirror of this bucket, to be used with `async with`.

        Reads are answered from memory, writes go to the server. Entering the block waits until the
        mirror has all that the bucket held.

        Args:
            filters: Keys or filters of keys that are mirrored; none is all.
            max_bytes: The most that keys and values may take together; beyond it the mirror ends
                with `CacheFullError` rather than to miss keys.
            timeout: Seconds that entering may take.

        Raises:
            KeyNameError: A filter is no filter of keys.
            ConfigError: An option has no legal value.

        Cost: a watch: one consumer on the server, and the memory of what is mirrored.
        """
        return CachedKeyValue(self, filters, CacheOptions(max_bytes=max_bytes, timeout_s=timeout))
