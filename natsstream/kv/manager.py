"""Creates, finds and deletes buckets: `js.kv`.

Law: a bucket of another client is opened as it is, and no call changes a field that is not given.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Literal, Unpack

from natsstream.api.config_fields import BucketFields
from natsstream.api.diff import ConfigChange
from natsstream.api.listing import Listing
from natsstream.api.settings.keywords import shows_fields
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    NotFoundError,
    PermissionDeniedError,
    ServerError,
    StreamNotFoundError,
    TransportError,
)
from natsstream.foreign_names import answers_names
from natsstream.kv.bucket import Bucket
from natsstream.kv.bucket_subjects import BucketSubjects, subjects_of
from natsstream.kv.config import BucketConfig
from natsstream.kv.conventions import BUCKET, SUBJECT_PREFIX, sourced, with_prefix
from natsstream.kv.formats import RAW
from natsstream.kv.key_value import KeyValue
from natsstream.kv.mirror_rules import why_harmful
from natsstream.kv.status import BucketStatus
from natsstream.kv.ttl_check import TtlCheck
from natsstream.streams.endings import Endings
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.streams.views.listing import view_listing
from natsstream.streams.views.manager import ViewManager

_log = logging.getLogger("natsstream.kv")
# Mirrors of mirrors of mirrors: a limit that also ends a circle.
_MIRRORS_MAX = 8


@answers_names("js.kv")
class KeyValueManager(ViewManager[BucketConfig, KeyValue[bytes]]):
    """The key-value buckets of an account; `js.kv`.

    Every call that asks the server raises `TransportError` when no answer comes in time.
    """

    def __init__(self, js: JetStreamContext, endings: Endings) -> None:
        super().__init__(js, BucketConfig)
        self._endings = endings

    @shows_fields(BucketFields)
    async def create(
        self, config: BucketConfig | str, **fields: Unpack[BucketFields]
    ) -> KeyValue[bytes]:
        """Create a bucket, or return the one that has this configuration already.

        Args:
            config: A configuration, or a name with `BucketConfig`'s fields as keywords.
            fields: Fields of `BucketConfig`.

        Raises:
            BucketExistsError: A bucket of this name has another configuration; `differences` has
                the fields.
            NotABucketError: The stream of the bucket's name is no bucket.
            SubjectOverlapError: Another stream captures the bucket's subjects.
            InvalidConfigError: The server refuses a field.
            UnsupportedServerError: The server lacks a field, such as `limit_marker_ttl` before
                2.11.
            ConfigError: A field has no legal value, and nothing was sent; or a mirror would make
                reads of another bucket wrong, such as one with other keys than its origin.
            BucketNameError: The name is not legal; nothing was sent.
            TransportError: No answer; the bucket may exist or not.

        Cost: one round trip, on a cluster with an election; of a mirror two more. Each bucket in
            `sources` adds one, and so does each origin of a mirror among them.
        Source: ADR-8; nats.go jetstream/kv.go CreateKeyValue.
        """
        return await self._create(await self._wanted(config, fields), {})

    @shows_fields(BucketFields)
    async def update(
        self, config: BucketConfig | str, **fields: Unpack[BucketFields]
    ) -> KeyValue[bytes]:
        """Change the given fields and leave all others as the server has them.

        The bucket's `change` has the differences.

        Raises:
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no bucket.
            InvalidConfigError: The server refuses a change.
            UnsupportedServerError: The server lacks a field; see `create`.
            ConfigError: A field has no legal value; nothing was sent.
            TransportError: No answer; the bucket may be changed or not.

        Cost: three round trips, or one if nothing differs; `sources` add some, see `create`.
        """
        return await self._update(await self._wanted(config, fields), {})

    @shows_fields(BucketFields)
    async def ensure(
        self, config: BucketConfig | str, **fields: Unpack[BucketFields]
    ) -> KeyValue[bytes]:
        """Return the bucket with this configuration: create, update or leave it.

        The bucket's `change` says which, with the fields that differed.

        Raises:
            NotABucketError: The stream of the bucket's name is no bucket.
            SubjectOverlapError: Another stream captures the bucket's subjects.
            InvalidConfigError: The server refuses a field or a change.
            UnsupportedServerError: The server lacks a field; see `create`.
            ConfigError: A field has no legal value, and nothing was sent; or a mirror would make
                reads of another bucket wrong; see `create`.
            TransportError: No answer; the bucket may be created or changed, or not.

        Cost: one round trip if nothing differs, else two or three; `sources` add some, see
            `create`.
        """
        return await self._ensure(await self._wanted(config, fields), {})

    @shows_fields(BucketFields)
    async def diff(
        self, config: BucketConfig | str, **fields: Unpack[BucketFields]
    ) -> ConfigChange:
        """Return the change that `ensure` would make, and make none.

        Returns:
            Each field that differs, with the server's value, the wanted one, and the reason if
            servers are known to refuse the change; `print` shows it as a table.

        Raises:
            NotABucketError: The stream of the bucket's name is no bucket.
            ConfigError: A field has no legal value; nothing was sent.

        Cost: one round trip; `sources` add some, see `create`.
        """
        return await self._diff(await self._wanted(config, fields), {})

    async def get(self, name: str) -> KeyValue[bytes]:
        """Return a bucket that exists.

        Raises:
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no bucket.
            BucketNameError: The name is not legal; nothing was sent.

        Cost: one round trip; of a mirror one more.
        """
        return await self._get(name)

    async def delete(self, name: str) -> None:
        """Delete a bucket with all of its keys.

        Raises:
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no bucket; it stays.
            BucketNameError: The name is not legal; nothing was sent.
            TransportError: No answer; the bucket may be deleted or not.

        Cost: two round trips.
        """
        await self._delete(name)

    def list(self, *, on_missing: Literal["raise", "report"] = "raise") -> Listing[BucketStatus]:
        """Return the status of each bucket; read it with `async for`.

        Streams whose name begins with `KV_` but that are no buckets are left out.

        Args:
            on_missing: Servers list streams without their state if these have no leader, or are too
                new for the server. "raise" ends the loop with an error when all others are read;
                "report" puts the buckets among them into the result's `missing` and `offline`.

        Raises:
            ConfigError: `on_missing` has no legal value.
            UnavailableError: Buckets are missing; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one round trip for each 256 streams of the account, since mirrors have no subjects to
        filter by.
        """
        return view_listing(self._js, BUCKET, BucketStatus.from_stream, on_missing)

    def names(self) -> AsyncGenerator[str]:
        """Yield the names of all buckets: of all streams whose name begins with `KV_`.

        Cost: one round trip for each 1,024 streams of the account.
        """
        return self._names()

    async def _wanted(
        self, config: BucketConfig | str, fields: Mapping[str, object]
    ) -> BucketConfig:
        wanted = BucketConfig.from_call(config, fields)
        if not wanted.sources:
            return wanted
        sources = [await self._located(each, wanted.name) for each in wanted.sources]
        return replace(wanted, sources=sources)

    async def _located(self, source: StreamSource, bucket: str) -> StreamSource:
        """Return a source with the subjects of its keys if it is a mirror, which has its origin's.

        One in another domain or account stays as it is.
        """
        if source.transforms or source.external is not None or source.domain is not None:
            return source
        try:
            stream = await self._js.streams.get(with_prefix(source.name))
        except (ServerError, TransportError) as error:  # Only a mirror has to be looked up.
            return await self._as_held(source, bucket, error)
        if stream.cached.config.mirror is None:
            return source
        return sourced(source, bucket, (await self._subjects(stream)).read_prefix)

    async def _as_held(
        self, source: StreamSource, bucket: str, error: NatsStreamError
    ) -> StreamSource:
        """Return a source with the subjects that the bucket copies from it already, if it does."""
        try:
            held = (await self._js.streams.get(BUCKET.stream_of(bucket))).cached.config.sources
        except (NotFoundError, PermissionDeniedError):
            held = None
        for each in held or ():
            theirs = each.transforms[0].source if each.transforms else ""
            if each.name == with_prefix(source.name) and theirs.startswith(SUBJECT_PREFIX):
                return sourced(source, bucket, ".".join(theirs.split(".")[:2]) + ".")
        _log.warning(
            "bucket %s: its source %s cannot be looked up; of a mirror nothing is copied: %s",
            bucket,
            source.name,
            error.message,
        )
        return source

    async def _open(self, stream: Stream) -> KeyValue[bytes]:
        subjects = await self._subjects(stream)
        ttls = TtlCheck(stream)
        return KeyValue(Bucket(self._js, stream, subjects, self._endings, ttls), RAW)

    async def _subjects(self, stream: Stream, depth: int = 0) -> BucketSubjects:
        """Return the subjects of a bucket, also of a mirror of a mirror."""
        config, origin = stream.cached.config, None
        mirror = config.mirror
        if mirror is not None and mirror.external is None and depth < _MIRRORS_MAX:
            try:
                origin = await self._subjects(await self._js.streams.get(mirror.name), depth + 1)
            except (NotFoundError, PermissionDeniedError):  # The mirror can still be read.
                origin = None
        return subjects_of(config, self._js.api_prefix, origin)

    async def _check_new(self, wanted: BucketConfig) -> None:
        """Refuse a new mirror that would answer reads of another bucket, and wrongly."""
        why = await self._why_harmful(wanted.to_stream())
        if not why:
            return
        try:  # An existing one does its harm already; opening it adds none.
            await self._js.streams.get(BUCKET.stream_of(wanted.name))
        except StreamNotFoundError:
            raise _harmful(wanted.name, why) from None

    async def _check_change(
        self, wanted: BucketConfig, held: StreamConfig, changes: StreamConfig
    ) -> None:
        if held.mirror is None and changes.mirror is not None and changes.mirror.to_json():
            raise ConfigError(
                f"bucket {wanted.name} cannot become a mirror: it has keys of its own",
                hint="create a mirror under a new name; or add copies of keys with sources=[...]",
            )
        if held.mirror is None or changes.max_age is None:
            return
        why = await self._why_harmful(held.with_json(changes.to_json()))
        if why:
            raise _harmful(wanted.name, why)

    async def _why_harmful(self, mirroring: StreamConfig) -> str:
        mirror = mirroring.mirror
        if mirror is None:
            return ""
        try:
            named = await self._js.streams.get(mirror.name)
        except PermissionDeniedError:
            return ""
        except NotFoundError:
            if mirror.external is None and mirror.domain is None:
                # No error: it may be made later.
                _log.warning(
                    "bucket %s mirrors bucket %s, which does not exist here: until it does, the "
                    "mirror gets no keys and takes no writes",
                    BUCKET.name_of(mirroring.name),
                    BUCKET.name_of(mirror.name),
                )
            return ""
        return why_harmful(mirroring, named.cached.config)


def _harmful(bucket: str, why: str) -> ConfigError:
    return ConfigError(
        f"mirror {bucket} would make reads wrong: {why}",
        hint="give it the origin's ttl and all keys; or use sources=[...]",
    )
