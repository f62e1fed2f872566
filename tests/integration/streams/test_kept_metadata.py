"""Metadata that this library writes: changes keep it unless they name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.api.control import CONTROL_KEY, control_of

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


async def metadata_of(js: JetStream, name: str) -> dict[str, str]:
    """Return a stream's metadata without the server's."""
    held = (await js.streams.get(name)).cached.config.metadata or {}
    return {key: value for key, value in held.items() if not key.startswith("_nats.")}


async def test_ensure_and_update_keep_the_control_key_of_a_producer(
    js: JetStream, stream_name: str
) -> None:
    """Without it readers get the producer's state records as messages."""
    subjects = [f"{stream_name}.*", f"{stream_name}.$ctl.>"]
    stream = await js.streams.ensure(stream_name, subjects=subjects, metadata={"team": "risk"})
    subject = f"{stream_name}.a"
    async with await js.producer(stream_name, "p", subject=subject, update_stream=True) as producer:
        producer.append(b"1")
    own = await metadata_of(js, stream_name)
    assert own.keys() == {"team", CONTROL_KEY}

    again = await js.streams.ensure(stream_name, subjects=subjects, metadata={"team": "risk"})
    assert again.change is not None
    assert again.change.action == "unchanged"
    changed = await js.streams.update(stream_name, metadata={"desk": "7"})
    assert changed.change is not None
    assert [(f.before, f.after) for f in changed.change.fields] == [
        ({"team": "risk"}, {"desk": "7"})
    ]
    assert await metadata_of(js, stream_name) == {"desk": "7", CONTROL_KEY: own[CONTROL_KEY]}
    await js.streams.update(stream_name, metadata={})
    assert await metadata_of(js, stream_name) == {CONTROL_KEY: own[CONTROL_KEY]}
    assert [message.data async for message in stream.read()] == [b"1"]


async def test_named_key_of_the_library_is_changed(js: JetStream, stream_name: str) -> None:
    subjects = [f"{stream_name}.*", f"{stream_name}.$ctl.>"]
    prefixes = [f"{stream_name}.$ctl.one", f"{stream_name}.$ctl.two"]
    for prefix in prefixes:
        stream = await js.streams.ensure(
            stream_name, subjects=subjects, metadata={CONTROL_KEY: prefix}
        )
        again = await js.streams.ensure(stream_name, metadata={CONTROL_KEY: prefix})
        assert again.change is not None
        assert again.change.action == "unchanged"
        control = control_of((await stream.info()).config)
        assert control is not None
        assert control.prefix == prefix


async def test_bucket_keeps_the_keys_of_the_library_too(js: JetStream, stream_name: str) -> None:
    await js.kv.create(stream_name, metadata={"conat.path": "a", "natsstream.x": "1", "team": "b"})
    await js.kv.ensure(stream_name, metadata={"team": "c"})
    assert await metadata_of(js, f"KV_{stream_name}") == {
        "conat.path": "a",
        "natsstream.x": "1",
        "team": "c",
    }


async def test_copy_with_metadata_of_its_own_keeps_the_control_key(
    js: JetStream, stream_name: str
) -> None:
    control = f"{stream_name}.$ctl.one"
    await js.streams.ensure(
        stream_name, subjects=[f"{stream_name}.>"], metadata={CONTROL_KEY: control, "team": "risk"}
    )
    for name, metadata in (("c", {"team": "copy"}), ("d", {}), ("e", None)):
        copy = f"{stream_name}_{name}"
        await js.streams.copy(stream_name, copy, subjects=[f"{copy}.>"], metadata=metadata)
        team = {"team": "risk"} if metadata is None else metadata
        assert await metadata_of(js, copy) == {CONTROL_KEY: control, **team}
