"""The running numbers of a core stream's messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat import usage as usage_module
from natsstream.conat.configuration import Configuration
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Reconciler
from natsstream.conat.record import Record
from natsstream.conat.usage import Usage
from natsstream.conat.views import Codec

_NAMES = StreamNames("hub/x")
_LIMITED = Configuration(max_bytes=10, max_msgs_per_second=5)
_SECOND_NS = 10**9


def _record(seq: int, size: int, time_ns: int = 0) -> Record:
    return Record(seq, time_ns, "", b"", bytes(size))


@given(
    st.lists(st.tuples(st.sampled_from("+-f"), st.integers(1, 12), st.integers(0, 9)), max_size=40)
)
def test_the_sum_is_that_of_the_messages_after_any_edits(
    steps: list[tuple[str, int, int]],
) -> None:
    rules = Reconciler()
    usage = Usage(rules, Codec(_NAMES))
    is_followed = False
    for step, seq, size in steps:
        match step:
            case "+":
                rules.log.insert(_record(seq, size))
            case "-":
                rules.log.remove(seq)
            case _:
                is_followed = not is_followed
                usage.follow(_LIMITED if is_followed else Configuration())
        held = sum(len(each.data) for each in rules.log.records())
        assert usage.size == (held if is_followed else 0)
        assert sum(usage.sizes()) == held


def test_keys_headers_and_tombstones_have_conats_sizes() -> None:
    rules = Reconciler()
    usage = Usage(rules, Codec(_NAMES))
    usage.follow(_LIMITED)
    subject = _NAMES.subject_of("a")
    block = b'NATS/1.0\r\nCN-Enc: 0\r\nCN-Tombstone: 1\r\nCN-Key: "a"\r\n\r\n'
    rules.log.insert(Record(1, 0, subject, b"NATS/1.0\r\nCN-Enc: 0\r\n\r\n", b"\x05"))
    assert usage.size == 2
    rules.log.insert(Record(2, 0, subject, block, b"\xc0"))
    assert usage.size == 2 + 23


def test_the_last_second_has_the_messages_that_are_still_held() -> None:
    rules = Reconciler()
    usage = Usage(rules, Codec(_NAMES))
    rules.log.insert(_record(1, 5, 1 * _SECOND_NS))
    usage.follow(_LIMITED)
    for seq in (2, 3):
        rules.log.insert(_record(seq, seq, 3 * _SECOND_NS))

    assert usage.recent(3 * _SECOND_NS) == (2, 5)
    rules.log.remove(2)
    assert usage.recent(4 * _SECOND_NS) == (1, 3)
    assert usage.recent(4 * _SECOND_NS + 1) == (0, 0)


class CountedSize(int):
    """A size that counts the sums it is added to."""

    additions = 0

    def __radd__(self, other: int) -> int:
        CountedSize.additions += 1
        return int(self) + other


def test_the_last_second_is_not_added_up_again_for_each_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def size_of(*_: object) -> CountedSize:
        return CountedSize(2)

    monkeypatch.setattr(usage_module, "logical_size", size_of)
    rules = Reconciler()
    usage = Usage(rules, Codec(_NAMES))
    usage.follow(_LIMITED)
    for seq in range(1, 101):
        rules.log.insert(_record(seq, 2, seq))
    before = CountedSize.additions

    assert usage.recent(100) == (100, 200)
    assert CountedSize.additions == before


def test_a_message_of_another_program_counts_its_bytes() -> None:
    rules = Reconciler()
    usage = Usage(rules, Codec(_NAMES))
    usage.follow(_LIMITED)
    rules.log.insert(Record(1, 0, "", b"NATS/1.0\r\nCN-Hdr: no\r\n\r\n", b"12345"))

    assert usage.size == 5


def test_numbers_of_columns_that_are_loaded_are_counted_too() -> None:
    rules = Reconciler()
    usage = Usage(rules, Codec(_NAMES))
    usage.follow(_LIMITED)
    rules.log.append_columns([1, 2], [0, 0], ["", ""], [b"", b""], [b"12", b"3"])

    assert usage.size == 3
