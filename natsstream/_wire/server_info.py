"""The server's INFO: what may stand in it, and what becomes of the rest; pure rules.

Law: an INFO that was read has fields of the types that NATS has, or is refused. Its lists have a
limit: each address that a server tells costs time at each reconnect.
"""

from __future__ import annotations

import json
from typing import cast

from natsstream.arguments import described
from natsstream.errors import ProtocolError

URLS_MAX = 512
"""Addresses of servers that are taken from one INFO, in its order.

A server tells those of its own cluster, and nats-py compares each new one with each known one.
"""
NO_LIMIT_BYTES = 64 << 20
"""Stands for `max_payload: -1`, a server without a limit: its default `max_pending`."""
# nats-server keeps it in 32 bits.
_PAYLOAD_BYTES_MAX = (1 << 31) - 1
# An INFO is flat but for its list of addresses.
_DEPTH_MAX = 16
_TEXTS = ("server_id", "server_name", "version", "nonce", "domain", "cluster")


def read_info(text: bytes) -> dict[str, object]:
    """Return what stands behind the word INFO.

    Raises:
        ProtocolError: It is not what a server of NATS says.
    """
    try:
        info: object = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"INFO cannot be read: {text[:80]!r}", detail=repr(error)) from None
    return settle_info(info)


def settle_info(info: object) -> dict[str, object]:
    """Return the same object once it is known to be an INFO, changed in place where it must be.

    Raises:
        ProtocolError: It is none, or a field is of another type than a server of NATS gives it.
    """
    if not isinstance(info, dict) or not _is_flat(cast("object", info)):
        raise ProtocolError("INFO is no flat JSON object")
    fields = cast("dict[str, object]", info)
    for name in _TEXTS:
        if not isinstance(fields.get(name, ""), str):
            raise _wrong(name, fields[name])
    if "max_payload" in fields:
        fields["max_payload"] = _max_payload(fields["max_payload"])
    urls = fields.get("connect_urls")
    if isinstance(urls, list):
        # Once each, so that none is compared twice.
        told = (each for each in cast("list[object]", urls) if isinstance(each, str))
        fields["connect_urls"] = list(dict.fromkeys(told))[:URLS_MAX]
    elif urls is not None:
        raise _wrong("connect_urls", urls)
    return fields


def _max_payload(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        if value == -1:
            return NO_LIMIT_BYTES
        if 0 < value <= _PAYLOAD_BYTES_MAX:
            return value
    raise _wrong("max_payload", value)


def _wrong(name: str, value: object) -> ProtocolError:
    return ProtocolError(f"INFO has {name} {described(value)}")


def _is_flat(info: object) -> bool:
    """Return True if nothing stands deeper than a reader that calls itself can follow."""
    level: list[object] = [info]
    for _ in range(_DEPTH_MAX):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return True
    return False


def _inner(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []
