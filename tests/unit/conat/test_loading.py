"""The first load takes columns; message by message it gives the same arrays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat.reconcile import Reconciler
from natsstream.conat.record import Record
from tests.support.simulated_stream import (
    EXPIRING,
    PLAIN,
    ROLLUP,
    ROLLUP_ALL,
    TOMBSTONE,
    fill,
)

# More messages than are loaded in one go, most of which have nothing but a key of their own.
COUNT_MAX = 230
POSITIONS = st.integers(0, COUNT_MAX - 1)
HEADERS = st.sampled_from((PLAIN, ROLLUP, ROLLUP_ALL, TOMBSTONE, EXPIRING))
MARKER = b"NATS/1.0\r\nNats-Marker-Reason: MaxAge\r\n\r\n"
KEYS = st.one_of(st.just(""), POSITIONS.map("cn.d.x.k.{}".format))


@given(
    count=st.integers(1, COUNT_MAX),
    are_keyed=st.booleans(),
    others=st.dictionaries(POSITIONS, st.tuples(KEYS, HEADERS | st.just(MARKER)), max_size=3),
    deleted=st.lists(POSITIONS, max_size=2),
    purged=st.sampled_from((0, 0, 1, 50, 101)),
)
def test_a_load_by_columns_gives_what_one_by_one_gives(
    *,
    count: int,
    are_keyed: bool,
    others: dict[int, tuple[str, bytes]],
    deleted: list[int],
    purged: int,
) -> None:
    usual = [(f"cn.d.x.k.{at}", ROLLUP) if are_keyed else ("", PLAIN) for at in range(count)]
    records = [
        Record(at + 1, at * 1_000, *others.get(at, each), b"v") for at, each in enumerate(usual)
    ]
    clients = [Reconciler(), Reconciler()]
    for client in clients:
        for seq in deleted:
            list(client.deleted(seq, seq))
        list(client.purged(purged))
    for record in records:
        fill(clients[0], record)
    clients[1].fill(*map(list, zip(*records, strict=True)))

    assert arrays(clients[1]) == arrays(clients[0])
    assert [list(client.filled(count)) for client in clients] == [[], []]
    assert arrays(clients[1]) == arrays(clients[0])


def arrays(client: Reconciler) -> list[object]:
    """Return all that a load leaves behind."""
    return [
        client.applied,
        client.missing,
        client.doubt,
        client.next_expiry_ns,
        list(client.log.records()),
        list(client.keys.newest.items()),
        list(client.keys.live.items()),
    ]
