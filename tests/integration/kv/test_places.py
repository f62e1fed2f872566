"""Buckets elsewhere: in another domain, in another account, mirrored, copied from.

A bucket is the same wherever it is reached from: what one writes, the others read, and nobody
touches another bucket of the same name.
"""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream import ExternalStream, StreamSource, SubjectTransform, connect
from natsstream.errors import ConfigError, InvalidConfigError, NoRespondersError
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.leaves import start_hub, start_leaf, wait_for_link

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator
    from pathlib import Path

    from natsstream import Connection, JetStream, KeyValue

pytestmark = pytest.mark.asyncio

HUB = ExternalStream(api="$JS.hub.API")
# ADR-19's configuration, with the prefixes under which an account imports another one's JetStream.
ACCOUNTS = """
accounts {
  A {
    users: [{user: a, password: a}], jetstream: enabled
    exports: [{service: "$JS.API.>", response_type: stream}, {service: "$KV.>"}]
  }
  I {
    users: [{user: i, password: i}], jetstream: enabled
    imports: [
      {service: {account: A, subject: "$JS.API.>"}, to: "fromA.>"}
      {service: {account: A, subject: "$KV.>"}, to: "fromA.$KV.>"}
    ]
  }
}
"""


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[NatsServer, NatsServer]]:
    """A hub, and a leaf node of it with a JetStream of its own."""
    with ExitStack() as servers:
        hub = start_hub(servers)
        yield hub, start_leaf(servers, hub)


@asynccontextmanager
async def opened(connection: Connection) -> AsyncGenerator[JetStream]:
    """Open a connection, and wait until its JetStream answers: a leaf may not be linked yet."""
    async with connection as js:
        await wait_for_link(js)
        yield js


@pytest_asyncio.fixture
async def at_hub(sites: tuple[NatsServer, NatsServer]) -> AsyncIterator[JetStream]:
    """A connection to the hub."""
    async with opened(connect(sites[0].url)) as js:
        yield js


@pytest_asyncio.fixture
async def at_leaf(sites: tuple[NatsServer, NatsServer]) -> AsyncIterator[JetStream]:
    """A connection to the leaf node's own JetStream."""
    async with opened(connect(sites[1].url)) as js:
        yield js


@pytest_asyncio.fixture
async def through_leaf(sites: tuple[NatsServer, NatsServer]) -> AsyncIterator[JetStream]:
    """A connection to the hub's JetStream by way of the leaf node."""
    async with opened(connect(sites[1].url, domain="hub")) as js:
        yield js


async def arrives(bucket: KeyValue, key: str, value: bytes) -> None:
    """Wait until a bucket has a key's value: mirrors and copies lag behind."""

    async def has_come() -> bool:
        entry = await bucket.get(key)
        return entry is not None and entry.value == value

    assert await eventually_async(has_come, within_s=30)


async def keys_of(bucket: KeyValue, *filters: str) -> list[str]:
    return sorted([key async for key in bucket.keys(*filters)])


async def check_everything(bucket: KeyValue, origin: KeyValue) -> None:
    """Use each operation through one bucket, and see it in the one where the keys are."""
    assert await bucket.put("a.b", b"1") == 1
    assert await bucket.create("c", b"2") == 2
    assert await bucket.update("c", b"3", revision=2) == 3
    await bucket.put("gone", b"4")
    await bucket.delete("gone")
    await bucket.put("purged", b"5")
    await bucket.purge("purged")

    for each in (bucket, origin):
        entry = await each.get("a.b")
        assert entry is not None
        assert (entry.key, entry.value, entry.revision) == ("a.b", b"1", 1)
        assert await keys_of(each) == ["a.b", "c"]
        assert await keys_of(each, "a.>") == ["a.b"]
        history = [(entry.operation, entry.value) async for entry in each.history("c")]
        assert history == [("PUT", b"2"), ("PUT", b"3")]
        async with each.watch() as watch:
            seen = [(entry.key, entry.operation) async for entry in watch.initial()]
        assert seen == [("a.b", "PUT"), ("c", "PUT"), ("gone", "DEL"), ("purged", "PURGE")]


