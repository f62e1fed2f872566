"""Locks in tests: leases that outlive a machine that stands still, and are renewed soon.

A machine that runs other tests may stand still for some seconds. A lock whose ttl is not much
longer is lost then, and rightly so: a test that is about something else takes a long one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsstream.kv.locks import leases, lock_key

if TYPE_CHECKING:
    import pytest

LONG_TTL_S = 60
_LONG_TRIES = 100


def renew_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a lock with `LONG_TTL_S` be renewed, and so learn of its loss, each half second."""
    monkeypatch.setattr(leases, "_TRIES_IN_LEASE", _LONG_TRIES)


def give_back_patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a lock wait for the server's answer when it is given back; it gives up after 2 s else."""
    monkeypatch.setattr(lock_key, "_CLEAN_UP_S", 30.0)
