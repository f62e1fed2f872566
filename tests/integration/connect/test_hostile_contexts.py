"""A context's file that somebody has written to do harm: a typed error, or a legal connection."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import natsstream as ns
from natsstream.options import option_sources
from tests.support.hostile import HOSTILE, check_sent
from tests.support.strict import StrictProxy

if TYPE_CHECKING:
    from natsstream.testing import NatsServer

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

KEYS = sorted(
    {source.context for source in option_sources().values() if source.context}
    | {"description", "nsc", "socks_proxy", "of_2030", "jetstream_event_prefix"}
)
# How a value may lead elsewhere.
FORMS = ["{}", "env://{}", "file://{}", "data:;base64,{}", "~{}", "~{}/a", "$HOME/{}", "op://{}"]
NO_TEXTS: list[object] = [5, 1e300, [True], [], ["a"], {}, {"a": "b"}, [[[]]], 10**400]
ADDRESSES = ["nats://{}@{}", "nats://{}:x@{}", "nats://x:{}@{}", "{}://{}", "{},{}", "nats://{}.{}"]


async def drive(proxy: StrictProxy, context: str | Path, what: str) -> None:
    """Connect and ask; every other error than a typed one is the test's."""
    with suppress(ns.NatsStreamError):
        async with ns.connect(context=context, connect_timeout=1, request_timeout=0.1) as js:
            await js.account()
    check_sent(proxy, what)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("key", KEYS)
async def test_no_value_of_a_context_writes_a_command(
    server: NatsServer, tmp_path: Path, key: str
) -> None:
    file = tmp_path / "hostile.json"
    values: list[object] = [form.format(text) for text in HOSTILE for form in FORMS]
    async with StrictProxy(server.port) as proxy:
        for value in values + NO_TEXTS:
            said: dict[str, Any] = {"url": proxy.url, key: value}
            for more in ({}, {"user": "u"}):
                file.write_text(json.dumps({**more, **said}))
                await drive(proxy, file, f"{key} {value!r}")


async def test_no_address_of_a_context_writes_a_command(server: NatsServer, tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    async with StrictProxy(server.port) as proxy:
        here = f"127.0.0.1:{proxy.port}"
        for address in ADDRESSES:
            for text in HOSTILE:
                file.write_text(json.dumps({"url": address.format(text, here)}))
                await drive(proxy, file, f"{address} {text!r}")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"5", b"null", b"[]", b'"a"', b"{", b"\xff\xfe", b"\0", b"NaN", b"{1:2}"),
        *(b"[" * 100_000, b'{"a":' * 100_000, b'{"url": ' + b"9" * 10_000 + b"}"),
    ],
    ids=range(13),
)
async def test_file_that_is_no_context_is_a_config_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "hostile.json"
    file.write_bytes(content)

    with pytest.raises(ns.ConfigError):
        async with ns.connect(context=file):
            pass


@pytest.mark.parametrize("form", ["{}", "{}.json", "/{}", "~{}.json", "~/{}"])
async def test_name_that_is_no_context_is_a_config_error(form: str) -> None:
    for text in HOSTILE:
        for context in (form.format(text), Path(form.format(text))):
            with pytest.raises(ns.ConfigError):
                async with ns.connect(context=context):
                    pass
