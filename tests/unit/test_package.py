"""What a first look at the package shows: its names, its version, the names of other clients."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys
import traceback
from dataclasses import fields
from typing import Any

import pytest

import natsstream as ns
from natsstream import blocking, errors, foreign_names
from natsstream.blocking.answer import Answer
from natsstream.errors import ConfigError
from natsstream.kv.manager import KeyValueManager
from natsstream.objects.manager import ObjectStoreManager
from natsstream.streams.consumers.manager import ConsumerManager
from natsstream.streams.manager import StreamManager
from natsstream.testing import NatsCluster, NatsServer

HOLDERS: dict[str, type[object]] = {
    "ack": ns.PubAck,
    "answer": Answer,
    "cluster": NatsCluster,
    "consumer_info": ns.ConsumerInfo,
    "entry": ns.Entry,
    "info": ns.StreamInfo,
    "meta": ns.DeliveryMeta,
    "object_info": ns.ObjectInfo,
    "object_watch": ns.ObjectWatch,
    "ordered": ns.OrderedConsumer,
    "state": ns.StreamState,
    "status": ns.BucketStatus,
    "stream_info": ns.StreamInfo,
    "sub": ns.CoreSubscription,
    "server": NatsServer,
    "dstream": ns.DStream,
    "message": ns.DeliveredMessage,
    "kv": ns.KeyValue,
    "lock": ns.Lock,
    "box": ns.ObjectStore,
    "stream.direct": ns.DirectReads,
    "watch": ns.Watch,
    "consumer": ns.Consumer,
    "js": ns.JetStream,
    "js.core": ns.Core,
    "js.core_stream": ns.CoreStreams,
    "js.kv": KeyValueManager,
    "js.objects": ObjectStoreManager,
    "js.producer": ns.Producers,
    "producer": ns.IdempotentProducer,
    "js.streams": StreamManager,
    "publisher": ns.Publisher,
    "stream": ns.Stream,
    "stream.consumers": ConsumerManager,
}
# Set in the constructor.
ATTRIBUTES = {
    "consumer.cached", "js.core", "js.counters", "js.streams", "stream.cached", "stream.change",
}  # fmt: skip
OTHER_INFOS = {"consumer_info", "object_info"}
KNOWN = (
    "ack", "answer", "box", "consumer", "dstream", "entry", "info", "js", "kv", "lock", "message",
    "meta", "producer", "publisher", "state", "status", "stream", "sub",
)  # fmt: skip
# What a message that was read has none of, and a consumer's message has.
OF_DELIVERED = {"ack", "nak"}


def blocked(module: str, program: str) -> str:
    """Run a program in which a module cannot be imported; return what it prints."""
    head = f"import sys; sys.modules[{module!r}] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.smoke
def test_dir_is_what_the_package_exports() -> None:
    assert dir(ns) == sorted(ns.__all__)


def test_import_of_all_names_takes_those_that_are_told() -> None:
    names: dict[str, object] = {}
    exec("from natsstream.blocking import *", names)  # noqa: S102 - no test can write it plainly.
    assert sorted(names.keys() - {"__builtins__"}) == dir(blocking)


def test_rooms_of_their_own_are_found_without_an_import() -> None:
    program = "import natsstream as ns; print(ns.blocking.connect, ns.testing.NatsServer)"

    assert re.fullmatch(r"<function connect at .*> <class '.*NatsServer'>\n", blocked("x", program))


def test_version_is_that_of_the_installed_package() -> None:
    version = importlib.metadata.version("natsstream")

    assert ns.__version__ == blocking.__version__ == version


def held(holder: str) -> Any:
    """Return an object of a holder that is not connected: its names are all that is asked for."""
    return object.__new__(ns.Message if holder == "message" else HOLDERS[holder])


@pytest.mark.parametrize(
    ("holder", "name"),
    [(holder, name) for holder, names in foreign_names.MEMBERS.items() for name in sorted(names)],
)
def test_name_of_another_client_is_answered_with_names_that_exist(holder: str, name: str) -> None:
    here = foreign_names.MEMBERS[holder][name]

    assert name in OF_DELIVERED or not hasattr(HOLDERS[holder], name)
    with pytest.raises(AttributeError) as caught:
        getattr(held(holder), name)
    assert str(caught.value).endswith(f"has no attribute {name!r}; in natsstream: {here}")
    rooms = r"(?:\.(?:consumers|core|direct|kv|objects|streams))?"
    pairs = re.findall(rf"\b((?:{'|'.join(KNOWN)}){rooms})\.(\w+)", here)
    for found, member in pairs:
        is_known = f"{found}.{member}" in ATTRIBUTES
        kind = HOLDERS[holder if found == "info" and holder in OTHER_INFOS else found]
        assert is_known or hasattr(kind, member), here


@pytest.mark.parametrize(
    ("call", "name"),
    [(call, name) for call, names in foreign_names.KEYWORDS.items() for name in sorted(names)],
)
@pytest.mark.asyncio
async def test_keyword_of_another_client_is_answered_with_keywords_that_exist(
    call: str, name: str
) -> None:
    here = foreign_names.KEYWORDS[call][name]
    holder, _, method = call.rpartition(".")
    if call in HOLDERS:  # Such as js.producer(...).
        holder, method = call, "__call__"
    known = inspect.signature(getattr(HOLDERS[holder], method)).parameters
    arguments: dict[str, Any] = {name: 1}

    assert name not in known or known[name].kind is inspect.Parameter.VAR_POSITIONAL
    for option in re.findall(r"(?<!\w)(\w+)=", re.sub(r"\w+(\.\w+)*\(.*?\)", "", here)):
        assert option in known, here
    with pytest.raises(TypeError) as caught:
        await getattr(held(holder), method)(**arguments)
    assert str(caught.value) == f"{call}() has no argument {name!r}; in natsstream: {here}"


@pytest.mark.parametrize("name", sorted(foreign_names.CLASSES))
def test_class_of_another_client_is_answered_with_fields_that_exist(name: str) -> None:
    here = foreign_names.CLASSES[name]
    known = {field.name for kind in (ns.StreamConfig, ns.ConsumerConfig) for field in fields(kind)}

    assert name not in ns.__all__
    for word in re.findall(r"(\w+)=[\"]", here):
        assert word in known, here
    for word in re.findall(r"^\w+(?=,|\(\)$)", here):
        assert word in ns.__all__
    for package in (ns, blocking):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; in natsstream: "):
            getattr(package, name)


@pytest.mark.parametrize("name", sorted(errors.FOREIGN))
def test_error_of_nats_py_is_answered_with_errors_that_exist(name: str) -> None:
    here = errors.FOREIGN[name]

    for word in re.findall(r"\w+Error", here):
        assert word in dir(errors)
    with pytest.raises(AttributeError) as caught:
        getattr(errors, name)
    assert str(caught.value).endswith(f"has no attribute {name!r}; in natsstream: {here}")


# The others are only in `natsstream.errors`: an `except` that names one at the top fails late.
ONLY_IN_ERRORS = sorted({*dir(errors), *errors.FOREIGN} - set(ns.__all__))


@pytest.mark.parametrize("package", [ns, blocking])
@pytest.mark.parametrize("name", ONLY_IN_ERRORS)
def test_error_at_the_top_is_answered_with_its_place(package: object, name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(package, name)

    _, mark, here = str(caught.value).partition(f"has no attribute {name!r}; in natsstream: ")
    assert mark
    assert name not in dir(errors) or here == f"ns.errors.{name}"
    for found, word in re.findall(r"(ns\.errors\.)?(\w+Error)\b", here):
        assert found, here
        assert word in dir(errors), here


def test_errors_list_errors_alone() -> None:
    assert {"NatsStreamError", "ConfigError"} < set(dir(errors))
    assert [name for name in dir(errors) if not name.endswith("Error")] == []


@pytest.mark.asyncio
async def test_misspelt_keyword_is_answered_with_the_nearest() -> None:
    arguments: dict[str, Any] = {"msg_idd": "1"}
    with pytest.raises(TypeError) as caught:
        await held("js").publish("orders.new", b"", **arguments)

    assert str(caught.value) == "js.publish() has no argument 'msg_idd'; did you mean msg_id?"


@pytest.mark.parametrize("kind", [ns.Stream, ns.Consumer, ns.KeyValue, ns.ObjectStore])
def test_methods_are_those_of_their_class(kind: type[object]) -> None:
    public = [each for each in dir(kind) if not each.startswith("_")]
    methods = [vars(kind)[each] for each in public if inspect.isfunction(getattr(kind, each))]

    assert len(methods) > 3
    for method in methods:
        assert method.__qualname__ == f"{kind.__name__}.{method.__name__}"


@pytest.mark.parametrize("opener", ["js.producer", "js.core_stream"])
def test_call_that_is_not_awaited_is_named_as_it_is_written(opener: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"coroutine '{opener}' was never awaited"):
        held(opener)("a")


@pytest.mark.parametrize("opener", ["js.producer", "js.core_stream"])
@pytest.mark.asyncio
async def test_opener_names_the_call_as_it_is_written(opener: str) -> None:
    arguments: dict[str, Any] = {"encodin": "json"}
    with pytest.raises(TypeError) as caught:
        await held(opener)("a", **arguments)

    assert str(caught.value) == f"{opener}() has no argument 'encodin'; did you mean encoding?"


@pytest.mark.parametrize(
    ("call", "arguments", "told"),
    [
        ("js.streams.ensure", ("Z", ["z.>"]), "js.streams.ensure(config) was given 2 .*subjects="),
        ("kv.update", ("k", b"", 3), r"kv.update\(key, value\) was given 3 .* such as revision="),
        ("js.publish", (), r"^js.publish\(\) missing 1 required positional argument: 'subject'"),
    ],
)
@pytest.mark.asyncio
async def test_arguments_by_place_that_do_not_fit_are_named(
    call: str, arguments: tuple[object, ...], told: str
) -> None:
    holder, _, method = call.rpartition(".")
    with pytest.raises(TypeError, match=told.replace("(config)", r"\(config\)")):
        await getattr(held(holder), method)(*arguments)


@pytest.mark.asyncio
async def test_arguments_that_go_by_name_are_named() -> None:
    message: Any = object.__new__(ns.DeliveredMessage)
    with pytest.raises(TypeError) as caught:
        await message.nak(5)

    assert str(caught.value) == (
        "message.nak() was given 1 argument by place; "
        "other arguments go by name, such as delay= or confirm= or timeout="
    )


@pytest.mark.parametrize("holder", foreign_names.OPENERS)
@pytest.mark.parametrize("given", [("orders",), ({}, {}), ()])
def test_class_that_users_do_not_call_names_what_gives_its_objects(
    holder: str, given: tuple[object, ...]
) -> None:
    kind: Any = HOLDERS[holder]
    with pytest.raises(TypeError) as caught:
        kind(*given)

    assert f"{kind.__name__}() is not for calling" in str(caught.value)
    assert foreign_names.OPENERS[holder] in str(caught.value)


@pytest.mark.parametrize(
    ("holder", "method", "told"),
    [
        (
            "producer",
            "append_wait",
            "producer.append_wait(data) was given 2 arguments by place; other",
        ),
        ("publisher", "send_many", "publisher.send_many(messages) was given 2 arguments by place"),
    ],
)
@pytest.mark.asyncio
async def test_subject_before_the_messages_is_answered(holder: str, method: str, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        await getattr(held(holder), method)("orders.a", b"x")
    assert str(caught.value).startswith(told)


def test_type_error_within_a_call_is_raised_as_it_is() -> None:
    @foreign_names.answers_names("js")
    class Holder:
        def publish(self, subject: object) -> int:
            return len(subject)  # pyright: ignore[reportArgumentType] - the promise.

    with pytest.raises(TypeError, match="has no len"):
        Holder().publish(3)


def test_dir_of_a_context_lists_the_public_names_alone() -> None:
    names = dir(held("js"))

    assert "publish" in names
    assert [name for name in names if name.startswith("_")] == []


def test_misspelt_attribute_lets_python_suggest_the_nearest() -> None:
    """Python 3.11 has no public way to its suggestion but the printed traceback."""
    with pytest.raises(AttributeError) as caught:
        held("js").publsh  # noqa: B018 - the mistake.

    printed = "".join(traceback.format_exception(caught.value))
    assert (caught.value.name, type(caught.value.obj)) == ("publsh", ns.JetStream)
    if sys.version_info >= (3, 12):
        assert "Did you mean: 'publish'?" in printed


@pytest.mark.parametrize("name", sorted(foreign_names.CONNECT_OPTIONS))
def test_option_of_another_client_is_answered_with_options_that_exist(name: str) -> None:
    here = foreign_names.CONNECT_OPTIONS[name]
    known = inspect.signature(ns.connect).parameters

    assert name not in known
    assert [option for option in re.findall(r"(\w+)=", here) if option not in known] == []
    options: dict[str, Any] = {name: True}
    with pytest.raises(ConfigError, match=f"no option '{name}'") as caught:
        ns.connect(**options)
    assert here in caught.value.hint


def test_misspelt_option_is_answered_with_the_nearest() -> None:
    options: dict[str, Any] = {"reconect_timeout": 3}
    with pytest.raises(ConfigError) as caught:
        ns.connect(**options)

    assert caught.value.hint == "did you mean reconnect_timeout?"


def test_server_harness_imports_where_files_have_no_locks() -> None:
    """As on Windows, which has no fcntl."""
    program = (
        "from natsstream.testing import NatsServer\n"
        "try: NatsServer().start()\n"
        "except Exception as error: print(error)"
    )

    assert "NatsServer needs Linux or macOS\nhint: use NatsContainer" in blocked("fcntl", program)


@pytest.mark.parametrize("name", ["NatsContainer", "NatsClusterContainer"])
def test_containers_without_docker_say_what_to_install(name: str) -> None:
    printed = blocked("docker", f"from natsstream.testing import {name}")

    assert "MissingExtraError" in printed
    assert "pip install 'natsstream[containers]'" in printed


def test_connector_without_pyspark_says_what_to_install() -> None:
    printed = blocked("pyspark", "import pyspark_natsstream")

    assert "MissingExtraError" in printed
    assert "pip install 'natsstream[spark]'" in printed
