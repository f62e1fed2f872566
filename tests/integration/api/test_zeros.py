"""0 is 0, -1 is no limit and None is the server's default: taken as given, or refused."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import pytest_asyncio

from natsstream import (
    BucketConfig,
    ConfigError,
    ConsumerConfig,
    ConsumerLimits,
    ObjectBucketConfig,
    StreamConfig,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio

_T = TypeVar("_T")


@pytest_asyncio.fixture
async def stream(js: JetStream, stream_name: str) -> Stream:
    """An empty stream of this test alone."""
    return await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])


_PUSHED = {"deliver_subject": "pushed.here"}
_PINNED = {"priority_groups": ["jobs"], "priority_policy": "pinned_client"}
# What a field needs beside it to mean anything.
_BESIDE: dict[str, dict[str, Any]] = {
    "subject_delete_marker_ttl": {"allow_msg_ttl": True},
    "idle_heartbeat": _PUSHED,
    "rate_limit": _PUSHED,
    "priority_timeout": _PINNED,
}
_LIMITS = ("max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size", "max_consumers")
_NO_ZERO = (*_LIMITS, "duplicate_window")


def _numbers(config: type[object]) -> list[str]:
    """Return the fields of a configuration that are one number, or one duration."""
    kinds = {item.name: str(item.type).removesuffix(" | None") for item in fields(config)}  # type: ignore[arg-type]
    found = [
        name
        for name, kind in kinds.items()
        if set(kind.split(" | ")) <= {"int", "float", "timedelta", "Duration"}
    ]
    assert found
    return found


def _cases(config: type[object]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}={value}")
        for name in _numbers(config)
        for value in (0, -1, None)
    ]


async def _made_or_refused(name: str, making: Awaitable[_T]) -> _T | None:
    """Return what is made, or None where a refusal says which field it is about."""
    try:
        return await making
    except ConfigError as error:
        said = error.message
    assert name in said
    return None


def _check_taken(given: object, taken: object) -> None:
    """Compare a value with what the server says; one that it leaves out is 0."""
    if given is not None:
        assert (taken or 0) == given


@pytest.mark.parametrize(("name", "value"), _cases(StreamConfig))
async def test_a_number_of_a_stream_is_what_was_given_or_is_refused(
    js: JetStream, stream_name: str, name: str, value: int | None
) -> None:
    given: dict[str, Any] = {"storage": "memory", **_BESIDE.get(name, {}), name: value}
    made = await _made_or_refused(name, js.streams.ensure(stream_name, **given))
    if made is None:
        return

    _check_taken(value, getattr(made.cached.config, name))
    again = await js.streams.ensure(stream_name, **given)
    assert not again.change


@pytest.mark.sampled_variants
@pytest.mark.parametrize(("name", "value"), _cases(ConsumerConfig))
async def test_a_number_of_a_consumer_is_what_was_given_or_is_refused(
    stream: Stream, name: str, value: int | None
) -> None:
    given: dict[str, Any] = {**_BESIDE.get(name, {}), name: value}
    made = await _made_or_refused(name, stream.consumers.ensure("worker", **given))
    if made is None:
        return

    _check_taken(value, getattr(made.cached.config, name))
    again = await stream.consumers.ensure("worker", **given)
    assert not again.change


@pytest.mark.parametrize(("name", "value"), _cases(ConsumerLimits))
async def test_a_bound_of_consumers_is_what_was_given_or_is_refused(
    js: JetStream, stream_name: str, name: str, value: int | None
) -> None:
    async def ensure() -> Stream:
        limits = ConsumerLimits(**{name: value})  # type: ignore[arg-type]
        return await js.streams.ensure(stream_name, storage="memory", consumer_limits=limits)

    made = await _made_or_refused(name, ensure())
    if made is None:
        return

    _check_taken(value, getattr(made.cached.config.consumer_limits, name))
    assert not (await ensure()).change


@pytest.mark.sampled_variants
@pytest.mark.parametrize("kind", ["kv", "objects"])
@pytest.mark.parametrize(("name", "value"), _cases(BucketConfig))
async def test_a_number_of_a_bucket_is_what_was_given_or_is_refused(
    js: JetStream, stream_name: str, kind: str, name: str, value: int | None
) -> None:
    if kind == "objects" and name not in _numbers(ObjectBucketConfig):
        return
    manager = getattr(js, kind)
    given = {"storage": "memory", name: value}
    made = await _made_or_refused(name, manager.ensure(stream_name, **given))
    if made is None:
        return

    _check_taken(value, getattr((await made.status()).config, name))
    again = await manager.ensure(stream_name, **given)
    assert not again.change


@pytest.mark.parametrize("name", _NO_ZERO)
async def test_a_zero_that_no_server_holds_is_refused_by_every_door(
    js: JetStream, stream: Stream, tmp_path: Path, name: str
) -> None:
    """The error says how to have no limit, or the default."""
    new = f"{stream.name}_new"
    fields_: dict[str, Any] = {name: 0}
    await stream.backup(tmp_path / "backup")

    for call in (
        lambda: js.streams.create(new, **fields_),
        lambda: js.streams.create(new, extra=fields_),
        lambda: js.streams.ensure(stream.name, **fields_),
        lambda: js.streams.update(stream.name, **fields_),
        lambda: js.streams.diff(stream.name, **fields_),
        lambda: js.streams.copy(stream.name, new, subjects=["new.>"], **fields_),
        lambda: js.streams.restore(tmp_path / "backup", name=new, **fields_),
        lambda: js.kv.ensure(new, extra=fields_),
        lambda: js.kv.create(new, extra=fields_),
        lambda: js.objects.ensure(new, extra=fields_),
    ):
        with pytest.raises(ConfigError) as caught:
            await call()
        assert name in caught.value.message
    with pytest.raises(ConfigError, match=name) as caught:
        js.streams.template("each.*.>", **fields_)

    way = "leave it out" if name == "duplicate_window" else "-1"
    assert way in caught.value.hint
    assert [each async for each in js.streams.names(subject="new.>")] == []


@pytest.mark.parametrize("name", ["max_age", "duplicate_window", "subject_delete_marker_ttl"])
async def test_a_duration_that_would_be_rounded_to_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        StreamConfig(name="S", **{name: 1e-10})  # type: ignore[arg-type]