@pytest.mark.proves("1d", "mirror & API-prefix aware reads/writes (ADR-19)")
async def test_bucket_of_another_domain_is_used_like_one_s_own(
    at_hub: JetStream, at_leaf: JetStream, through_leaf: JetStream, stream_name: str
) -> None:
    """The leaf has a bucket of the same name, which must not be touched."""
    own = await at_leaf.kv.create(stream_name)
    origin = await at_hub.kv.create(stream_name, history=5)
    bucket = await through_leaf.kv.get(stream_name)

    await check_everything(bucket, origin)

    assert (await own.status()).revision == 0
    assert stream_name in [status.name async for status in through_leaf.kv.list()]


async def test_bucket_is_made_in_another_domain(
    at_hub: JetStream, through_leaf: JetStream, stream_name: str
) -> None:
    bucket = await through_leaf.kv.ensure(stream_name, history=2)
    await bucket.put("k", b"v")

    entry = await (await at_hub.kv.get(stream_name)).get("k")

    assert entry is not None
    assert entry.value == b"v"


@pytest.mark.proves("1d", "mirror & API-prefix aware reads/writes (ADR-19)")
async def test_bucket_of_another_account_is_used_through_an_import(stream_name: str) -> None:
    with NatsServer(config=ACCOUNTS) as server:
        own_url = server.url.replace("nats://", "nats://a:a@")
        url = server.url.replace("nats://", "nats://i:i@")
        async with (
            connect(own_url) as theirs,
            connect(url, api_prefix="fromA") as js,
            connect(url) as mine,
        ):
            own = await mine.kv.create(stream_name)
            origin = await theirs.kv.create(stream_name, history=5)
            bucket = await js.kv.get(stream_name)

            await check_everything(bucket, origin)

            assert (await own.status()).revision == 0


@pytest.mark.proves("1d", "mirror / sources / republish")
async def test_mirror_is_read_here_and_written_at_its_origin(
    js: JetStream, stream_name: str
) -> None:
    name = f"{stream_name}_copy"
    origin = await js.kv.create(stream_name)
    await origin.put("a", b"1")
    mirror = await js.kv.create(name, mirror=stream_name)
    await arrives(mirror, "a", b"1")

    revision = await mirror.put("b", b"2")
    await arrives(mirror, "b", b"2")

    entry = await origin.get("b")
    assert entry is not None
    assert entry.revision == revision == 2
    # What is read comes from the mirror's own stream, and is told as the mirror's.
    found = await (await js.kv.get(name)).get("b")
    assert found is not None
    assert (found.bucket, found.key, found.revision) == (name, "b", 2)
    status = await mirror.status()
    assert (status.values, status.keys) == (2, 2)
    assert status.mirror is not None
    assert status.mirror.name == f"KV_{stream_name}"
    assert await keys_of(mirror) == ["a", "b"]


async def test_mirror_of_a_mirror_is_written_at_the_origin_of_both(
    js: JetStream, stream_name: str
) -> None:
    second, third = f"{stream_name}_2", f"{stream_name}_3"
    origin = await js.kv.create(stream_name)
    await js.kv.create(second, mirror=stream_name)
    mirror = await js.kv.create(third, mirror=second)

    await mirror.put("a", b"1")
    await arrives(mirror, "a", b"1")

    entry = await origin.get("a")
    assert entry is not None
    assert entry.value == b"1"


async def test_mirror_whose_origin_is_gone_is_still_read(js: JetStream, stream_name: str) -> None:
    name = f"{stream_name}_copy"
    origin = await js.kv.create(stream_name)
    await origin.put("a", b"1")
    await arrives(await js.kv.create(name, mirror=stream_name), "a", b"1")
    await js.kv.delete(stream_name)

    mirror = await js.kv.get(name)

    entry = await mirror.get("a")
    assert entry is not None
    assert entry.value == b"1"


