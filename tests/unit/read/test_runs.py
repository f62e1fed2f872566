"""Runs of messages: what is left out of one, and how it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.message import Message
from natsstream.read.runs import Run, hide, run_of
from tests.support.frames import ack


def made(subjects: list[bytes]) -> Run[list[Message]]:
    """Return a run of messages with sequences 1, 3, 5 and so on."""
    messages = [
        Message((subject, ack(2 * at + 1, at + 1), b"", b"x"))
        for at, subject in enumerate(subjects)
    ]
    return run_of(messages, size=len(messages), first_delivery=1, pending=7)


@given(st.lists(st.sampled_from([b"a.new", b"a.$ctl.n.eof", b"a.$ctl.nn.eof"]), min_size=1))
def test_hidden_messages_keep_their_place_among_the_sequences(subjects: list[bytes]) -> None:
    run = made(subjects)
    shown = hide(run, b"a.$ctl.n.")

    assert [each.subject for each in shown.items] == [
        each.decode() for each in subjects if each != b"a.$ctl.n.eof"
    ]
    assert [*shown.hidden] == [
        2 * at + 1 for at, subject in enumerate(subjects) if subject == b"a.$ctl.n.eof"
    ]
    assert (shown.count, shown.first, shown.last) == (run.count, run.first, run.last)
    assert shown.sequences() == run.sequences()
    assert (shown is run) == (not shown.hidden)
