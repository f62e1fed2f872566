"""Signing in to real servers, in each way that there is; what is refused, and how soon."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import JetStream, blocking, connect
from natsstream.errors import AuthenticationError, ConfigError, NatsStreamError, TransportError
from natsstream.testing import NatsServer
from tests.support.accounts import KeyPair, Operator, creds_text
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Mapping

    from natsstream import DeliveredMessage, Stream

pytestmark = pytest.mark.asyncio

USER, OTHER = KeyPair.new("user"), KeyPair.new("user")
PASSWORD = "p@ss:/w%rd"  # noqa: S105 - Of a server that lives for this test.
# Beyond the handshake's own bound, so that a hang is told from a slow machine.
SOON_S = 20.0
EXPIRY_S = 3


@pytest.fixture(scope="module")
def users() -> Iterator[NatsServer]:
    """A server with a user who has a password and one who has an nkey."""
    config = f'authorization {{ users: [ {{user: "b ob", password: "{PASSWORD}"}}, '
    with NatsServer(config=f"{config} {{nkey: {USER.public}}} ] }}") as server:
        yield server


@pytest.fixture(scope="module")
def token_server() -> Iterator[NatsServer]:
    """A server that wants a token."""
    with NatsServer(config='authorization { token: "t0ken/%" }') as server:
        yield server


@pytest.fixture(scope="module")
def operator() -> Operator:
    """An operator with one account."""
    return Operator()


@pytest.fixture(scope="module")
def trusting(operator: Operator) -> Iterator[NatsServer]:
    """A server that trusts the operator."""
    with NatsServer(config=operator.server_config) as server:
        yield server


async def who(js: JetStream) -> str:
    """Return whom the server takes this connection for."""
    # No call of the library's own tells it.
    frame = await js._client.request("$SYS.REQ.USER.INFO", timeout=30)  # pyright: ignore[reportPrivateUsage]
    answer = cast("Mapping[str, dict[str, str]]", json.loads(frame[3]))
    return answer["data"]["user"]


async def signed_in(url: str, **given: Any) -> str:
    async with connect(url, **given) as js:
        return await who(js)


def with_user(url: str, user: str) -> str:
    return url.replace("nats://", f"nats://{user}@")


async def test_user_and_password_sign_in(users: NatsServer) -> None:
    assert await signed_in(users.url, user="b ob", password=PASSWORD) == "b ob"


async def test_user_and_password_in_the_url_are_decoded(users: NatsServer) -> None:
    url = with_user(users.url, "b%20ob:p%40ss%3A%2Fw%25rd")

    assert await signed_in(url) == "b ob"


async def test_token_signs_in_as_text_function_or_part_of_the_url(token_server: NatsServer) -> None:
    for token in ("t0ken/%", lambda: "t0ken/%"):
        async with connect(token_server.url, token=token) as js:
            assert js.is_connected
    async with connect(with_user(token_server.url, "t0ken%2F%25")) as js:
        assert js.is_connected


async def test_nkey_signs_in_as_seed_or_file(users: NatsServer, tmp_path: Path) -> None:
    file = tmp_path / "user.nk"
    file.write_text(f"{USER.seed}\n")

    for nkey in (USER.seed, file, str(file)):
        assert await signed_in(users.url, nkey=nkey) == USER.public


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_creds_sign_in_as_file_or_text(
    trusting: NatsServer, operator: Operator, tmp_path: Path, newline: str
) -> None:
    file = tmp_path / "user.creds"
    text = creds_text(operator.user_jwt(USER), USER.seed).replace("\n", newline)
    file.write_bytes(text.encode())

    for creds in (file, str(file), text):
        assert await signed_in(trusting.url, creds=creds) == USER.public


async def test_jwt_signs_in_as_text_or_function_with_its_seed(
    trusting: NatsServer, operator: Operator
) -> None:
    jwt = operator.user_jwt(USER)

    for given in (jwt, lambda: jwt):
        assert await signed_in(trusting.url, user_jwt=given, user_seed=USER.seed) == USER.public


async def test_bearer_jwt_signs_in_without_a_seed(trusting: NatsServer, operator: Operator) -> None:
    bearer = operator.user_jwt(USER, is_bearer=True)

    assert await signed_in(trusting.url, user_jwt=bearer) == USER.public


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"user": "b ob", "password": "wrong"},
        {"user": "b ob", "password": ""},
        {"token": PASSWORD},
        {"nkey": KeyPair.new("user").seed},
        {"creds": creds_text(Operator().user_jwt(USER), USER.seed)},
    ],
)
async def test_wrong_credentials_are_told_at_once_and_not_repeated(
    users: NatsServer, given: dict[str, Any]
) -> None:
    began = time.monotonic()
    with pytest.raises(AuthenticationError) as caught:
        await signed_in(users.url, **given)

    assert time.monotonic() - began < SOON_S
    told = "refused the credentials" if given else "requires credentials, and none were given"
    assert caught.value.message.endswith(told)
    assert "Authorization Violation" in caught.value.detail
    for secret in (PASSWORD, "wrong", USER.seed):
        assert secret not in str(caught.value)


def bad_jwts(operator: Operator) -> dict[str, dict[str, str]]:
    good, old = operator.user_jwt(USER), operator.user_jwt(USER, exp=time.time() - 10)
    return {
        "no seed": {"user_jwt": good},
        "another's seed": {"user_jwt": good, "user_seed": OTHER.seed},
        "expired": {"user_jwt": old, "user_seed": USER.seed},
        "another operator's": {"user_jwt": Operator().user_jwt(USER), "user_seed": USER.seed},
    }


@pytest.mark.parametrize("fault", ["no seed", "another's seed", "expired", "another operator's"])
async def test_jwt_that_does_not_hold_is_an_authentication_error(
    trusting: NatsServer, operator: Operator, fault: str
) -> None:
    with pytest.raises(AuthenticationError):
        await signed_in(trusting.url, **bad_jwts(operator)[fault])


async def test_servers_without_the_right_user_are_not_passed_over(
    users: NatsServer, token_server: NatsServer
) -> None:
    """A refusal by the first server is told; the second one is not asked with the same secret."""
    with pytest.raises(AuthenticationError):
        await signed_in(f"{token_server.url},{users.url}", user="b ob", password=PASSWORD)


async def test_creds_file_that_is_gone_is_told_before_the_server_is_asked(
    trusting: NatsServer, operator: Operator, tmp_path: Path
) -> None:
    file = tmp_path / "user.creds"
    file.write_text(creds_text(operator.user_jwt(USER), USER.seed))
    connection = connect(trusting.url, creds=file)
    file.unlink()

    with pytest.raises(ConfigError, match=r"user\.creds does not exist"):
        await connection.open()


def fail() -> str:
    raise LookupError("the vault is closed")


async def late() -> str:
    return "secret"


@pytest.mark.parametrize("option", ["token", "user_jwt"])
@pytest.mark.parametrize(
    ("function", "said"), [(fail, "vault is closed"), (str, "no text"), (late, "async")]
)
async def test_function_that_gives_no_secret_is_told(
    trusting: NatsServer, option: str, function: Callable[[], str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        await signed_in(trusting.url, **{option: function})

    assert f"given as {option}" in caught.value.message


async def refusal_of(js: JetStream) -> NatsStreamError | None:
    try:
        await js.streams.ensure("ANY")
    except AuthenticationError as error:
        return error
    except TransportError:
        return None  # Reconnects are tried.
    return None


async def test_credentials_that_expire_end_the_connection_with_an_authentication_error(
    trusting: NatsServer, operator: Operator
) -> None:
    jwt = operator.user_jwt(USER, exp=time.time() + EXPIRY_S)

    async with connect(trusting.url, user_jwt=jwt, user_seed=USER.seed) as js:
        assert await who(js) == USER.public
        error = await eventually_async(lambda: refusal_of(js))

    assert "expired" in str(error)


async def read_ordered(stream: Stream, got: asyncio.Event) -> None:
    async with stream.ordered() as messages:
        async for _ in messages:
            got.set()


async def work(stream: Stream, got: asyncio.Event) -> None:
    consumer = await stream.consumers.ensure("c")

    async def handle(_: DeliveredMessage) -> None:
        got.set()

    await consumer.run(handle)


@pytest.mark.parametrize("use", [read_ordered, work])
async def test_password_that_changes_ends_the_connection_and_whoever_waits_on_it(
    use: Callable[[Stream, asyncio.Event], Coroutine[Any, Any, None]],
) -> None:
    """Commands that a reader wrote meanwhile must not keep nats-py from closing."""
    config, password, got = "authorization {{ user: ann, password: {} }}", "one", asyncio.Event()
    with NatsServer(config=config.format(password)) as server:
        async with connect(server.url, user="ann", password=password) as js:
            stream = await js.streams.create("S")
            using = asyncio.ensure_future(use(stream, got))
            await js.publish("S", b"")
            await got.wait()
            await asyncio.to_thread(server.stop)
            with NatsServer(config=config.format("two"), port=server.port):
                async with asyncio.timeout(SOON_S):
                    with pytest.raises(AuthenticationError):
                        await using
                assert await eventually_async(lambda: refusal_of(js))


async def test_credentials_that_are_renewed_in_time_outlive_the_old_ones(
    trusting: NatsServer, operator: Operator, tmp_path: Path
) -> None:
    file = tmp_path / "user.creds"
    file.write_text(creds_text(operator.user_jwt(USER, exp=time.time() + EXPIRY_S), USER.seed))

    async with connect(trusting.url, creds=file) as js:
        file.write_text(creds_text(operator.user_jwt(USER), USER.seed))
        client = js._client  # pyright: ignore[reportPrivateUsage]

        async def is_back() -> bool:
            return client.connections > 1 and client.is_connected

        await eventually_async(is_back)
        assert await who(js) == USER.public


async def test_blocking_door_takes_the_same_arguments(
    trusting: NatsServer, operator: Operator
) -> None:
    jwt = operator.user_jwt(USER)

    with blocking.connect(trusting.url, user_jwt=jwt, user_seed=USER.seed) as js:
        assert js.is_connected
    with pytest.raises(AuthenticationError), blocking.connect(trusting.url):
        pass
