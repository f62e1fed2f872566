"""The same nouns without async: one loop in a thread, and everything else borrowed from it.

`with natsstream.blocking.connect(url) as js:` gives the context of `natsstream.connect` with `for`
instead of `async for` and no `await`. There is no second set of classes: each object here stands
for one of the async ones and runs its methods on the loop. Every public name of `natsstream` but
`attach` is here too: values, errors and events as they are, classes of objects as their proxies.

A function that an async method would await, such as a consumer's handler, is a plain one here; it
runs in a thread of its own, may block, and may use everything of this door.

Objects may be used from several threads. After `close`, and in a process that was forked off,
their methods raise.

Law: leaving the context frees the loop and its thread, also after an error or Ctrl-C in the middle
of a read.
"""

# The types are in `__init__.pyi`, which `scripts/generate_blocking_types` writes from the async
# signatures.
from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, NoReturn

import natsstream
from natsstream import connection
from natsstream.blocking.portal import Portal
from natsstream.blocking.proxies import find_proxy, wrap
from natsstream.errors import UsageError
from natsstream.foreign_names import name_here

# Where the classes live that `__init__.pyi` names beside Connection; each is found when asked for.
# Those without a place in `natsstream` itself need one here.
_HOMES = {
    "Advisories": "natsstream.core.advisories.reader",
    "CachedKeyValue": "natsstream.kv.cache.cached",
    "ChainedPublisher": "natsstream.streams.chain.writer",
    "CoreStream": "natsstream.conat.core_stream",
    "CoreStreams": "natsstream.conat.manager",
    "AKV": "natsstream.conat.akv",
    "AKVs": "natsstream.conat.layers",
    "AStream": "natsstream.conat.astream",
    "AStreams": "natsstream.conat.layers",
    "ChangeFeed": "natsstream.conat.change_feed",
    "DKO": "natsstream.conat.dko",
    "DKOs": "natsstream.conat.layers",
    "Inventory": "natsstream.conat.inventory",
    "Inventories": "natsstream.conat.layers",
    "IdempotentProducer": "natsstream.producer.producer",
    "Producers": "natsstream.producer.manager",
    "DKV": "natsstream.conat.dkv",
    "DKVs": "natsstream.conat.layers",
    "DStream": "natsstream.conat.dstream",
    "DStreams": "natsstream.conat.layers",
    "ChunkReader": "natsstream.streams.chunks.getting",
    "Chunks": "natsstream.streams.chunks.chunks",
    "ConnectionEvents": "natsstream.core.connection_events",
    "Consumer": "natsstream.streams.consumers.consumer",
    "ConsumerManager": "natsstream.streams.consumers.manager",
    "Core": "natsstream.core.core",
    "CoreMessage": "natsstream.core.message",
    "CoreSubscription": "natsstream.core.subscription",
    "Counters": "natsstream.streams.counters.counters",
    "DeadLetterQueue": "natsstream.consume.dead_letters.queue",
    "DeadLetters": "natsstream.consume.dead_letters.manager",
    "DeliveredMessage": "natsstream.consume.delivery.delivered",
    "DirectReads": "natsstream.read.direct.reads",
    "Election": "natsstream.kv.locks.elections",
    "FetchedMessages": "natsstream.consume.pull.fetching",
    "JetStream": "natsstream.jetstream",
    "KeyValue": "natsstream.kv.key_value",
    "KeyValueManager": "natsstream.kv.manager",
    "KeyValues": "natsstream.conat.views",
    "Latest": "natsstream.read.latest.latest",
    "Lock": "natsstream.kv.locks.locks",
    "ConsumerMessages": "natsstream.consume.pull.messages",
    "Messages": "natsstream.conat.views",
    "RawMessages": "natsstream.conat.views",
    "Listing": "natsstream.api.listing",
    "ObjectListing": "natsstream.objects.watch",
    "ObjectReader": "natsstream.objects.reader",
    "ObjectStore": "natsstream.objects.store",
    "ObjectStoreManager": "natsstream.objects.manager",
    "ObjectWatch": "natsstream.objects.watch",
    "OrderedConsumer": "natsstream.read.ordered",
    "Processing": "natsstream.consume.delivery.delivered",
    "Publisher": "natsstream.publish.publisher",
    "PushMessages": "natsstream.consume.push.subscription",
    "Stream": "natsstream.streams.stream",
    "StreamManager": "natsstream.streams.manager",
    "StreamRange": "natsstream.read.ranges",
    "StreamSchedules": "natsstream.streams.schedules",
    "Watch": "natsstream.kv.watch",
    "Worker": "natsstream.consume.work.worker",
}

# An attached connection lives on the loop of the application, which is async.
_BORROWED = frozenset(natsstream.__all__) - {"Connection", "attach", "connect"}


class Connection:
    """A connection that is not open yet: `with` opens it and gives its JetStream context."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._connection = connection.connect(*args, **options)
        self._portal: Portal | None = None

    def open(self) -> Any:
        """Connect and return the JetStream context; `close` ends it."""
        if self._portal is not None and not self._portal.is_stopped:
            raise UsageError("the connection is open", hint="connect() again for a second one")
        self._portal = Portal(self._connection)
        return wrap(self._portal.open(), self._portal)

    def close(self) -> None:
        """Close the connection and end the loop's thread; closing twice is fine."""
        if self._portal is not None:
            self._portal.stop()

    def __enter__(self) -> Any:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # Type checkers report these mistakes by themselves.

        def __await__(self) -> NoReturn:
            raise _async_mistake("nothing here is awaited")

        def __aenter__(self) -> NoReturn:
            raise _async_mistake("a blocking connection is opened with plain `with`")

        def __aexit__(self, *_: object) -> None:
            """Never called: without it Python would complain about `__aexit__` only."""

        def __getattr__(self, name: str) -> NoReturn:
            told = f"'Connection' object has no attribute {name!r}"
            if not name.startswith("_"):
                told += "; it is not open yet: `with connect(...) as js:`, then js." + name
            raise AttributeError(told, name=name, obj=self)

    def __getstate__(self) -> dict[str, Any]:
        if self._portal is not None:
            self._portal.__reduce__()  # Only what was never open is a description and no more.
        return self.__dict__

    def __repr__(self) -> str:
        return f"<blocking {self._connection!r}>"


def _async_mistake(what: str) -> UsageError:
    return UsageError(
        what, hint="write `with connect(...) as js:`; natsstream.connect() is for `async with`"
    )


@functools.wraps(connection.connect, assigned=(), updated=())
def connect(*args: Any, **options: Any) -> Connection:
    """Describe a connection, with the arguments of `natsstream.connect`; `with` opens it."""
    return Connection(*args, **options)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is not None:
        return find_proxy(getattr(importlib.import_module(home), name))
    if name == "__version__":
        return natsstream.__version__
    if name == "__all__":
        return __dir__()
    if name not in _BORROWED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{name_here(name)}")
    found = getattr(natsstream, name)
    return (find_proxy(found) if isinstance(found, type) else None) or found


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_BORROWED, "Connection", "connect"})
