"""Which client writes and which one reads: the pairs of the tests of this folder.

Ours with every peer, both ways. The peers among themselves are the oracle of a few tests, in a
ring; on a cluster each client writes once and reads once, since a replicated stream differs in its
answers to conflicts and in nothing that another pair would show. Ours alone is tested elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection

    from _pytest.mark import ParameterSet

Client = Literal["our", "cli", "js", "py", "go"]
Pair = tuple[Client, Client]
ALL: Final[tuple[Client, ...]] = ("our", "cli", "js", "py", "go")
# nats-py takes part in tests of streams where a test names it: it shows fewer fields and headers.
OF_STREAMS: Final[tuple[Client, ...]] = ("our", "cli", "js", "go")
# All that nats.go does is sampled: its pairs came to tables that others fill.
GO_MARKS: Final = (pytest.mark.needs_go, pytest.mark.sampled)

_RING: Final[tuple[Pair, ...]] = (("cli", "js"), ("js", "py"), ("py", "cli"))
_REPLICATED: Final[tuple[Pair, ...]] = (("our", "cli"), ("cli", "js"), ("js", "our"))
# The name of a client's fixture; streams have one of their own for each.
_FIXTURES: Final = {"stream": "{}", "kv": "{}_buckets", "object": "{}_objects"}
_STREAM_FIXTURES: Final = {
    "our": "ours",
    "cli": "nats_cli",
    "js": "nats_js",
    "go": "nats_go",
    "py": "py_streams",
}
_MARKS: Final = {
    "cli": (pytest.mark.needs_go,),
    "js": (pytest.mark.needs_node,),
    "go": GO_MARKS,
}
_NAMES: Final = {
    "our": "ours",
    "cli": "nats-cli",
    "js": "nats-js",
    "py": "nats-py",
    "go": "nats-go",
}


def pairs(
    kind: Literal["stream", "kv", "object"],
    writers: Collection[Client] | None = None,
    readers: Collection[Client] | None = None,
    *,
    replicated: bool = False,
    with_peers: bool = False,
) -> pytest.MarkDecorator:
    """Return the mark of a test with a writer, a reader, and `replicas` where it is replicated.

    Args:
        kind: What is written and read.
        writers: Clients that can write it; None is all, of streams all but nats-py.
        readers: Clients that can read it; None is the same.
        replicated: Some pairs also on three servers.
        with_peers: Some pairs also without ours.
    """
    every = OF_STREAMS if kind == "stream" else ALL
    able: list[Pair] = [
        (writer, reader) for writer in writers or every for reader in readers or every
    ]
    cells = [(pair, 1) for pair in able if pair.count("our") == 1]
    cells += [(pair, 1) for pair in _RING if with_peers and pair in able]
    cells += [(pair, 3) for pair in _REPLICATED if replicated and pair in able]
    found: list[ParameterSet] = []
    for pair, size in cells:
        names = [_NAMES[client] for client in pair]
        fixtures = [_STREAM_FIXTURES[client] if kind == "stream" else client for client in pair]
        values: list[object] = [_FIXTURES[kind].format(each) for each in fixtures]
        if replicated:
            names.append(f"R{size}")
            values.append(size)
        marks = [mark for client in pair for mark in _MARKS.get(client, ())]
        found.append(pytest.param(*values, marks=marks, id="-".join(names)))
    prefix = "" if kind == "stream" else f"{kind}_"
    indirect = [f"{prefix}writer", f"{prefix}reader"]
    arguments = (*indirect, *(["replicas"] if replicated else []))
    return pytest.mark.parametrize(arguments, found, indirect=indirect)
