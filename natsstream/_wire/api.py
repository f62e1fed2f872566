"""Every JetStream API subject that natsstream uses, in one place.

Law: nothing else in the package spells a subject that starts with `$JS`.
Source: ADR-1 (JSON API) and nats.go jetstream/api.go.
"""

from __future__ import annotations

PREFIX = "$JS.API"


def api_prefix(domain: str | None, prefix: str | None) -> str:
    """Return what stands before each request: `$JS.API`, a domain's, or one given whole.

    Args:
        domain: JetStream's domain, such as `hub`; its API answers under `$JS.hub.API`.
        prefix: The prefix of an import from another account, such as `JS.acc.API`.
    """
    if prefix:
        return prefix.removesuffix(".")
    return f"$JS.{domain}.API" if domain else PREFIX


def under_prefix(subject: str, prefix: str) -> str:
    """Return one of this file's subjects under another prefix; other subjects as they are."""
    if prefix == PREFIX or not subject.startswith(f"{PREFIX}."):
        return subject
    return f"{prefix}{subject[len(PREFIX) :]}"


def is_same_request(sent: str, named: str) -> bool:
    """Tell whether a server that names one subject can mean a request to the other.

    The server of a domain maps `$JS.<domain>.API.INFO` to `$JS.API.INFO` before it asks whether the
    user may publish there, and names what it has asked.
    """
    if sent == named:
        return True
    tokens, rest = sent.split(".", 3), named.removeprefix(f"{PREFIX}.")
    return rest != named and tokens[::2] == ["$JS", "API"] and tokens[3:] == [rest]


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
