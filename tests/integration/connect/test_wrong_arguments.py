"""Arguments of the wrong type at the doors: an error with a way out, and nothing is sent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

import natsstream
from natsstream import connect
from natsstream.errors import ConfigError, InvalidConfigError, SubjectError, UsageError
from tests.support.streams import connection_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

ANY: Any = natsstream  # Without types: these are the calls that type checkers refuse.

CONNECTS: dict[str, tuple[Callable[[], object], str]] = {
    "number": (lambda: ANY.connect(4222), "servers is 4222 .of type int"),
    "number in a list": (lambda: ANY.connect(["nats://a", 4222]), r"servers\[1\] is 4222"),
    "bytes": (lambda: ANY.connect(b"nats://a"), "servers"),
    "context": (lambda: ANY.connect(context=5), "context is 5"),
    "timeout": (lambda: ANY.connect("nats://a", request_timeout="2"), "request_timeout is '2'"),
    "pings": (lambda: ANY.connect("nats://a", max_missed_pings=2.5), "max_missed_pings is 2.5"),
    "switch": (lambda: ANY.connect("nats://a", tls_first="yes"), "tls_first is 'yes'"),
    "name": (lambda: ANY.connect("nats://a", name=5), "name is 5"),
    "domain": (lambda: ANY.connect("nats://a", domain=b"hub"), "domain is b'hub'"),
    "path": (lambda: ANY.connect("nats://a", ca=5), "ca is 5"),
    "options": (lambda: ANY.ConnectOptions(servers=None, name=None, ping_interval="1"), "ping_"),
}


@pytest.mark.parametrize("name", CONNECTS)
async def test_connection_is_not_described_with_a_value_of_the_wrong_type(name: str) -> None:
    call, told = CONNECTS[name]

    with pytest.raises(ConfigError, match=told) as raised:
        call()

    assert raised.value.hint


async def test_secret_of_the_wrong_type_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="password is of type int") as raised:
        ANY.connect("nats://a", user="a", password=123456)

    assert "123456" not in str(raised.value)


@pytest.mark.parametrize("url", ["ws://localhost:8080", "wss://localhost"])
async def test_websocket_is_answered_with_how_to_attach_one(url: str) -> None:
    with pytest.raises(ConfigError, match="is not a server URL") as raised:
        connect(url)

    assert "natsstream.attach()" in raised.value.hint


@pytest.mark.parametrize(
    ("url", "told", "hint"),
    [
        ("http://127.0.0.1:4222", "begins with http://", "nats://host:port"),
        ("nats://127.0.0.1:99999", "port is too large", "65535"),
        ("redis://127.0.0.1", "begins with redis://", "nats://host:port"),
        ("nats://127.0.0.1:abc", "number 1 is not a server URL", "the port in digits"),
        ("nats://a:1 nats://b:2", "number 1 is not a server URL", "a comma separates"),
        ("127.0.0.1:65536", "port is too large", "65535"),
        ("", "servers is empty", "is a variable unset"),
        ("nats://a:1,", "number 2 is empty", "is a variable unset"),
    ],
)
async def test_address_is_answered_with_what_is_wrong(url: str, told: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        connect(url)

    assert hint in raised.value.hint
    assert "password" not in raised.value.hint


async def test_unknown_scheme_is_not_shown_since_it_may_be_a_secret() -> None:
    with pytest.raises(ConfigError, match="is not a server URL") as raised:
        connect("s3cret://127.0.0.1:4222")

    assert "s3cret" not in str(raised.value)


async def test_awaiting_a_connection_is_answered_with_how_to_open_it() -> None:
    with pytest.raises(UsageError, match="cannot be awaited") as raised:
        await ANY.connect("nats://127.0.0.1:1")

    assert "async with connect(...) as js" in raised.value.hint


async def test_opening_a_connection_with_plain_with_is_answered_with_the_blocking_door() -> None:
    with (
        pytest.raises(UsageError, match="async with") as raised,
        ANY.connect("nats://127.0.0.1:1"),
    ):
        pass

    assert "natsstream.blocking.connect()" in raised.value.hint


async def test_method_of_a_connection_that_is_not_open_is_answered_with_how_to_open_it() -> None:
    connection = ANY.connect("nats://127.0.0.1:1")

    with pytest.raises(AttributeError, match=r"not open yet.*then js\.publish"):
        connection.publish("a", b"")
    assert not hasattr(connection, "__fspath__")


@pytest_asyncio.fixture
async def js(server: NatsServer, stream_name: str) -> AsyncIterator[JetStream]:
    """A connection of this name to the server that the whole run shares."""
    async with connect(server.url, name=stream_name) as js:
        yield js


CORE: dict[str, tuple[Callable[[Any], object], type[UsageError], str]] = {
    "publish": (lambda core: core.publish(None), SubjectError, "the subject is None"),
    "publish bytes": (lambda core: core.publish(b"a"), SubjectError, "the subject is b'a'"),
    "publish text": (lambda core: core.publish("a", "x"), ConfigError, "data is 'x'"),
    "publish none": (lambda core: core.publish("a", None), ConfigError, "data is None"),
    "publish reply": (lambda core: core.publish("a", b"", reply=5), SubjectError, "reply is 5"),
    "request": (lambda core: core.request(5), SubjectError, "the subject is 5"),
    "request text": (lambda core: core.request("a", "x"), ConfigError, "data is 'x'"),
    "request wait": (lambda core: core.request("a", timeout="2"), ConfigError, "timeout is '2'"),
    "flush": (lambda core: core.flush(timeout="2"), ConfigError, "timeout is '2'"),
    "rtt": (lambda core: core.rtt(timeout=-1), ConfigError, "timeout must be 0 or more"),
    "subscribe": (lambda core: core.subscribe(1), SubjectError, "the subject is 1"),
    "queue": (lambda core: core.subscribe("a", queue=1), ConfigError, "queue is 1"),
    "slow": (lambda core: core.subscribe("a", on_slow="rase"), ConfigError, "on_slow is 'rase'"),
    "limit": (lambda core: core.subscribe("a", max_pending="9"), ConfigError, "max_pending is '9'"),
}


@pytest.mark.parametrize("name", CORE)
async def test_plain_nats_refuses_what_is_of_the_wrong_type(
    js: JetStream, server: NatsServer, stream_name: str, name: str
) -> None:
    call, kind, told = CORE[name]

    async with nothing_is_sent(js, server, stream_name):
        with pytest.raises(kind, match=told):
            await finish(call(js.core))


STREAM: dict[str, tuple[Callable[[Any], object], type[UsageError], str]] = {
    "get": (lambda stream: stream.get("1"), ConfigError, "sequence is '1'"),
    "get zero": (lambda stream: stream.get(0), ConfigError, "sequence is 0"),
    "get subject": (lambda stream: stream.get(last_by_subject=5), SubjectError, "is 5"),
    "get time": (lambda stream: stream.get(start_time="now"), ConfigError, "start_time is"),
    "get seconds": (lambda stream: stream.get(start_time=9**10), ConfigError, "of 1970"),
    "direct seconds": (lambda stream: stream.direct.get(start_time=9**10), ConfigError, "of 1970"),
    "read seconds": (lambda stream: stream.read(start_time=9**10), ConfigError, "of 1970"),
    "ordered seconds": (lambda stream: stream.ordered(start_time=9**10), ConfigError, "of 1970"),
    "consumer seconds": (
        lambda stream: stream.consumers.create("c", start_time=9**10),
        ConfigError,
        "start_time 3486784401 is of 1970",
    ),
    "read": (lambda stream: stream.read(first_seq="1"), ConfigError, "first_seq is '1'"),
    "read last": (lambda stream: stream.read(last_seq=1.5), ConfigError, "last_seq is 1.5"),
    "read loss": (lambda stream: stream.read(on_loss="tell"), ConfigError, "on_loss is 'tell'"),
    "read text": (lambda stream: stream.read(filters="a.b"), ConfigError, "one string"),
    "read filter": (lambda stream: stream.read(filters=["a", 5]), SubjectError, r"filters\[1\]"),
    "read twice": (lambda stream: stream.read(filters=["a", "a"]), ConfigError, "overlap"),
    "read wider": (lambda stream: stream.read(filters=["a.b", "a.>"]), ConfigError, "overlap"),
    "ordered": (lambda stream: stream.ordered(first_seq="1"), ConfigError, "first_seq is '1'"),
    "ordered twice": (lambda stream: stream.ordered(filters=["a.*", "a.b"]), ConfigError, "overl"),
    "ordered policy": (lambda stream: stream.ordered(deliver_policy="nev"), ConfigError, "policy"),
    "ordered time": (lambda stream: stream.ordered(start_time=1.5), ConfigError, "time 1.5"),
}


@pytest.mark.sampled_variants
@pytest.mark.parametrize("name", STREAM)
async def test_stream_refuses_what_is_of_the_wrong_type(
    js: JetStream, server: NatsServer, stream_name: str, name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    call, kind, told = STREAM[name]

    async with nothing_is_sent(js, server, stream_name):
        with pytest.raises(kind, match=told):
            await finish(call(stream))


async def test_filters_that_only_share_some_subjects_are_read_once(
    js: JetStream, stream_name: str
) -> None:
    """The server takes these, so we do."""
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    for subject in ("a.b", "a.c", "d.b", "d.c"):
        await js.publish(f"{stream_name}.{subject}")

    filters = [f"{stream_name}.a.*", f"{stream_name}.*.b"]
    found = [message.subject async for message in stream.read(filters=filters)]

    assert [subject.removeprefix(f"{stream_name}.") for subject in found] == ["a.b", "a.c", "d.b"]


async def test_reading_a_work_queue_is_answered_with_the_ways_that_there_are(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[stream_name], retention="workqueue")
    await js.publish(stream_name)

    with pytest.raises(InvalidConfigError) as raised:
        await anext(aiter(stream.read()))

    assert "stream.consumers" in raised.value.hint
    assert "stream.get(sequence)" in raised.value.hint


@asynccontextmanager
async def nothing_is_sent(js: JetStream, server: NatsServer, name: str) -> AsyncGenerator[None]:
    """Demand that the server gets no message in the block."""
    await js.core.flush()
    before = connection_of(server, name)["in_msgs"]
    yield
    await js.core.flush()
    assert connection_of(server, name)["in_msgs"] == before


async def finish(value: Any) -> None:
    """Wait for what a call gave, and read it if it is to be read."""
    if hasattr(value, "__await__"):
        await asyncio.wait_for(value, 5)
