"""Every JetStream API subject that natsstream uses, in one place.

Law: nothing else in the package spells a subject that starts with `$JS`.
Source: ADR-1 (JSON API) and nats.go jetstream/api.go.
"""

from __future__ import annotations

PREFIX = "$JS.API"

# Account: limits, usage, API level.
INFO = f"{PREFIX}.INFO"

# Streams. LIST answers 256 infos a page, NAMES 1024 names.
STREAM_NAMES = f"{PREFIX}.STREAM.NAMES"
STREAM_LIST = f"{PREFIX}.STREAM.LIST"


def stream_create(stream: str) -> str:
    """Create a stream; body: its config."""
    return f"{PREFIX}.STREAM.CREATE.{stream}"


def stream_update(stream: str) -> str:
    """Replace a stream's config; body: the whole config."""
    return f"{PREFIX}.STREAM.UPDATE.{stream}"


def stream_delete(stream: str) -> str:
    """Delete a stream and all of its messages."""
    return f"{PREFIX}.STREAM.DELETE.{stream}"


def stream_info(stream: str) -> str:
    """Read a stream's config and state; body: optional details and paging."""
    return f"{PREFIX}.STREAM.INFO.{stream}"


def message_get(stream: str) -> str:
    """Read one message from the stream's leader; body: which one."""
    return f"{PREFIX}.STREAM.MSG.GET.{stream}"


def consumer_create(stream: str, consumer: str, subject_filter: str = "") -> str:
    """Create a named consumer; a single filter stands in the subject, so permissions can see it."""
    token = f".{subject_filter}" if subject_filter else ""
    return f"{PREFIX}.CONSUMER.CREATE.{stream}.{consumer}{token}"


def consumer_delete(stream: str, consumer: str) -> str:
    """Delete a consumer."""
    return f"{PREFIX}.CONSUMER.DELETE.{stream}.{consumer}"


def consumer_next(stream: str, consumer: str) -> str:
    """Ask a pull consumer for messages; they arrive on the reply subject."""
    return f"{PREFIX}.CONSUMER.MSG.NEXT.{stream}.{consumer}"
