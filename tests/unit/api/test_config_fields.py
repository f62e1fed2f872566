"""The fields of configurations as keywords: all of them, in types, help and completion."""

from __future__ import annotations

import inspect
import pydoc
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

import natsstream as ns
from natsstream import blocking
from natsstream.api.settings.keywords import shows_fields
from natsstream.blocking.portal import Portal
from natsstream.blocking.proxies import wrap
from natsstream.streams.consumers.manager import ConsumerManager
from natsstream.streams.manager import StreamManager

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = [
    (manager, name, taken, config)
    for manager, taken, config in (
        (StreamManager, ns.StreamFields, ns.StreamConfig),
        (ConsumerManager, ns.ConsumerFields, ns.ConsumerConfig),
        (ns.KeyValueManager, ns.BucketFields, ns.BucketConfig),
        (ns.ObjectStoreManager, ns.ObjectBucketFields, ns.ObjectBucketConfig),
    )
    for name in ("create", "update", "ensure", "diff")
]


@pytest.mark.parametrize(("manager", "name", "taken", "config"), CALLS)
def test_call_shows_and_takes_each_field_of_its_configuration(
    manager: Any, name: str, taken: Any, config: Any
) -> None:
    call = getattr(manager, name)
    wanted = {each.name for each in fields(config)} - {"name"}

    assert set(taken.__annotations__) == wanted
    assert call.__annotations__["fields"] == f"Unpack[{taken.__name__}]"
    assert set(inspect.signature(call).parameters) == {"self", "config", *wanted}
    for field in wanted:
        assert f"{field}:" in pydoc.render_doc(call)


def test_blocking_call_shows_them_without_self() -> None:
    manager = object.__new__(StreamManager)
    proxy: Any = wrap(manager, object.__new__(Portal))

    names = list(inspect.signature(proxy.ensure).parameters)

    assert names[:2] == ["config", "subjects"]
    assert isinstance(proxy, blocking.StreamManager)


def test_calls_with_fields_of_their_own_are_refused() -> None:
    def call(*, name: str) -> str:
        return name

    decorate: Callable[..., Any] = shows_fields(ns.StreamFields)
    with pytest.raises(TypeError, match="takes no fields"):
        decorate(call)
