"""The options of a core stream that its layers take too; pure rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypedDict

from natsstream.arguments import check_names
from natsstream.conat.configuration import config_fields
from natsstream.conat.values import Encoding, json_text

_ALIASES = {
    "autosave": "no_autosave=True for autosave=False",
    "ttl": 'config={"max_age": milliseconds}; ttl= of set() and publish() is for one message',
}


class LeaderArguments(TypedDict, total=False):
    """The arguments of `js.core_stream` besides the name that need nothing loaded.

    Attributes:
        account_id: UUID of the account that owns it; counts before `project_id`.
        project_id: UUID of the project that owns it.
        config: Fields of its configuration to set, by Conat's names.
        ephemeral: Keep a new stream in memory; one on disk stays there.
        replicas: Replicas of a new stream, 1 to 5; None leaves it to the server.
        encoding: The format of values that this object writes.
        tombstone_ttl: Milliseconds after which the tombstone of a key expires; None is never.
        service: A service has streams of its own.
        prefix: The first tokens of all subjects.
    """

    account_id: str | None
    project_id: str | None
    config: Mapping[str, object] | None
    ephemeral: bool
    replicas: int | None
    encoding: Encoding
    tombstone_ttl: int | None
    service: str
    prefix: str


class CoreStreamArguments(LeaderArguments, total=False):
    """The arguments of `js.core_stream` besides the name, with the same meaning in each layer.

    Attributes:
        start_seq: Load only messages from this sequence on.
        no_cache: Return an object of its own.
        look_every: Seconds between two comparisons with the stream's info.
    """

    start_seq: int | None
    no_cache: bool
    look_every: float


def check_arguments(
    arguments: Mapping[str, object],
    known: type[LeaderArguments | CoreStreamArguments],
    layer: str,
    own: Sequence[str] = (),
) -> None:
    """Refuse arguments that a layer does not have.

    Args:
        arguments: Those of the core stream that are given.
        known: Those that there are.
        layer: The layer, for the error.
        own: The layer's own arguments, for the error.

    Raises:
        ConfigError: There is one.
    """
    names = (*own, *known.__annotations__)
    check_names(arguments, names, f"argument of {layer}", aliases=_ALIASES)


def with_config(
    arguments: CoreStreamArguments, fields: Mapping[str, object]
) -> CoreStreamArguments:
    """Return the arguments with fields of the configuration set besides; None sets nothing."""
    given = {name: value for name, value in fields.items() if value is not None}
    return {**arguments, "config": {**config_fields(arguments.get("config")), **given}}


def cache_key(
    name: str, arguments: CoreStreamArguments, *own: bool | Callable[..., object] | None
) -> Hashable:
    """Return a key that is equal for equal arguments, whatever their order.

    Args:
        name: The name.
        arguments: The arguments of the core stream.
        own: The layer's own arguments.

    Raises:
        ConfigError: JSON cannot write the configuration.
    """
    config = json_text(sorted((arguments.get("config") or {}).items()))
    others = frozenset(
        (field, value)
        for field, value in arguments.items()
        if field != "config" and value is not None
    )
    return (name, config, others, *own)
