"""Every JetStream API subject that natsstream uses, in one place.

Law: nothing else in the package spells a subject that starts with `$JS`. A name is one token of it:
each is looked at here by the rule for arguments (`names.py`), as it may be a file's or an answer's.
A wrong one is a StreamNameError or a ConsumerNameError. Filters of what is told have wildcards.
Source: ADR-1 (JSON API) and nats.go jetstream/api.go.
"""

from __future__ import annotations

from natsstream._wire.names import check_consumer_name, check_stream_name

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


def reached_under(subject: str, prefix: str) -> str:
    """Return the subject to publish to a stream behind a domain or an import (ADR-19).

    Args:
        subject: A subject that the stream captures, which is no part of JetStream's API.
        prefix: The prefix of the API there; empty stands for `$JS.API`.
    """
    return subject if prefix in ("", PREFIX) else f"{prefix}.{subject}"


def is_same_request(sent: str, named: str) -> bool:
    """Return True if a server that names one subject can mean a request to the other.

    The server of a domain maps `$JS.<domain>.API.INFO` to `$JS.API.INFO` before it asks whether the
    user may publish there, and names what it has asked.
    """
    if sent == named:
        return True
    tokens, rest = sent.split(".", 3), named.removeprefix(f"{PREFIX}.")
    return rest != named and tokens[::2] == ["$JS", "API"] and tokens[3:] == [rest]


# The prefix of JetStream's events: below it are ADVISORY and METRIC.
EVENTS = "$JS.EVENT"

# Account: limits, usage, API level.
INFO = f"{PREFIX}.INFO"

# Streams. LIST answers 256 infos a page, NAMES 1024 names.
STREAM_NAMES = f"{PREFIX}.STREAM.NAMES"
STREAM_LIST = f"{PREFIX}.STREAM.LIST"


def stream_create(stream: str) -> str:
    """Create a stream; body: its config."""
    return _of_stream("STREAM.CREATE", stream)


def stream_update(stream: str) -> str:
    """Replace a stream's config; body: the whole config."""
    return _of_stream("STREAM.UPDATE", stream)


def stream_delete(stream: str) -> str:
    """Delete a stream and all of its messages."""
    return _of_stream("STREAM.DELETE", stream)


def stream_info(stream: str) -> str:
    """Read a stream's config and state; body: optional details and paging."""
    return _of_stream("STREAM.INFO", stream)


def stream_purge(stream: str) -> str:
    """Remove messages; body: filter, and seq or keep."""
    return _of_stream("STREAM.PURGE", stream)


def stream_step_down(stream: str) -> str:
    """Ask a stream's leader to give up; body: placement, or nothing."""
    return _of_stream("STREAM.LEADER.STEPDOWN", stream)


def stream_remove_peer(stream: str) -> str:
    """Take a replica from a server; body: the server's name."""
    return _of_stream("STREAM.PEER.REMOVE", stream)


def stream_snapshot(stream: str) -> str:
    """Send a stream's content to a subject, in chunks that are answered."""
    return _of_stream("STREAM.SNAPSHOT", stream)


def stream_restore(stream: str) -> str:
    """Begin a restore; body: config and state; answers where the chunks go."""
    return _of_stream("STREAM.RESTORE", stream)


def direct_get(stream: str) -> str:
    """Read messages from any replica (ADR-31); body: which ones."""
    return _of_stream("DIRECT.GET", stream)


def direct_get_last(stream: str, subject: str) -> str:
    """Read the last message of one subject from any replica; no body, so permissions see it."""
    return f"{direct_get(stream)}.{subject}"


def message_delete(stream: str) -> str:
    """Delete one message; body: its sequence, and whether its bytes stay."""
    return _of_stream("STREAM.MSG.DELETE", stream)


def message_get(stream: str) -> str:
    """Read one message from the stream's leader; body: which one."""
    return _of_stream("STREAM.MSG.GET", stream)


