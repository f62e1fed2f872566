"""The info of an account: limits, usage and API level.

Law: `raw` keeps the whole answer; typed fields are read from it, nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from natsstream._wire import subjects
from natsstream.api.features import api_level
from natsstream.arguments import counted
from natsstream.fields import Fields
from natsstream.notebook import NotebookTable

if TYPE_CHECKING:
    from natsstream.api.requests import Api

# Servers of 2.10 send "no reservation" as the largest number of 64 bits.
_UNSIGNED_NONE = 1 << 63


@dataclass(frozen=True, slots=True)
class AccountLimits(NotebookTable):
    """The limits of an account; -1 is no limit.

    Attributes:
        max_memory: Bytes of all memory streams.
        max_storage: Bytes of all file streams.
        max_streams: Streams.
        max_consumers: Consumers.
        max_ack_pending: Unacknowledged messages of one consumer.
        memory_max_stream_bytes: Bytes of one memory stream.
        storage_max_stream_bytes: Bytes of one file stream.
        max_bytes_required: True if each stream must have `max_bytes`.
    """

    max_memory: int = -1
    max_storage: int = -1
    max_streams: int = -1
    max_consumers: int = -1
    max_ack_pending: int = -1
    memory_max_stream_bytes: int = -1
    storage_max_stream_bytes: int = -1
    max_bytes_required: bool = False

    @classmethod
    def from_json(cls, body: Fields) -> AccountLimits:
        """Return the limits that a server sent; a field that it leaves out has no limit."""
        return cls(
            *(body.integer(field.name, -1) for field in fields(cls)[:-1]),
            max_bytes_required=body.flag("max_bytes_required"),
        )


@dataclass(frozen=True, slots=True)
class AccountUsage(NotebookTable):
    """The usage of an account, and its limits.

    Attributes:
        memory: Bytes that memory streams hold.
        storage: Bytes that file streams hold.
        reserved_memory: Bytes that memory streams have reserved by `max_bytes`.
        reserved_storage: Bytes that file streams have reserved by `max_bytes`.
        streams: Streams.
        consumers: Consumers.
        limits: Its limits.
    """

    memory: int
    storage: int
    reserved_memory: int
    reserved_storage: int
    streams: int
    consumers: int
    limits: AccountLimits

    @classmethod
    def from_json(cls, body: Fields) -> AccountUsage:
        """Return the usage that a server sent."""
        used = [body.integer(field.name, 0) for field in fields(cls)[:-1]]
        return cls(
            *(0 if each >= _UNSIGNED_NONE else each for each in used),
            limits=AccountLimits.from_json(body.part("limits", {})),
        )


@dataclass(frozen=True, slots=True)
class AccountInfo(NotebookTable):
    """An account at one moment; made by `js.account()`.

    Attributes:
        usage: Its usage in all, and its limits. An account with tiers has its limits there, and 0
            here.
        tiers: Usage and limits of each tier, such as `R3`; empty for an account without tiers.
        domain: JetStream's domain; empty for none.
        api_level: JetStream's API level (ADR-44): 0 before nats-server 2.11; None if the server
            sends no number.
        api_requests: Requests that JetStream answered for this account.
        api_errors: Requests among them that it refused.
        raw: The server's whole answer.
        api_inflight: Requests in flight; 0 if unknown.
    """

    usage: AccountUsage
    tiers: Mapping[str, AccountUsage]
    domain: str
    api_level: int | None
    api_requests: int
    api_errors: int
    raw: Mapping[str, object]
    api_inflight: int = 0

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> AccountInfo:
        """Return the account that a server sent.

        Raises:
            ProtocolError: The answer is not the info of an account.
        """
        body = Fields.of(body, "the info of an account")
        api, tiers = body.part("api", {}), body.parts_by_name("tiers")
        return cls(
            AccountUsage.from_json(body),
            {name: AccountUsage.from_json(tier) for name, tier in tiers.items()},
            body.text("domain", ""),
            api_level(body.raw),
            api.integer("total", 0),
            api.integer("errors", 0),
            body.raw,
            api.integer("inflight", 0),
        )

    def __repr__(self) -> str:
        usage = self.usage
        return (
            f"<AccountInfo {counted(usage.streams, 'stream')}, "
            f"{counted(usage.consumers, 'consumer')}, "
            f"{usage.storage} bytes on disk, {usage.memory} in memory, API level {self.api_level}>"
        )


async def account_info(api: Api) -> AccountInfo:
    """Return the account of a connection.

    Raises:
        JetStreamNotEnabledError: The server, or the account, has no JetStream.
        TransportError: The server did not answer in time.

    Cost: one round trip.
    """
    return AccountInfo.from_json(await api.read(subjects.INFO, None, what="account"))
