"""The log tells a program's operator what happened, once, and no secret."""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import natsstream as ns
from natsstream.errors import AuthenticationError, ConnectionLostError
from natsstream.events import Connected, Disconnected
from natsstream.testing import NatsServer
from tests.support.accounts import KeyPair, Operator, creds_text
from tests.support.eventually import eventually_async
from tests.support.work import make_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import DeliveredMessage, JetStream

pytestmark = pytest.mark.asyncio

PACKAGE = Path(ns.__file__).parent
DOCUMENTED = re.findall(
    r"^\| `(natsstream\.\w+)` \|",
    (PACKAGE.parent / "docs/pages/guides/logging.md").read_text(),
    re.MULTILINE,
)
USER = KeyPair.new("user")
PASSWORD, TOKEN = "p4ssw0rd-of-a-test", "t0ken-of-a-test"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    """Return the lines of a logger, at a level or above."""
    caplog.set_level(logging.DEBUG)

    def found(name: str, level: int = logging.INFO) -> list[str]:
        records = [each for each in caplog.records if each.name == name]
        return [each.getMessage() for each in records if each.levelno >= level]

    return found


async def until(
    js: JetStream, kind: type[ns.events.ConnectionEvent], act: Callable[[], Any]
) -> None:
    """Do something, and wait for the event that it causes."""
    events = js.events()
    act()
    async for event in events:
        if isinstance(event, kind):
            return


async def publish_and_fail(js: JetStream, subject: str) -> None:
    """Send three messages, and leave the publisher by an error."""
    async with js.publisher() as publisher:
        for _ in range(3):
            await publisher.send(subject, b"1")
        raise KeyError


async def test_outage_is_one_line_for_each_change(
    fresh_server: NatsServer, lines: Callable[..., list[str]]
) -> None:
    async with ns.connect(fresh_server.url) as js:
        consumer = await make_work(js, "S", 0)
        stream = await js.streams.get("S")
        async with consumer.consume() as flow, stream.ordered() as tail:
            readers = [asyncio.ensure_future(anext(each)) for each in (flow, tail)]
            await until(js, Disconnected, fresh_server.kill)
            # Attempts to reconnect fail meanwhile, and write nothing.
            with pytest.raises(ns.TransportError):
                await js.publish("S.x", timeout=1)
            await until(js, Connected, fresh_server.start)
            await eventually_async(js.account)
            await js.publish("S.x", b"1")
            await asyncio.gather(*readers)

    url = re.escape(fresh_server.url)
    wanted = [
        rf"connected to {url}, nats-server 2\.\S+",
        rf"connection to {url} lost.*; reconnecting",
        rf"reconnected to {url}, nats-server 2\.\S+, after \d+\.\d s",
        rf"connection to {url} closed",
    ]
    told = lines("natsstream.connection")
    assert len(told) == len(wanted)
    assert [bool(re.fullmatch(*pair)) for pair in zip(wanted, told, strict=True)] == [True] * 4
    assert "consumer c of stream S: connection is back; pulling resumes" in lines(
        "natsstream.consumer"
    )
    (again,) = [each for each in lines("natsstream.consumer") if "recreated" in each]
    assert again.startswith("ordered read of stream S: consumer recreated (connection); resuming")


