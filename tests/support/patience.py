"""Connections whose patience changes: long until a fault is in place, short behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from natsstream import JetStream


def set_patience(
    js: JetStream, *, request_timeout: float | None = None, reconnect_timeout: float | None = None
) -> None:
    """Change how many seconds a connection waits from now on; None leaves a time as it is.

    What has to work before and after a fault is then not hurried by what shall fail soon.
    """
    client = js._client  # pyright: ignore[reportPrivateUsage] - options are for life otherwise.
    options = client.options
    if request_timeout is not None:
        options = replace(options, request_timeout=request_timeout)
    if reconnect_timeout is not None:
        options = replace(options, reconnect_timeout=reconnect_timeout)
    client.options = options