def consumer_create(stream: str, consumer: str, subject_filter: str = "") -> str:
    """Create a named consumer; a single filter stands in the subject, so permissions can see it."""
    token = f".{subject_filter}" if subject_filter else ""
    return _of_consumer("CONSUMER.CREATE", stream, consumer) + token


def consumer_delete(stream: str, consumer: str) -> str:
    """Delete a consumer."""
    return _of_consumer("CONSUMER.DELETE", stream, consumer)


def consumer_info(stream: str, consumer: str) -> str:
    """Read a consumer's config and progress."""
    return _of_consumer("CONSUMER.INFO", stream, consumer)


def consumer_names(stream: str) -> str:
    """Read the names of a stream's consumers, 1,024 a page; body: offset."""
    return _of_stream("CONSUMER.NAMES", stream)


def consumer_list(stream: str) -> str:
    """Read the infos of a stream's consumers, 256 a page; body: offset."""
    return _of_stream("CONSUMER.LIST", stream)


def consumer_pause(stream: str, consumer: str) -> str:
    """Pause a consumer; body: pause_until, or nothing to resume."""
    return _of_consumer("CONSUMER.PAUSE", stream, consumer)


def consumer_reset(stream: str, consumer: str) -> str:
    """Let a consumer deliver again; body: seq, or nothing for what is not settled (ADR-60)."""
    return _of_consumer("CONSUMER.RESET", stream, consumer)


def consumer_unpin(stream: str, consumer: str) -> str:
    """Take the pin from the pinned client of a group; body: group."""
    return _of_consumer("CONSUMER.UNPIN", stream, consumer)


def consumer_step_down(stream: str, consumer: str) -> str:
    """Ask a consumer's leader to give up; body: placement, or nothing."""
    return _of_consumer("CONSUMER.LEADER.STEPDOWN", stream, consumer)


def consumer_next(stream: str, consumer: str) -> str:
    """Ask a pull consumer for messages; they arrive on the reply subject."""
    return _of_consumer("CONSUMER.MSG.NEXT", stream, consumer)


SNAPSHOTS = "$JS.SNAPSHOT."
"""Acks of the parts of a backup (ACK), and the parts of a restore (RESTORE), of one stream each."""


def is_snapshot_ack(subject: str, stream: str) -> bool:
    """Return True if a subject is the ack of a part of a stream's backup."""
    return subject.startswith(f"{SNAPSHOTS}ACK.{stream}.")


# Advisories of messages that a consumer gives up; a stream may capture them.


def advisory_max_deliveries(stream: str, consumer: str = "*") -> str:
    """Return the subject of the max-deliveries advisory."""
    return f"{EVENTS}.ADVISORY.CONSUMER.MAX_DELIVERIES.{stream}.{consumer}"


def advisory_terminated(stream: str, consumer: str = "*") -> str:
    """Return the subject of the terminated advisory."""
    return f"{EVENTS}.ADVISORY.CONSUMER.MSG_TERMINATED.{stream}.{consumer}"


def settle_message(stream: str, consumer: str, sequence: int) -> str:
    """Settle a message for a consumer by its sequence, without the delivery's own reply subject.

    The server looks only at the stream, the consumer and the stream's sequence; the other numbers
    are for the client (seen on 2.15, R1 and R3, also for messages past `max_deliver`).
    """
    return f"$JS.ACK.{_names(stream, consumer)}.1.{sequence}.0.0.0"


def is_command(subject: str) -> bool:
    """Return True if a server acts on messages to a subject; its own events are no commands."""
    return subject.startswith(("$JS.", "$SYS.")) and not subject.startswith(f"{EVENTS}.")


def _of_stream(action: str, stream: str) -> str:
    return f"{PREFIX}.{action}.{check_stream_name(stream)}"


def _of_consumer(action: str, stream: str, consumer: str) -> str:
    return f"{PREFIX}.{action}.{_names(stream, consumer)}"


def _names(stream: str, consumer: str) -> str:
    return f"{check_stream_name(stream)}.{check_consumer_name(consumer)}"