async def test_failure_of_a_handler_is_told_with_all_that_it_takes_to_find_it(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = await make_work(js, stream_name, 1)

    async def look_up(message: DeliveredMessage) -> None:
        raise KeyError(message.subject)

    queue = f"{stream_name}_DLQ"
    options: dict[str, Any] = {"dead_letter": queue, "max_attempts": 2, "backoff": [0.01]}
    async with consumer.worker(look_up, **options) as worker:

        async def is_buried() -> bool:
            return worker.report.dead_lettered == 1

        await eventually_async(is_buried)

    where = f"message 1 ({stream_name}.x) of consumer c of stream {stream_name}"
    records = [each for each in caplog.records if each.name == "natsstream.worker"]
    told = [each.getMessage() for each in records if each.levelno >= logging.WARNING]
    why = f"KeyError: '{stream_name}.x'"
    last = "that was the last attempt, and it becomes a dead letter"
    buried = f"message 1 of consumer c of stream {stream_name} is a dead letter in {queue}"
    assert told == [
        f"handler failed on {where}, attempt 1: {why}; it is redelivered after 0.01 s",
        f"handler failed on {where}, attempt 2: {why}; {last}",
        f"{buried}: {why}",
    ]
    first = next(each for each in records if each.levelno == logging.WARNING)
    assert first.exc_info is not None
    assert "in look_up" in logging.Formatter().format(first)


async def test_error_that_no_file_can_hold_is_logged_all_the_same(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    consumer = await make_work(js, stream_name, 1)
    handler = logging.FileHandler(tmp_path / "log", encoding="utf-8")
    logging.getLogger("natsstream.worker").addHandler(handler)

    async def fail(_: object) -> None:
        raise ValueError("\ud800")

    try:
        async with consumer.worker(
            fail, dead_letter=f"{stream_name}_DLQ", max_attempts=1
        ) as worker:

            async def is_buried() -> bool:
                return worker.report.dead_lettered == 1

            await eventually_async(is_buried)
    finally:
        logging.getLogger("natsstream.worker").removeHandler(handler)
        handler.close()

    text = (tmp_path / "log").read_text()
    assert "handler failed on message 1" in text
    assert "is a dead letter in" in text


async def test_failure_goes_to_on_error_alone_where_there_is_one(
    js: JetStream, stream_name: str, lines: Callable[..., list[str]]
) -> None:
    consumer = await make_work(js, stream_name, 1)
    told = asyncio.Event()

    async def fail(_: object) -> None:
        raise ValueError

    def tell(*_: object) -> None:
        told.set()

    async with consumer.worker(fail, on_error=tell):
        await told.wait()

    assert lines("natsstream.worker", logging.WARNING) == []


async def test_denial_is_told_once(lines: Callable[..., list[str]]) -> None:
    permissions = 'permissions: {publish: ["$JS.>", "_INBOX.>"]}'
    config = f"authorization {{ users: [{{user: u, password: {PASSWORD}, {permissions}}}] }}"
    with NatsServer(config=config) as server:
        async with ns.connect(server.url, user="u", password=PASSWORD) as js:
            for _ in range(3):
                with pytest.raises(ns.errors.PermissionDeniedError):
                    await js.core.request("secret.x", timeout=10)

        (line,) = lines("natsstream.connection", logging.WARNING)

    assert line.endswith("does not allow this user to publish to secret.x")


def ways(operator: Operator) -> dict[str, tuple[str, dict[str, Any], list[str]]]:
    """Return for each way to sign in the server's configuration, the arguments and the secrets."""
    jwt = operator.user_jwt(USER)
    user = f"authorization {{ users: [{{user: u, password: {PASSWORD}}}] }}"
    nkey = f"authorization {{ users: [{{nkey: {USER.public}}}] }}"
    token = f"authorization {{ token: {TOKEN} }}"
    trusted = operator.server_config
    seed = {"user_jwt": jwt, "user_seed": USER.seed}
    return {
        "password": (user, {"user": "u", "password": PASSWORD}, [PASSWORD]),
        "password in the URL": (user, {"url": f"u:{PASSWORD}@"}, [PASSWORD]),
        "token": (token, {"token": TOKEN}, [TOKEN]),
        "token in the URL": (token, {"url": f"{TOKEN}@"}, [TOKEN]),
        "nkey": (nkey, {"nkey": USER.seed}, [USER.seed]),
        "creds": (trusted, {"creds": creds_text(jwt, USER.seed)}, [jwt, USER.seed]),
        "jwt": (trusted, seed, [jwt, USER.seed]),
    }


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    "way",
    ["password", "password in the URL", "token", "token in the URL", "nkey", "creds", "jwt"],
)
async def test_no_line_shows_a_credential(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    config, given, secrets = ways(Operator())[way]
    given = dict(given)
    user = given.pop("url", "")
    with NatsServer(config=config) as server:
        url = server.url.replace("nats://", f"nats://{user}")
        async with ns.connect(url, **given) as js:
            await until(js, Disconnected, server.kill)
            await until(js, Connected, server.start)
        with pytest.raises(AuthenticationError):
            await ns.connect(server.url, token=f"{TOKEN}-wrong").open()

    text = "\n".join(logging.Formatter().format(each) for each in caplog.records)
    assert "reconnected to" in text
    for secret in [*secrets, f"{TOKEN}-wrong"]:
        assert secret not in text


def _loggers() -> set[str]:
    text = "\n".join(each.read_text() for each in PACKAGE.rglob("*.py"))
    assert "getLogger(__name__)" in text  # Of rooms whose name is the documented one.
    named = set(re.findall(r'getLogger\("([\w.]+)"\)', text))
    rooms = {
        ".".join(each.relative_to(PACKAGE.parent).with_suffix("").parts)
        for each in PACKAGE.rglob("*.py")
        if "getLogger(__name__)" in each.read_text()
    }
    return named | rooms


@pytest.mark.parametrize("name", sorted(_loggers()))
async def test_every_logger_is_documented_or_below_one_that_is(name: str) -> None:
    assert name == "natsstream" or any(
        name == each or name.startswith(f"{each}.") for each in DOCUMENTED
    )


async def test_publisher_tells_of_messages_that_a_break_has_caught(
    fresh_server: NatsServer, lines: Callable[..., list[str]]
) -> None:
    async with ns.connect(fresh_server.url) as js:
        await js.streams.ensure("S")
        async with js.publisher(retry_for=60) as publisher:
            await (await publisher.send("S", b"1"))
            fresh_server.pause()
            await publisher.send("S", b"2")
            await until(js, Disconnected, fresh_server.kill)
            fresh_server.start()

    told = lines("natsstream.publisher")
    assert told == ["connection lost with 1 message in flight: sent again"]


async def test_connection_that_is_closed_in_order_is_not_said_to_be_lost(
    fresh_server: NatsServer, lines: Callable[..., list[str]]
) -> None:
    async with ns.connect(fresh_server.url) as js:
        await js.streams.ensure("S")
        publisher = js.publisher()
        await publisher.__aenter__()  # Not left before the connection is.
        sent = await publisher.send("S", b"1")

    with pytest.raises(ConnectionLostError):
        await sent
    assert lines("natsstream.publisher") == []


async def test_publisher_that_an_error_leaves_tells_of_messages_without_an_ack(
    js: JetStream, stream_name: str, lines: Callable[..., list[str]]
) -> None:
    await js.streams.ensure(stream_name)

    with pytest.raises(KeyError):
        await publish_and_fail(js, stream_name)

    (line,) = lines("natsstream.publisher")
    assert line == "a publisher was left by an error with 3 messages in flight: stored or not"
    await js.core.rtt()
    stored = await (await js.streams.get(stream_name)).info()
    assert stored.state.messages == 3


async def test_publisher_that_an_error_leaves_in_an_outage_tells_what_was_not_sent(
    fresh_server: NatsServer, lines: Callable[..., list[str]]
) -> None:
    async with ns.connect(fresh_server.url) as js:
        await js.streams.ensure("S")
        await until(js, Disconnected, fresh_server.kill)
        with pytest.raises(KeyError):
            await publish_and_fail(js, "S")

    assert lines("natsstream.publisher") == [
        "a publisher was left by an error with 3 unsent messages"
    ]


async def test_mirror_that_ends_says_so(
    js: JetStream, stream_name: str, lines: Callable[..., list[str]]
) -> None:
    bucket = await js.kv.ensure(stream_name)
    async with bucket.cached():
        await js.kv.delete(stream_name)

        async def is_told() -> bool:
            return bool(lines("natsstream.kv", logging.ERROR))

        await eventually_async(is_told)

    (line,) = lines("natsstream.kv", logging.ERROR)
    assert line.startswith(f"mirror of bucket {stream_name} ended: ")
