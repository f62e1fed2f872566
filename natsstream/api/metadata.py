"""Metadata of streams and consumers: the keys of the server, of this library, and of the user.

Law: the server's own keys are neither compared nor changed. So are those that this library writes,
unless the caller names them: readers would take a producer's records for messages without them.
Source: ADR-44.
"""

from __future__ import annotations

from collections.abc import Mapping

RESERVED_METADATA = "_nats."
"""The prefix of the keys that servers write by themselves."""

_KEPT_METADATA = (RESERVED_METADATA, "natsstream.", "conat.")
"""The prefixes of the keys that an update keeps, also where the caller does not name them."""

_LEVEL_METADATA = ("_nats.ver", "_nats.level", "_nats.req.level")


def user_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata without the server's keys; empty for None."""
    given = (metadata or {}).items()
    return {key: value for key, value in given if not key.startswith(RESERVED_METADATA)}


def kept_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return the keys of metadata that an update keeps; empty for None."""
    given = (metadata or {}).items()
    return {key: value for key, value in given if key.startswith(_KEPT_METADATA)}


def compared_metadata(
    held: Mapping[str, str] | None, wanted: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the user's keys of the server's metadata, and the library's that `wanted` names."""
    kept, named = kept_metadata(held), wanted or {}
    given = user_metadata(held).items()
    return {key: value for key, value in given if key not in kept or key in named}


def without_levels(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata without the levels of the server that it comes from."""
    return {key: value for key, value in metadata.items() if key not in _LEVEL_METADATA}
