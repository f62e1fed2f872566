"""Metadata of streams and consumers: the keys of the server, and those of the user.

Law: the server's own keys are neither compared nor changed.
Source: ADR-44.
"""

from __future__ import annotations

from collections.abc import Mapping

RESERVED_METADATA = "_nats."
"""The prefix of the keys that servers write by themselves."""

_LEVEL_METADATA = ("_nats.ver", "_nats.level", "_nats.req.level")


def user_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return metadata without the server's keys; empty for None."""
    given = (metadata or {}).items()
    return {key: value for key, value in given if not key.startswith(RESERVED_METADATA)}


def server_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """Return the server's keys of metadata; empty for None."""
    given = (metadata or {}).items()
    return {key: value for key, value in given if key.startswith(RESERVED_METADATA)}


def without_levels(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata without the levels of the server that it comes from."""
    return {key: value for key, value in metadata.items() if key not in _LEVEL_METADATA}
