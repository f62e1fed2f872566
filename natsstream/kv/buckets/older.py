"""Buckets that older clients have made; a pure rule.

What lives here: which differences are only theirs. What must not: how configurations are compared
(`streams/views/comparing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping


def is_only_older(different: Mapping[str, object]) -> bool:
    """Tell whether a bucket differs from a new one only as those of older clients do.

    Source: nats.go jetstream/kv.go CreateKeyValue, which then updates them.
    """
    return set(different) <= {"discard", "allow_direct"}
