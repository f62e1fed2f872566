"""The same bucket with keys and values in another form."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Self

from natsstream.errors import ConfigError
from natsstream.kv.codecs import (
    KeyCodec,
    ValueCodec,
    checked_key_codec,
    checked_value_codec,
)
from natsstream.kv.doors.part import Part


class Codecs(Part):
    """Gives a bucket other keys and values."""

    def with_codec(self, *, keys: KeyCodec | None = None, values: ValueCodec | None = None) -> Self:
        """Return this bucket with keys and values in another form; it stays as it is itself.

        All calls of the result take and give the application's keys and values. Who writes with a
        codec is read by those who have it too: nothing in the bucket says so.

        Args:
            keys: Makes keys into legal ones, such as `ns.Base64Keys()` or `ns.PathKeys()`; None
                leaves them as they are in this bucket.
            values: Makes values into what is stored; None leaves them as they are.

        Raises:
            ConfigError: It is no codec, none is given, or the bucket has one already.

        Cost: none.
        Source: ADR-54; orbit.go kvcodec.
        """
        place = self._place
        if keys is None and values is None:
            raise ConfigError("with_codec of nothing", hint="with_codec(keys=ns.Base64Keys())")
        for name, given, held in (
            ("keys", keys, place.key_codec),
            ("values", values, place.value_codec),
        ):
            if given is not None and held is not None:
                raise ConfigError(
                    f"bucket {self.name} has a codec for {name}: {held!r}",
                    hint=f"ns.Chained{name.capitalize()}(one, two) is one behind the other",
                )
        other = copy.copy(self)
        other._place = replace(  # noqa: SLF001 - The copy is of this class and nobody has it yet.
            place,
            key_codec=place.key_codec if keys is None else checked_key_codec(keys),
            value_codec=place.value_codec if values is None else checked_value_codec(values),
        )
        return other