async def test_mirror_of_a_bucket_that_does_not_exist_is_reported_by_name(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, origin = f"{stream_name}_copy", f"{stream_name}_origin"
    with caplog.at_level("WARNING", "natsstream.kv"):
        mirror = await js.kv.ensure(name, mirror=origin)
    with pytest.raises(NoRespondersError) as caught:
        await mirror.put("a", b"1")

    assert f"{name} mirrors bucket {origin}, which does not exist" in caplog.text
    assert f"bucket {origin}, is away or does not exist" in caught.value.hint


@asynccontextmanager
async def restricted_by(rules: str) -> AsyncGenerator[tuple[JetStream, JetStream]]:
    """Give a user who may do all on a server, and one who may publish by rules."""
    users = (
        f"{{user: a, password: a}}, {{user: b, password: b, permissions: {{publish: {{{rules}}}}}}}"
    )
    with NatsServer(config=f"authorization {{ users: [{users}] }}") as server:
        async with (
            connect(server.url.replace("nats://", "nats://a:a@")) as js,
            connect(server.url.replace("nats://", "nats://b:b@")) as restricted,
        ):
            yield js, restricted


async def test_mirror_opens_for_a_user_who_may_not_ask_for_its_origin(stream_name: str) -> None:
    name = f"{stream_name}_copy"
    rules = f'deny: ["$JS.API.STREAM.INFO.KV_{stream_name}"]'
    async with restricted_by(rules) as (js, restricted):
        await js.kv.create(stream_name)
        await js.kv.create(name, mirror=stream_name)

        mirror = await restricted.kv.get(name)

        await mirror.put("a", b"1")
        await arrives(mirror, "a", b"1")


async def test_mirror_and_sources_of_a_replicated_bucket(
    cluster_js: JetStream, stream_name: str
) -> None:
    js, name = cluster_js, f"{stream_name}_copy"
    origin = await js.kv.ensure(stream_name, replicas=3)
    mirror = await js.kv.create(name, mirror=stream_name, replicas=3)
    again = await js.kv.create(name, mirror=stream_name, replicas=3)
    whole = await js.kv.ensure(f"{stream_name}_all", sources=[stream_name], replicas=3)

    revision = await mirror.put("a", b"1")
    await arrives(mirror, "a", b"1")
    await arrives(whole, "a", b"1")

    entry = await origin.get("a", consistent=True)
    assert entry is not None
    assert (entry.revision, entry.value) == (revision, b"1")
    assert again.config == mirror.config == (await js.kv.get(name)).config
    assert not (await js.kv.ensure(again.config)).change
    assert (await js.kv.update(name, history=2)).config.history == 2
    assert (await mirror.status()).replicas == 3
    for bucket in (whole, mirror, origin):
        await js.kv.delete(bucket.name)


@pytest.mark.proves("1d", "mirror & API-prefix aware reads/writes (ADR-19)")
async def test_mirror_in_another_domain_writes_to_the_hub(
    at_hub: JetStream, at_leaf: JetStream, stream_name: str
) -> None:
    name = f"{stream_name}_copy"
    origin = await at_hub.kv.create(stream_name)
    await origin.put("a", b"1")
    source = StreamSource(name=stream_name, external=HUB)
    mirror = await at_leaf.kv.create(name, mirror=source)
    await arrives(mirror, "a", b"1")

    assert await mirror.put("b", b"2") == 2
    await arrives(mirror, "b", b"2")

    entry = await origin.get("b")
    assert entry is not None
    assert entry.revision == 2
    again = await at_leaf.kv.ensure(name, mirror=StreamSource(name=stream_name, domain="hub"))
    assert not again.change


async def test_mirror_that_maps_its_keys_is_read_under_them(
    at_hub: JetStream, at_leaf: JetStream, stream_name: str
) -> None:
    name = f"{stream_name}_copy"
    mapping = SubjectTransform(source=f"$KV.{stream_name}.>", destination=f"$KV.{name}.>")
    origin = await at_hub.kv.create(stream_name)
    source = StreamSource(name=stream_name, transforms=[mapping], external=HUB)
    mirror = await at_leaf.kv.create(name, mirror=source)

    await mirror.put("a", b"1")
    await arrives(mirror, "a", b"1")

    assert await keys_of(mirror) == ["a"]
    assert await origin.get("a") is not None


async def test_mirror_that_keeps_less_makes_reads_of_its_origin_wrong(
    js: JetStream, stream_name: str
) -> None:
    """Why `js.kv` refuses the next test's mirrors: this one is made past it."""
    origin = await js.kv.create(stream_name)
    for key in ("a", "b", "c"):
        await origin.put(key, b"1")
    await js.streams.create(
        f"KV_{stream_name}_copy",
        mirror=StreamSource(name=f"KV_{stream_name}", start_seq=2),
        max_msgs_per_subject=1,
        allow_direct=True,
        mirror_direct=True,
    )

    async def is_denied() -> bool:
        return await origin.get("a") is None

    assert await eventually_async(is_denied, within_s=30)
    assert await origin.get("a", consistent=True) is not None


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("start_seq", {"mirror": {"opt_start_seq": 2}}),
        ("filter", {"mirror": {"filter_subject": "$KV.{}.a.>"}}),
        ("transforms", {"mirror": {"subject_transforms": [{"src": "$KV.{}.>", "dest": "x.>"}]}}),
        ("ttl", {"mirror": {}, "ttl": 60}),
        ("ttl", {"mirror": {}, "ttl": 7_200}),
        ("ttl", {"mirror": {}, "ttl": None}),
    ],
)
async def test_mirror_that_keeps_other_keys_than_its_origin_is_not_made(
    js: JetStream, stream_name: str, field: str, options: dict[str, Any]
) -> None:
    await js.kv.create(stream_name, ttl=3_600)
    source = {"name": stream_name, **options["mirror"]}
    fields: dict[str, Any] = {"ttl": 3_600, **options, "mirror": source}

    for call in (js.kv.create, js.kv.ensure):
        with pytest.raises(ConfigError, match=f"by its {field} it has other keys"):
            await call(f"{stream_name}_copy", **fields)

    assert f"{stream_name}_copy" not in [name async for name in js.kv.names()]


