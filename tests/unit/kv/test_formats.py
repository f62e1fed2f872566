"""Formats of values: what they refuse, and what they say of it."""

from __future__ import annotations

import pytest

import natsstream as ns
from natsstream.errors import ConfigError, ValueDecodeError
from natsstream.kv.entry import Entry, decoded


@pytest.mark.parametrize("stored", [b"", b"\xff", b"NaN", b"[1", b"{}{}"])
def test_what_is_no_json_is_handed_out_as_unreadable(stored: bytes) -> None:
    entry = decoded(Entry("b", "k", stored, 7, 0, "PUT"), ns.JSON)
    assert entry.error is not None
    assert (entry.error.key, entry.error.revision, entry.error.bucket) == ("k", 7, "b")
    with pytest.raises(ValueDecodeError, match="JSON"):
        _ = entry.value


def test_null_is_a_value() -> None:
    entry = decoded(Entry("b", "k", b"null", 7, 0, "PUT"), ns.JSON)
    assert entry.error is None
    assert entry.value is None


def test_a_format_whose_function_returns_no_bytes_is_refused() -> None:
    form: ns.ValueFormat[str] = ns.ValueFormat("mine", lambda _: "text", bytes.decode)  # pyright: ignore[reportArgumentType] - That is the point.
    with pytest.raises(ConfigError, match="'k' of bucket b: mine wrote 'text'") as refused:
        form.to_bytes("x", bucket="b", key="k")
    assert "a function that returns bytes" in refused.value.hint


def test_async_functions_are_refused() -> None:
    async def write(value: str) -> bytes:
        return value.encode()

    with pytest.raises(ConfigError, match=r"encode is .* async"):
        ns.ValueFormat("mine", write, bytes.decode)  # pyright: ignore[reportArgumentType] - That is the point.


@pytest.mark.parametrize("form", [ns.JSON, ns.MSGPACK])
def test_what_a_format_has_no_form_for_is_a_config_error(form: ns.ValueFormat[object]) -> None:
    with pytest.raises(ConfigError, match="'k' of bucket b"):
        form.to_bytes(object(), bucket="b", key="k")
