"""The types that a checker infers for buckets; `scripts/check` reads this file, nothing runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import natsstream as ns

if TYPE_CHECKING:
    from natsstream import blocking


class Order:
    """A codec and its own value: enough for types."""

    def encode(self, value: Order) -> bytes:
        """Write an order."""
        return repr(value).encode()

    def decode(self, stored: bytes) -> Order:
        """Read an order."""
        return Order() if stored else self


async def infers(js: ns.JetStream, order: Order) -> None:
    """Type checkers read this; it is never called."""
    kv = await js.kv.ensure("x")
    assert_type(kv, ns.KeyValue)
    assert_type(kv, ns.KeyValue[bytes])
    orders = kv.typed(order)
    assert_type(orders, ns.KeyValue[Order])
    assert_type(kv.typed(order.encode, order.decode), ns.KeyValue[Order])
    assert_type(kv.typed(ns.TEXT), ns.KeyValue[str])
    assert_type(kv.typed(ns.JSON), ns.KeyValue[Any])
    assert_type(orders.with_codec(keys=ns.PathKeys()), ns.KeyValue[Order])
    assert_type(orders.watch(), ns.Watch[Order])
    assert_type(orders.cached(), ns.CachedKeyValue[Order])
    assert_type(orders.lock("l"), ns.Lock[Order])
    assert_type(await orders.get("k"), ns.Entry[Order] | None)


def infers_without_async(js: blocking.JetStream, order: Order) -> None:
    """As above."""
    kv = js.kv.ensure("x")
    assert_type(kv.get("k"), ns.Entry[bytes] | None)
    entry = kv.typed(order).get("k")
    assert_type(entry, ns.Entry[Order] | None)
    with kv.typed(order).watch() as watch:
        assert_type(next(watch), ns.Entry[Order])