async def test_key_that_expires_at_the_origin_is_gone_from_the_mirror(
    js: JetStream, stream_name: str
) -> None:
    origin = await js.kv.create(stream_name, limit_marker_ttl=60)
    mirror = await js.kv.create(f"{stream_name}_copy", mirror=stream_name)
    first = await mirror.create("a", b"1")
    await arrives(mirror, "a", b"1")
    await mirror.update("a", b"1", revision=first, ttl=1)  # From here on its time counts.

    async def is_gone() -> bool:
        return await mirror.get("a") is None

    assert await eventually_async(is_gone, within_s=30)
    revision = await mirror.create("a", b"2")
    await arrives(mirror, "a", b"2")
    entry = await origin.get("a", consistent=True)
    assert entry is not None
    assert entry.revision == revision


async def test_mirror_keeps_its_origin_s_ttl_through_changes(
    js: JetStream, stream_name: str
) -> None:
    name = f"{stream_name}_copy"
    await js.kv.create(stream_name, ttl=60)
    await js.kv.create(name, mirror=stream_name, ttl=60)

    with pytest.raises(ConfigError, match="by its ttl it has other keys"):
        await js.kv.update(name, ttl=30)
    await js.kv.update(stream_name, ttl=90)
    changed = await js.kv.update(name, ttl=90, description="d")

    assert (changed.config.ttl, changed.config.description) == (90, "d")


async def test_mirror_of_another_domain_is_not_made_beside_a_bucket_of_the_origin_s_name(
    at_hub: JetStream, at_leaf: JetStream, stream_name: str
) -> None:
    """It would answer half of the reads of that bucket, with the other domain's values."""
    await at_hub.kv.create(stream_name)
    await at_leaf.kv.create(stream_name)
    source = StreamSource(name=stream_name, external=HUB)

    with pytest.raises(ConfigError, match="whose reads it would answer"):
        await at_leaf.kv.create(f"{stream_name}_copy", mirror=source)

    quiet = {"mirror_direct": False}
    made = await at_leaf.kv.create(f"{stream_name}_copy", mirror=source, extra=quiet)
    assert made.config.extra == quiet
    again = await at_leaf.kv.create(f"{stream_name}_copy", mirror=source, extra=quiet)
    assert again.config == made.config


@pytest.mark.proves("1d", "mirror / sources / republish")
async def test_sources_bring_their_keys_and_the_bucket_has_its_own(
    js: JetStream, stream_name: str
) -> None:
    first = await js.kv.create(f"{stream_name}_1")
    second = await js.kv.create(f"{stream_name}_2")
    whole = await js.kv.create(stream_name, sources=[first.name, second.name])

    await first.put("a", b"1")
    await second.put("b", b"2")
    await whole.put("c", b"3")
    await arrives(whole, "a", b"1")
    await arrives(whole, "b", b"2")

    assert await keys_of(whole) == ["a", "b", "c"]
    assert await first.get("c") is None
    assert {each.name for each in (await whole.status()).sources} == {
        f"KV_{first.name}",
        f"KV_{second.name}",
    }


