"""What natsstream takes from nats-py's inside: a new nats-py that changes it fails here first.

`_wire/client.py` and `_wire/nats_py.py` stand on names that nats-py does not promise to keep. Each
is listed below; the last test reads the two files, so that no name can be missing from the list.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import nats.errors
import pytest
from nats.aio.client import Client as NatsPyClient
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.protocol.parser import AWAITING_CONTROL_LINE, Parser

from natsstream._wire import attach as attach_module
from natsstream._wire import client as client_module
from natsstream._wire import connection_state as life_module
from natsstream._wire import nats_py as nats_py_module
from natsstream._wire import subscriptions as subscriptions_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

# Attributes of a Client object, with the type that a new one has there.
ATTRIBUTES: dict[str, type] = {
    "_closed_cb": type(None),
    "_disconnected_cb": type(None),
    "_discovered_server_cb": type(None),
    "_error_cb": FunctionType,
    "_flush_queue": type(None),
    "_flusher_task": type(None),
    "_lame_duck_mode_cb": type(None),
    "_max_payload": int,
    "_pending": list,
    "_pending_data_size": int,
    "_ping_interval_task": type(None),
    "_pongs": list,
    "_ps": Parser,
    "_reading_task": type(None),
    "_reconnection_task": type(None),
    "_reconnected_cb": type(None),
    "_server_info": dict,
    "_server_pool": list,
    "_sid": int,
    "_status": int,
    "_subs": dict,
    "_transport": type(None),
    "options": dict,
}
# Attributes of a TcpTransport that has not connected, and of the subscription that is returned.
TRANSPORT_ATTRIBUTES = ("_io_reader", "_io_writer")
SUBSCRIPTION_ATTRIBUTES = ("_id", "_max_msgs", "_queue", "_received", "_subject")
# Methods of Client: name, whether it is awaited, names of the arguments that are passed.
METHODS: list[tuple[str, bool, list[str]]] = [
    ("_attempt_reconnect", True, []),
    ("_close", True, ["status", "do_cbs"]),
    ("_process_connect_init", True, []),
    ("_process_err", True, ["err_msg"]),
    ("_process_msg", True, ["sid", "subject", "reply", "data", "headers"]),
    ("_process_info", True, ["info", "initial_connection"]),
    ("_process_op_err", True, ["e"]),
    ("_read_loop", True, []),
    ("_ping_interval", True, []),
    ("_flusher", True, []),
    ("_remove_sub", False, ["sid"]),
    ("close", True, []),
    ("set_server_pool", False, ["servers"]),
    (
        "connect",
        True,
        [
            "servers",
            "name",
            "user",
            "password",
            "token",
            "user_credentials",
            "connect_timeout",
            "allow_reconnect",
            "max_reconnect_attempts",
            "reconnect_time_wait",
            "ping_interval",
            "pending_size",
            "error_cb",
            "disconnected_cb",
            "reconnected_cb",
            "closed_cb",
            "discovered_server_cb",
            "dont_randomize",
            "lame_duck_mode_cb",
        ],
    ),
]
PROPERTIES = ("connected_url", "discovered_servers", "is_connected", "max_payload", "servers")
MODULES = (attach_module, client_module, life_module, nats_py_module, subscriptions_module)
# Names of our own that the two files use in the same way.
OURS = {
    "_natsstream",
    "_refusals",
    "_is_over",
    "_check_wanted",
    "_drop_waiting",
    "_count_refusal",
    "_unknown_urls",
    "_tasks",
    "_keep",
    "_renew",
    "_missed",
    "_on_task_done",
}


def test_version_is_the_one_that_the_names_were_read_from() -> None:
    assert re.match(r"2\.16\.", version("nats-py"))


@pytest.mark.parametrize(("name", "kind"), ATTRIBUTES.items())
def test_client_has_the_attribute(name: str, kind: type) -> None:
    assert type(getattr(NatsPyClient(), name)) is kind


@pytest.mark.parametrize("name", TRANSPORT_ATTRIBUTES)
def test_transport_has_the_attribute(name: str) -> None:
    assert getattr(TcpTransport(), name) is None


@pytest.mark.parametrize("name", SUBSCRIPTION_ATTRIBUTES)
def test_subscription_has_the_attribute(name: str) -> None:
    assert hasattr(Subscription(NatsPyClient(), 7, "a"), name)


@pytest.mark.parametrize(("name", "is_awaited", "arguments"), METHODS)
def test_client_has_the_method(name: str, is_awaited: bool, arguments: list[str]) -> None:  # noqa: FBT001 - a row of the table.
    method = cast("Callable[..., object]", getattr(NatsPyClient, name))
    parameters = list(inspect.signature(method).parameters)

    assert inspect.iscoroutinefunction(method) is is_awaited
    assert set(arguments) <= set(parameters)
    if name.startswith("_"):
        assert parameters[: len(arguments) + 1] == ["self", *arguments]


@pytest.mark.parametrize("name", PROPERTIES)
def test_client_has_the_property(name: str) -> None:
    assert isinstance(inspect.getattr_static(NatsPyClient, name), property)


def test_parser_waits_for_a_line_in_the_state_that_attach_looks_for() -> None:
    parser = Parser(NatsPyClient())

    assert parser.state == AWAITING_CONTROL_LINE == cast("Any", attach_module)._AWAITING_LINE
    assert (parser.buf, parser.needed) == (bytearray(), 0)


def test_every_error_of_nats_py_has_one_root() -> None:
    assert issubclass(nats.errors.NoServersError, nats.errors.Error)
    assert issubclass(nats.errors.Error, Exception)


@pytest.mark.asyncio
async def test_reader_of_asyncio_keeps_its_bytes_where_the_lane_takes_them() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"early")

    assert cast("Any", reader)._buffer == bytearray(b"early")


def test_subscription_of_ours_is_one_that_nats_py_makes_again() -> None:
    client = cast("Any", NatsPyClient())

    sid = nats_py_module.add_subscription(client, "a.>", "workers")

    made = client._subs[int(sid)]
    assert client._sid == int(sid)
    assert (made._id, made._subject, made._queue) == (int(sid), "a.>", "workers")
    assert (made._max_msgs, made._received, made._wait_for_msgs_task) == (0, 0, None)
    client._remove_sub(int(sid))
    assert not client._subs


def test_names_of_servers_are_read_or_left_out() -> None:
    assert nats_py_module.address_of("u:p@h:1") == ("h", 1)
    assert nats_py_module.address_of("[::1]:5") == ("::1", 5)
    assert nats_py_module.address_of("h") == ("h", 4222)
    for odd in ("[::1", "h:99999", "", ":4222", "h:x"):
        assert nats_py_module.address_of(odd) is None


def test_read_task_is_made_after_the_last_wait_of_the_handshake() -> None:
    """The lane takes the transport right after it: an await in between could read a byte."""
    source = inspect.getsource(cast("Any", NatsPyClient)._process_connect_init)

    assert "create_task(self._read_loop())" in source
    assert "await" not in source.partition("create_task(self._read_loop())")[2]


def private_names(module: ModuleType) -> set[str]:
    """Return the private attributes that a file uses of anything but `self` and `client`."""
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    used: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not re.match(r"_[a-z]", node.attr):
            continue
        own = isinstance(node.value, ast.Name) and node.value.id in {"self", "client"}
        if not own or module is nats_py_module:
            used.add(node.attr)
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = {text for text in texts if isinstance(text, str) and re.fullmatch(r"_[a-z_]+", text)}
    return used | names


def test_list_of_private_names_is_complete() -> None:
    listed = {
        *ATTRIBUTES,
        *TRANSPORT_ATTRIBUTES,
        *SUBSCRIPTION_ATTRIBUTES,
        *(name for name, _, _ in METHODS),
        *OURS,
        "_buffer",
        "_current_server",
        "_ws",
        "_limit",
    }

    for module in MODULES:
        assert private_names(module) <= listed


@pytest.mark.parametrize(
    ("command", "count"),
    [
        (b"PUB s 1\r\nx\r\n", 1),
        (b"HPUB s 12 13\r\nNATS/1.0\r\n\r\nx\r\n", 1),
        (b"PUB s _INBOX.a.1 1\r\nx\r\n", 0),
        (b"HPUB s _INBOX.a.1 12 13\r\nNATS/1.0\r\n\r\nx\r\n", 0),
        (b"PUB $JS.ACK.S.c.1.1.1.1.0 4\r\n+ACK\r\n", 0),
        (b"SUB s 1\r\n", 0),
        (b"PING\r\n", 0),
    ],
)
def test_messages_are_counted_that_nobody_waits_for_an_answer_to(
    command: bytes, count: int
) -> None:
    assert nats_py_module.count_messages([command, command]) == 2 * count
