"""Limits that writers of core streams enforce, and servers' own ones as Conat's rejections.

Source: Conat backend/conat/test/sync/limits.test.ts; core-stream.md sections 4 and 6.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import PublishItem, PublishOptions, PublishResult, conat_code, connect
from natsstream.errors import NatsStreamError, RejectedError
from natsstream.testing import FaultProxy
from tests.support import conat_layers
from tests.support.core_streams import clients, clients_by, heard, held, until, until_equal

if TYPE_CHECKING:
    from natsstream import CoreStream
    from natsstream.testing import NatsNode, NatsServer

pytestmark = pytest.mark.asyncio


async def refused(stream: CoreStream, mesg: object, **options: Any) -> RejectedError:
    """Publish a message that a limit refuses, and return the error."""
    before = stream.get_all()
    with pytest.raises(RejectedError) as caught:
        await stream.publish(mesg, **options)
    assert conat_code(caught.value) == "reject"
    assert stream.get_all() == before
    return caught.value


async def test_LI3_a_second_key_removes_the_first_by_its_bytes(server: NatsNode) -> None:
    async with conat_layers.opened("dkv", server, config={"max_bytes": 100}) as [kv]:
        kv.a = "x" * 50
        await kv.save()
        assert kv.get_all() == {"a": "x" * 50}
        kv.b = "x" * 75
        await kv.save()
        await until(lambda: kv.get_all() == {"b": "x" * 75})


async def test_LI4_a_value_that_is_too_big_is_rejected(server: NatsNode) -> None:
    async with conat_layers.opened("dkv", server, config={"max_msg_size": 100}) as [kv]:
        rejected: list[Any] = []
        kv.on("reject", rejected.append)
        kv.a = "x" * 50
        await kv.save()
        kv.b = "x" * 150
        await kv.save()
        assert [(each.key, each.value) for each in rejected] == [("b", "x" * 150)]
        assert kv.get_all() == {"a": "x" * 50}


@pytest.mark.smoke
async def test_LI9_a_message_larger_than_max_bytes_removes_everything(server: NatsNode) -> None:
    async with clients(server, config={"max_bytes": 100}) as [one, two]:
        await one.publish("a")
        await until_equal(two, values=["a"])
        await one.publish("b" * 1_000)
        await until_equal(one, two, values=[])
        assert await held(one) == []


async def test_LI11_max_msg_size_refuses_larger_messages(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.config({"max_msg_size": 100})
        await stream.publish("x" * 50)
        error = await refused(stream, "x" * 101)
        assert "max_msg_size" in str(error)
        await stream.config({"max_msg_size": -1})
        await stream.publish("x" * 101)
        assert len(stream) == 2


async def test_LI13_the_oldest_messages_make_room(server: NatsNode) -> None:
    async with clients(server, config={"max_bytes": 60}) as [one, two]:
        changes = heard(two)
        values = ["x" * 39, "y" * 43, "z"]
        for value in values:
            await one.publish(value)
        assert one.get_all() == values[1:]
        await until_equal(two, values=values[1:])
        assert [each.seq for each in changes if each.is_removal] == [1]


async def test_LI17_too_many_messages_in_a_second_are_rejected(server: NatsNode) -> None:
    async with clients(server, 1, config={"max_msgs_per_second": 100}) as [stream]:
        results = await stream.publish_many([PublishItem(number) for number in range(150)])
        # One more than the limit passes, and those of the last second count.
        assert [each.code for each in results] == [None] * 101 + ["reject"] * 49
        assert stream.get_all() == list(range(101))
        await stream.config({"max_msgs_per_second": -1})
        await stream.publish("x")


async def test_too_many_bytes_in_a_second_are_rejected_and_another_clients_count(
    server: NatsNode,
) -> None:
    async with clients(server, config={"max_bytes_per_second": 1_000}) as [one, two]:
        await one.publish("x" * 2_000)
        await until_equal(two, values=one.get_all())
        error = await refused(two, "y")
        assert (error.limit, error.retryable) == ("max_bytes_per_second", True)


async def test_messages_in_flight_count_too(server: NatsNode) -> None:
    fields = {"max_bytes": 10, "discard_policy": "new"}
    async with clients(server, 1, config=fields) as [stream]:
        results = await asyncio.gather(
            *(stream.publish("1234") for _ in range(5)), return_exceptions=True
        )
        assert [isinstance(each, RejectedError) for each in results] == [False] * 2 + [True] * 3
        assert len(stream) == 2


async def test_max_bytes_with_discard_new_refuses_and_a_deletion_makes_room(
    server: NatsNode,
) -> None:
    fields = {"max_bytes": 10, "discard_policy": "new"}
    async with clients(server, 1, config=fields) as [stream]:
        await stream.publish("12345")
        error = await refused(stream, "12345")
        assert (error.limit, error.retryable) == ("max_bytes", False)
        await stream.delete(all=True)
        await stream.publish("12345")


@pytest.mark.parametrize("is_many", [False, True], ids=["one", "many"])
async def test_a_server_that_refuses_at_max_msgs_rejects(server: NatsNode, is_many: bool) -> None:  # noqa: FBT001 - A parameter of a test.
    fields = {"max_msgs": 2, "discard_policy": "new"}
    async with clients(server, 1, config=fields) as [stream]:
        await stream.publish("a")
        await stream.publish("b")
        if is_many:
            [result] = await stream.publish_many([PublishItem("c")])
            assert isinstance(result.error, RejectedError)
        else:
            await refused(stream, "c")
        assert stream.get_all() == ["a", "b"]


async def test_each_item_has_its_own_refusal(server: NatsNode) -> None:
    async with clients(server, 1, config={"max_msg_size": 20}) as [stream]:
        keyed = PublishItem("2", PublishOptions(key="k" * 30))
        items = [PublishItem("1"), keyed, PublishItem("3" * 30), PublishItem("4")]
        results = await stream.publish_many(items)
        assert [each.code for each in results] == [None, "reject", "reject", None]
        assert stream.get_all() == ["1", "4"]


async def test_config_applies_a_lower_limit_at_once(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        for value in ("x" * 39, "y" * 43, "z"):
            await one.publish(value)
        await one.config({"max_bytes": 60})
        assert one.get_all() == ["y" * 43, "z"]
        await until_equal(two, values=["y" * 43, "z"])
        await one.config({"max_msgs": 1})
        assert one.get_all() == ["z"]


async def test_a_limit_that_is_given_when_opening_applies_at_once(server: NatsNode) -> None:
    async with clients(server, 1) as [one]:
        for value in ("x" * 39, "y" * 43, "z"):
            await one.publish(value)
        async with clients(server, 1, name=one.name, config={"max_bytes": 60}) as [two]:
            assert two.get_all() == ["y" * 43, "z"]
            await until_equal(one, values=["y" * 43, "z"])


async def test_overwritten_values_make_room(server: NatsNode) -> None:
    async with clients(server, 1, config={"max_bytes": 20}) as [stream]:
        await stream.publish("first")
        for number in range(20):
            await stream.set_kv("k", number)
        assert stream.get_all() == ["first", 19]


async def test_a_client_that_has_not_loaded_all_removes_nothing(server: NatsNode) -> None:
    async with clients(server, 1) as [one]:
        for value in ("a", "b", "c"):
            await one.publish(value)
        await one.config({"max_bytes": 1_000})
        async with clients(server, 1, name=one.name, start_seq=3) as [later]:
            await later.publish("x" * 995)
            await until_equal(one, values=["a", "b", "c", "x" * 995])
            # Another client's next write does.
            await one.publish("y")
        assert one.get_all() == ["x" * 995, "y"]


FULL_AFTER_ONE: list[dict[str, Any]] = [
    {"max_bytes": 100, "discard_policy": "new"},
    {"max_msgs": 1, "discard_policy": "new"},
]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("config", FULL_AFTER_ONE, ids=lambda config: next(iter(config)))
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("is_many", [False, True], ids=["one", "many"])
async def test_a_retry_after_a_lost_ack_is_answered_by_the_server_not_by_a_limit(
    fresh_server: NatsServer, config: dict[str, Any], key: str | None, *, is_many: bool
) -> None:
    """The message fills the stream; its ack and its copy come after the deadline."""
    options = PublishOptions(msg_id="id", key=key, timeout=0.3)
    item = PublishItem("x" * 60, options)
    with FaultProxy(fresh_server.port) as proxy:
        connection = connect(proxy.url, request_timeout=1)
        async with clients_by([connection], config=config) as [stream]:

            async def publish(item: PublishItem) -> PublishResult:
                if is_many:
                    return (await stream.publish_many([item]))[0]
                mesg, each = item.mesg, item.options
                try:
                    stored = await stream.publish(
                        mesg, msg_id=each.msg_id, key=each.key, timeout=each.timeout
                    )
                except NatsStreamError as error:
                    return PublishResult(None, error)
                return PublishResult(stored)

            proxy.stall(direction="to_client")
            assert (await publish(item)).code == 408
            proxy.heal()
            await until_equal(stream, values=["x" * 60])
            again, other = (
                await publish(item),
                await publish(replace(item, options=PublishOptions())),
            )
            assert (again.code, again.seq) == (None, 1)
            assert other.code == "reject"
            assert stream.get_all() == ["x" * 60]


@pytest.mark.parametrize("config", FULL_AFTER_ONE, ids=lambda config: next(iter(config)))
async def test_a_refusal_names_the_core_stream_and_its_configuration(
    server: NatsNode, config: dict[str, Any]
) -> None:
    async with clients(server, 1, config=config) as [stream]:
        await stream.publish("x" * 60)
        with pytest.raises(RejectedError) as caught:
            await stream.publish("x" * 60)
        [result] = await stream.publish_many([PublishItem("x" * 60)])
        for error in (caught.value, result.error):
            assert isinstance(error, RejectedError)
            assert error.message.startswith(f"core stream 'hub/{stream.name}': ")
            assert "config" in error.hint
            assert next(iter(config)) in error.hint