@pytest.mark.parametrize("depth", [1, 2])
async def test_mirror_as_a_source_brings_its_keys(
    js: JetStream, stream_name: str, depth: int
) -> None:
    """It keeps them under its origin's subjects; a mirror of a mirror as well."""
    names = [stream_name, f"{stream_name}_1", f"{stream_name}_2"][: depth + 1]
    origin = await js.kv.create(stream_name)
    for before, name in pairwise(names):
        await js.kv.create(name, mirror=before)
    for key in ("eu.a", "us.a"):
        await origin.put(key, b"1")
    whole: dict[str, Any] = {"sources": [names[-1]]}
    part: dict[str, Any] = {"sources": [StreamSource(name=names[-1], filter="*.a")]}

    for fields, name in ((whole, f"{stream_name}_whole"), (part, f"{stream_name}_part")):
        copy = await js.kv.ensure(name, **fields)

        await arrives(copy, "us.a", b"1")
        assert await keys_of(copy) == ["eu.a", "us.a"]
        assert (await js.kv.ensure(name, **fields)).change.action == "unchanged"
        assert not await js.kv.diff(name, **fields)
        await js.kv.create(name, **fields)
        assert not (await js.kv.update(name, **fields)).change


async def test_mirror_becomes_a_source_by_an_update(js: JetStream, stream_name: str) -> None:
    mirror, copy = f"{stream_name}_m", f"{stream_name}_copy"
    await (await js.kv.create(stream_name)).put("a", b"1")
    await js.kv.create(mirror, mirror=stream_name)
    await js.kv.create(copy)

    await arrives(await js.kv.update(copy, sources=[mirror]), "a", b"1")


@pytest.mark.parametrize(
    "route", [{"domain": "hub"}, {"external": HUB}], ids=["domain", "external"]
)
async def test_source_elsewhere_is_no_mirror_of_its_name_here(
    at_hub: JetStream, at_leaf: JetStream, stream_name: str, route: dict[str, Any]
) -> None:
    name = f"{stream_name}_m"
    await at_leaf.kv.create(stream_name)
    await at_leaf.kv.create(name, mirror=stream_name)
    await (await at_hub.kv.create(name)).put("a", b"1")

    copy = await at_leaf.kv.create(
        f"{stream_name}_copy", sources=[StreamSource(name=name, **route)]
    )

    await arrives(copy, "a", b"1")


