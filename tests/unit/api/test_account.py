"""What an account's answer becomes."""

from __future__ import annotations

import pytest

from natsstream.api.account import AccountInfo
from natsstream.errors import ProtocolError

BODY: dict[str, object] = {
    "type": "io.nats.jetstream.api.v1.account_info_response",
    "memory": 1,
    "storage": 2,
    "reserved_memory": (1 << 64) - 1,
    "reserved_storage": 3,
    "streams": 4,
    "consumers": 5,
    "limits": {"max_memory": 10, "max_storage": -1, "max_streams": 7, "max_bytes_required": True},
    "tiers": {"R3": {"memory": 6, "storage": 7, "limits": {"max_streams": 2}}},
    "domain": "hub",
    "api": {"level": 3, "total": 8, "errors": 1, "inflight": 2},
    "of_a_newer_server": 1,
}


@pytest.mark.proves("1a", "account info (limits, tiers, API level)")
def test_account_has_usage_limits_and_tiers() -> None:
    account = AccountInfo.from_json(BODY)

    usage = account.usage
    assert (usage.memory, usage.storage, usage.reserved_storage) == (1, 2, 3)
    assert (usage.streams, usage.consumers) == (4, 5)
    assert (usage.limits.max_memory, usage.limits.max_streams) == (10, 7)
    assert (usage.limits.max_storage, usage.limits.max_consumers) == (-1, -1)
    assert usage.limits.max_bytes_required
    assert account.tiers["R3"].storage == 7
    assert account.tiers["R3"].limits.max_streams == 2
    assert (account.domain, account.api_level) == ("hub", 3)
    assert (account.api_requests, account.api_errors) == (8, 1)
    assert account.raw["of_a_newer_server"] == 1


def test_nothing_reserved_is_zero_as_old_servers_write_it() -> None:
    assert AccountInfo.from_json(BODY).usage.reserved_memory == 0


def test_bare_account_has_no_domain_tiers_and_limits() -> None:
    account = AccountInfo.from_json({})

    assert (account.domain, account.tiers, account.api_level) == ("", {}, None)
    assert account.usage.limits.max_bytes_required is False
    assert "0 streams" in repr(account)


@pytest.mark.parametrize(
    "body", [{"memory": "x"}, {"limits": 7}, {"tiers": [1]}, {"tiers": {"R1": 1}}, {"api": "x"}]
)
def test_answer_that_is_no_account_is_told(body: dict[str, object]) -> None:
    with pytest.raises(ProtocolError, match="info of an account"):
        AccountInfo.from_json(body)
