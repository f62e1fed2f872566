"""Creates, updates and plans consumers by their configuration.

Law: a create never changes an existing consumer, and an update never creates one: each request
names its action. An update sends back every field that the server has, known here or not, with only
the caller's changes. The configuration that the server has then is compared with the one sent.
Source: ADR-31 of the API's `action`, nats.go jetstream/consumer.go upsertConsumer.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

from natsstream._wire import subjects
from natsstream.api import consumer_rules as rules
from natsstream.api.change_plan import (
    add_differences,
    changed,
    created,
    creation,
    differences,
    overlay,
)
from natsstream.api.consumer_config import ConsumerConfig
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import consumer_info, pause_consumer
from natsstream.api.consumer_rules import CONSUMER_RULES
from natsstream.api.creations import made
from natsstream.api.diff import ConfigChange
from natsstream.api.features import CONSUMER_FIELDS, check_taken, used_features
from natsstream.api.names import SUBJECT_BYTES_MAX
from natsstream.api.requests import Api, send_config
from natsstream.errors import (
    ConfigError,
    ConsumerExistsError,
    ConsumerNotFoundError,
    NatsStreamError,
    ServerError,
)
from natsstream.units import time_to_ns

# The default; without acks a consumer never redelivers.
_ACK_POLICY = "explicit"
# Servers accept it silently, and delete the consumer once it is idle for a while.
_CHANGED_SILENTLY = ("durable", "deliver_subject")


async def create_consumer(
    api: Api, stream: str, config: ConsumerConfig
) -> tuple[ConsumerInfo, ConfigChange]:
    """Create a consumer, or return the existing one with exactly this configuration.

    Returns:
        The consumer, and the change; see `create_stream`.

    Raises:
        ConfigError: Fields do not go together; nothing was sent.
        ConsumerExistsError: A consumer of this name has another configuration; `differences` says
            in which fields.
        StreamNotFoundError: The stream does not exist.
        InvalidConfigError: The server refused a field, or stored another value.
        UnsupportedServerError: The server lacks a field. If this was known, nothing was sent.
        TransportError: There was no answer; the consumer may exist.

    Cost: one round trip; a cluster also holds an election.
    """
    if config.name is None:
        config = replace(config, name=secrets.token_hex(8), durable=False)
    if config.ack_policy is None:
        config = replace(config, ack_policy=_ACK_POLICY)
    if config.pause_until is not None and time_to_ns(config.pause_until) <= time.time_ns():
        config = replace(config, pause_until=None)
    rules.check_whole(_values(config))
    body = creation(CONSUMER_RULES, config)
    await api.require(*used_features(CONSUMER_FIELDS, body))
    now = asyncio.get_running_loop().time
    began = now()
    try:
        info = await _send(api, stream, _name_of(config), body, action="create")
    except ConsumerExistsError as error:
        info = await _existing(api, stream, config, error)
    else:
        _check_taken(info, given=body, sent=body)
    return info, made(config, info, now() - began)


async def update_consumer(
    api: Api, stream: str, config: ConsumerConfig
) -> tuple[ConsumerInfo, ConfigChange]:
    """Change the given fields and leave all others as the server has them.

    Returns:
        The consumer, and the change; if nothing differs, nothing is sent.

    Raises:
        ConfigError: The name is missing, or fields do not go together; nothing was sent.
        ConsumerNotFoundError: The consumer does not exist.
        InvalidConfigError: The server refused a change, or stored another value.
        UnsupportedServerError: The server lacks a field; see `create_consumer`.
        TransportError: There was no answer; the change may be made.

    Cost: one round trip if nothing differs, else two; a third if `pause_until` differs, and for the
    first change of a consumer after a restart of its server.
    """
    return await _overlay(api, await consumer_info(api, stream, _name_of(config)), config)


async def ensure_consumer(
    api: Api, stream: str, config: ConsumerConfig
) -> tuple[ConsumerInfo, ConfigChange]:
    """Create a consumer, or change the fields that differ, or leave it as it is.

    Returns:
        The consumer, and the change.

    Raises:
        NatsStreamError: As for `create_consumer` and `update_consumer`.

    Cost: one round trip if nothing differs, else two; a third if `pause_until` differs, and for the
    first change of a consumer after a restart of its server.
    """
    name = _name_of(config)
    try:
        held = await consumer_info(api, stream, name)
    except ConsumerNotFoundError:
        try:
            return (await create_consumer(api, stream, config))[0], created(config)
        except ConsumerExistsError:  # Another client was faster, with another configuration.
            held = await consumer_info(api, stream, name)
    return await _overlay(api, held, config)


async def plan_consumer(api: Api, stream: str, config: ConsumerConfig) -> ConfigChange:
    """Return the change that `ensure_consumer` would make, without making it.

    Raises:
        StreamNotFoundError: The stream does not exist.
        TransportError: The server did not answer in time.

    Cost: one round trip.
    """
    try:
        held = await consumer_info(api, stream, _name_of(config))
    except ConsumerNotFoundError:
        return created(config)
    return _change(config, held)


async def _overlay(
    api: Api, held: ConsumerInfo, wanted: ConsumerConfig
) -> tuple[ConsumerInfo, ConfigChange]:
    change = _change(wanted, held)
    # Servers ignore a pause in an update.
    unpaused = replace(wanted, pause_until=None)
    sent = changed(CONSUMER_RULES, unpaused, _config_of(held))
    info = held
    if sent.fields:
        body, given = overlay(wanted, _config_of(held), sent)
        _check_changes(held, ConsumerConfig.from_json(body), sent)
        await api.require(*used_features(CONSUMER_FIELDS, given))
        try:
            info = await _update(api, held, unpaused, body, given)
        except ServerError as error:
            if change.refused:
                names = ", ".join(each.name for each in change.refused)
                error.hint = f"{names}: {change.refused[0].refusal}; delete it and create it again"
            elif isinstance(error, ConsumerExistsError):
                error.hint = "deliver_subject can be changed only while no client subscribes to it"
            raise
    if len(sent.fields) < len(change.fields) and wanted.pause_until is not None:
        await pause_consumer(api, held.stream, held.name, time_to_ns(wanted.pause_until))
        info = await consumer_info(api, held.stream, held.name)
    return info, change


async def _existing(
    api: Api, stream: str, config: ConsumerConfig, error: ConsumerExistsError
) -> ConsumerInfo:
    """Return the existing consumer if nothing differs; else raise the error with differences."""
    try:
        held = await consumer_info(api, stream, _name_of(config))
    except NatsStreamError:  # It is gone by now, or its info is not permitted.
        raise error from None
    different = dict(differences(CONSUMER_RULES, config, _config_of(held)))
    if held.config.is_durable != config.is_durable:
        different["durable"] = (held.config.is_durable, config.is_durable)
    if not different:
        return held
    add_differences(error, different)
    raise error


def _change(wanted: ConsumerConfig, held: ConsumerInfo) -> ConfigChange:
    if wanted.pause_until is not None and time_to_ns(wanted.pause_until) <= time.time_ns():
        # A pause that is over changes nothing; another client's pause stays.
        wanted = replace(wanted, pause_until=None)
    change = changed(CONSUMER_RULES, wanted, _config_of(held))
    if any(each.name == "ack_wait" for each in change.fields) and wanted.backoff is None:
        rules.check_waits(held.config.backoff, wanted.ack_wait)
    return change


def _check_changes(held: ConsumerInfo, merged: ConsumerConfig, change: ConfigChange) -> None:
    """Refuse changes that the server would ignore, or refuse with a less clear error."""
    for field in change.refused:
        if field.name in _CHANGED_SILENTLY:
            raise ConfigError(
                f"{field.name} of consumer {held.name}: {field.refusal}",
                hint="delete it and create it again, or create one under another name",
            )
    try:
        rules.check_whole(_values(merged))
    except ConfigError:
        rules.check_whole(_values(held.config))  # Blames stored fields that were invalid before.
        raise


async def _update(
    api: Api,
    held: ConsumerInfo,
    wanted: ConsumerConfig,
    body: dict[str, object],
    given: Mapping[str, object],
) -> ConsumerInfo:
    """Send an update, and compare it with the consumer as it is then."""
    info = await _send(api, held.stream, held.name, body, action="update")
    if changed(CONSUMER_RULES, wanted, _config_of(info)):
        # A server that has restarted answers the first update of each consumer with the info from
        # before it (2.10.26 to 2.15.1, consumer.go initialInfo), though it has stored the change.
        info = await consumer_info(api, held.stream, held.name)
    _check_taken(info, given=given, sent=body)
    return info


async def _send(
    api: Api,
    stream: str,
    name: str,
    config: dict[str, object],
    *,
    action: Literal["create", "update"],
) -> ConsumerInfo:
    """Send a configuration, and return the answer."""
    what = f"consumer {name} of stream {stream}"
    # A single filter stands in the subject, where permissions can see it, if there is room.
    one = cast("str", config.get("filter_subject") or "")
    subject = subjects.consumer_create(stream, name, one)
    if len(api.subject(subject).encode()) > SUBJECT_BYTES_MAX:
        subject = subjects.consumer_create(stream, name)
    body: dict[str, object] = {"stream_name": stream, "config": config, "action": action}
    return ConsumerInfo.from_json(await send_config(api, subject, body, what=what))


def _check_taken(
    info: ConsumerInfo, *, given: Mapping[str, object], sent: Mapping[str, object]
) -> None:
    what = f"consumer {info.name} of stream {info.stream}"
    check_taken(what, CONSUMER_FIELDS, given=given, sent=sent, taken=_config_of(info))


def _name_of(config: ConsumerConfig) -> str:
    if config.name is None:
        raise ConfigError(
            "the consumer has no name", hint="give a name; only create() makes one up"
        )
    return config.name


def _values(config: ConsumerConfig) -> dict[str, object]:
    return {**config.values(), "durable": config.is_durable}


def _config_of(info: ConsumerInfo) -> dict[str, object]:
    return cast("dict[str, object]", info.raw["config"])