async def test_source_may_be_made_later(
    js: JetStream, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, copy = f"{stream_name}_later", f"{stream_name}_copy"
    await js.kv.create(copy, sources=[name])
    assert f"bucket {copy}: its source {name} cannot be looked up" in caplog.text

    await js.kv.create(name)

    assert not (await js.kv.ensure(copy, sources=[name])).change


async def test_mirror_of_another_domain_as_a_source_brings_its_keys(
    at_hub: JetStream, at_leaf: JetStream, stream_name: str
) -> None:
    """Also into a bucket that has the origin's name, here."""
    await (await at_hub.kv.create(stream_name)).put("a", b"1")
    name = f"{stream_name}_m"
    await at_leaf.kv.create(name, mirror=StreamSource(name=stream_name, external=HUB))

    await arrives(await at_leaf.kv.create(f"{stream_name}_copy", sources=[name]), "a", b"1")
    await arrives(await at_leaf.kv.create(stream_name, sources=[name]), "a", b"1")


async def test_bucket_is_made_by_a_user_who_may_not_ask_for_its_source(
    stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A copy of a mirror that exists already stays as it is, too."""
    name, mirror = f"{stream_name}_copy", f"{stream_name}_m"
    rules = f'deny: ["$JS.API.STREAM.INFO.KV_{stream_name}", "$JS.API.STREAM.INFO.KV_{mirror}"]'
    async with restricted_by(rules) as (js, restricted):
        await (await js.kv.create(stream_name)).put("a", b"1")

        for call in (restricted.kv.create, restricted.kv.ensure):
            await arrives(await call(name, sources=[stream_name]), "a", b"1")
        assert caplog.text.count(f"its source {stream_name} cannot be looked up") == 1

        await js.kv.create(mirror, mirror=stream_name)
        await js.kv.update(name, sources=[mirror])
        assert not (await restricted.kv.ensure(name, sources=[mirror])).change
        part = [StreamSource(name=mirror, filter="b.>")]
        await restricted.kv.update(name, sources=part)
        assert not await js.kv.diff(name, sources=part)


@pytest.mark.parametrize("whole_subject", [False, True])
async def test_filter_of_a_source_copies_a_part_of_the_keys(
    js: JetStream, stream_name: str, *, whole_subject: bool
) -> None:
    origin, copy = await js.kv.create(stream_name), f"{stream_name}_copy"
    for key in ("eu.a", "us.a", "us.b.size", "us.b.name"):
        await origin.put(key, key.encode())
    prefix = f"$KV.{stream_name}." if whole_subject else ""
    sources = [
        StreamSource(name=stream_name, filter=f"{prefix}{each}") for each in ("eu.>", "*.*.size")
    ]

    bucket = await js.kv.ensure(copy, sources=sources)

    await arrives(bucket, "eu.a", b"eu.a")
    await arrives(bucket, "us.b.size", b"us.b.size")
    assert await keys_of(bucket) == ["eu.a", "us.b.size"]
    assert (await js.kv.ensure(copy, sources=sources)).change.action == "unchanged"
    only = await js.kv.update(copy, sources=[StreamSource(name=stream_name, filter="us.a")])
    await arrives(only, "us.a", b"us.a")
    assert not await js.kv.diff(only.config)


async def test_bucket_with_keys_is_not_made_a_mirror(js: JetStream, stream_name: str) -> None:
    await js.kv.create(stream_name)
    await js.kv.create(f"{stream_name}_2")

    for call in (js.kv.update, js.kv.ensure):
        with pytest.raises(ConfigError, match="cannot become a mirror"):
            await call(stream_name, mirror=f"{stream_name}_2")

    (field,) = (await js.kv.diff(stream_name, mirror=f"{stream_name}_2")).fields
    assert "not added" in field.refusal


async def test_lost_origin_is_made_again_from_its_mirror(
    js: JetStream, stream_name: str, tmp_path: Path
) -> None:
    """As the guide of buckets says, step by step."""
    name, path = f"{stream_name}_dr", tmp_path / "backup"
    origin = await js.kv.create(stream_name, history=5)
    for value in (b"1", b"2"):
        await origin.put("a", value)
    mirror = await js.kv.create(name, mirror=stream_name)
    await arrives(mirror, "a", b"2")
    assert len([entry async for entry in mirror.history("a")]) == 1
    await js.kv.delete(stream_name)

    with pytest.raises(NoRespondersError):
        await mirror.put("a", b"3")
    with pytest.raises(InvalidConfigError, match="detected cycle"):
        await js.kv.create(stream_name, sources=[name])
    await arrives(await js.kv.create(f"{stream_name}_2", sources=[name]), "a", b"2")
    await js.kv.delete(f"{stream_name}_2")

    await mirror.stream.backup(path)
    await js.streams.restore(
        path,
        name=f"KV_{stream_name}",
        subjects=[f"$KV.{stream_name}.>"],
        mirror={},
    )

    again = await js.kv.ensure(stream_name, history=5)
    entry = await again.get("a")
    assert entry is not None
    assert (entry.value, entry.revision) == (b"2", 2)
    assert again.config == origin.config
    assert await again.update("a", b"3", revision=2) == 3
    await arrives(mirror, "a", b"3")


async def test_source_of_the_same_name_in_another_domain_keeps_its_keys(
    at_hub: JetStream, at_leaf: JetStream, stream_name: str
) -> None:
    origin = await at_hub.kv.create(stream_name)
    copy = await at_leaf.kv.create(
        stream_name, sources=[StreamSource(name=stream_name, external=HUB)]
    )

    await origin.put("a", b"1")
    await arrives(copy, "a", b"1")
    await copy.put("b", b"2")

    assert await keys_of(copy) == ["a", "b"]
    assert await keys_of(origin) == ["a"]


async def test_plain_stream_can_be_a_source_by_transforms_of_its_own(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(f"{stream_name}_events", subjects=[f"{stream_name}.done.*"])
    mapping = SubjectTransform(
        source=f"{stream_name}.done.*", destination=f"$KV.{stream_name}.{{{{wildcard(1)}}}}"
    )
    source = StreamSource(name=f"{stream_name}_events", transforms=[mapping])
    bucket = await js.kv.create(stream_name, sources=[source])

    await js.publish(f"{stream_name}.done.o-1", b"v")

    await arrives(bucket, "o-1", b"v")
