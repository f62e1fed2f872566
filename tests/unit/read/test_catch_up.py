"""Unit tests of the rule that says when a read has also passed what was replaced meanwhile."""

from __future__ import annotations

from natsstream.read.catch_up import ROUNDS_MAX, CatchUp


def test_read_that_is_not_to_settle_is_done_at_once() -> None:
    catch_up = CatchUp(is_wanted=False)

    assert catch_up.is_done
    assert not catch_up.has_question(5)


def test_stream_that_was_not_written_meanwhile_is_done_after_one_question() -> None:
    catch_up = CatchUp(is_wanted=True)
    asked = catch_up.has_question(11)
    catch_up.learn(10, 11)

    assert asked
    assert catch_up.is_done


def test_what_was_stored_meanwhile_is_passed_first() -> None:
    catch_up = CatchUp(is_wanted=True)
    catch_up.learn(14, 11)

    assert not catch_up.is_done
    assert not catch_up.has_question(14)
    assert catch_up.has_question(15)
    catch_up.learn(14, 15)
    assert catch_up.is_done


def test_end_that_the_consumer_tells_ends_it() -> None:
    catch_up = CatchUp(is_wanted=True)
    catch_up.learn(14, 11)
    catch_up.end()

    assert catch_up.is_done
    assert not catch_up.has_question(15)


def test_rounds_are_limited() -> None:
    """A writer that is faster than the reader: each question finds that much more was stored."""
    catch_up = CatchUp(is_wanted=True)
    next_seq = 1
    rounds = 0
    while not catch_up.is_done:
        rounds += 1
        catch_up.learn(next_seq + 10, next_seq)
        next_seq += 11

    assert rounds == ROUNDS_MAX + 1
