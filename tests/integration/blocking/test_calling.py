"""Calling by the blocking door: results, attributes, values and errors as of the async classes."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import pydoc
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import natsstream
from natsstream import blocking
from natsstream.blocking.proxies import wrap
from natsstream.errors import (
    NoRespondersError,
    RequestTimeoutError,
    StreamNotFoundError,
    UsageError,
)
from natsstream.testing import NatsServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from natsstream.blocking.portal import Portal


def test_place_of_an_ordered_consumer_is_behind_what_was_taken(stream: blocking.Stream) -> None:
    count = stream.info().state.messages
    with stream.ordered() as tail:
        for message in tail.initial():
            if message.sequence == 10:
                break
        places = [tail.next_seq]
        for message in tail:
            if message.sequence == 20:
                break
        places.append(tail.next_seq)
        batch = next(tail.batches())
        rest = [message.sequence for message in tail.initial()]

    assert places == [11, 21]
    assert [*(message.sequence for message in batch), *rest] == list(range(21, count + 1))


def test_loop_that_is_left_has_closed_what_it_read(
    stream: blocking.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[int] = []

    async def numbers(_: natsstream.OrderedConsumer) -> AsyncIterator[int]:
        for number in (1, 2):
            try:
                yield number
            except GeneratorExit:
                closed.append(number)
                raise

    monkeypatch.setattr(natsstream.OrderedConsumer, "initial", numbers)
    with stream.ordered() as tail:
        for _ in tail.initial():
            break
        assert closed == [1]


def test_messages_of_a_loop_that_was_left_are_there_for_next(js: blocking.JetStream) -> None:
    with js.core.subscribe("left.early") as messages:
        for number in range(10):
            js.core.publish("left.early", b"%d" % number)
        js.core.flush()
        for _ in messages:
            break

        assert messages.pending_count == 9
        found = [messages.next(30) for _ in range(9)]

    assert [message.data for message in found if message] == [b"%d" % n for n in range(1, 10)]


@pytest.mark.smoke
def test_objects_are_of_the_classes_that_the_types_name(
    js: blocking.JetStream, stream: blocking.Stream
) -> None:
    assert isinstance(js, blocking.JetStream)
    assert isinstance(js.streams, blocking.StreamManager)
    assert isinstance(stream, blocking.Stream)
    assert isinstance(stream.read(), blocking.StreamRange)
    with js.publisher() as publisher:
        assert isinstance(publisher, blocking.Publisher)


def test_plain_attributes_and_iterators_of_names_cross(
    js: blocking.JetStream, stream: blocking.Stream, server: NatsServer
) -> None:
    assert (js.url, js.is_connected) == (server.url, True)
    assert stream.cached.state.messages == 0
    assert js.streams.find(stream.name) == stream.name
    assert stream.name in list(js.streams.names())
    assert {"streams", "publish", "url"} <= set(dir(js))
    assert not hasattr(js, "_client")


def test_errors_are_those_of_the_async_classes(js: blocking.JetStream) -> None:
    with pytest.raises(StreamNotFoundError):
        js.streams.get("NO_SUCH_STREAM")


def test_values_with_twins_inside_of_containers_cross(
    portal: Portal, stream: blocking.Stream
) -> None:
    opened = portal.root
    assert isinstance(opened, natsstream.JetStream)
    held = portal.call(opened.streams.get, stream.name)

    crossed = wrap([held, None], portal), wrap({"a": held}, portal), wrap((held,), portal)

    assert [item.info().name for item in (crossed[0][0], crossed[1]["a"], crossed[2][0])] == (
        [stream.name] * 3
    )
    plain = [1, ["a"], {"b": 2}]
    assert wrap(plain, portal) is plain


def test_answer_of_send_gives_the_ack_as_often_as_it_is_asked(
    js: blocking.JetStream, stream: blocking.Stream
) -> None:
    with js.publisher() as publisher:
        answer = publisher.send(stream.name, b"x")
        first = answer.result(5)

    assert (first.stream, first.sequence) == (stream.name, 2_001)
    assert answer.done()
    assert answer() is answer.result(0) is answer.result() is first


def test_answer_of_send_raises_the_refusal_in_words_without_async(
    js: blocking.JetStream,
) -> None:
    with js.publisher() as publisher:
        answer = publisher.send("nobody.stores.this", b"x")
        with pytest.raises(NoRespondersError):
            answer.result()
        with pytest.raises(NoRespondersError) as again:
            answer.result()

    assert "create one: js.streams.ensure(" in again.value.hint


def test_answer_of_send_may_be_asked_again_after_its_timeout() -> None:
    with NatsServer() as server, blocking.connect(server.url) as js:
        js.streams.ensure("S", subjects=["s"])
        with js.publisher() as publisher:
            server.pause()
            answer = publisher.send("s", b"x")
            assert not answer.done()
            with pytest.raises(RequestTimeoutError, match=r"did not come within 0.1 s"):
                answer.result(0.1)
            server.resume()
            assert answer.result(5).sequence == 1


def test_answer_of_send_names_the_way_to_the_fields_of_the_ack(
    js: blocking.JetStream, stream: blocking.Stream
) -> None:
    with js.publisher() as publisher:
        answer: Any = publisher.send(stream.name, b"x")
        with pytest.raises(AttributeError, match=r"in natsstream: answer.result\(\).sequence$"):
            _ = answer.sequence


def test_leaving_a_publisher_raises_the_failure_that_nobody_looked_at(
    js: blocking.JetStream,
) -> None:
    with pytest.raises(NoRespondersError), js.publisher() as publisher:
        publisher.send("nobody.stores.this", b"x")


@pytest.mark.smoke
def test_threads_share_a_connection(js: blocking.JetStream, stream: blocking.Stream) -> None:
    def publish(number: int) -> int:
        return js.publish(stream.name, str(number).encode()).sequence

    def count(_: int) -> int:
        return sum(1 for _ in stream.read(last_seq=2_000))

    with ThreadPoolExecutor(8) as pool:
        counts = pool.map(count, range(8))
        sequences = list(pool.map(publish, range(400)))

    assert sorted(sequences) == [*range(2_001, 2_401)]
    assert list(counts) == [2_000] * 8


def test_works_inside_of_a_running_loop(server: NatsServer, stream: blocking.Stream) -> None:
    async def main() -> int:
        with blocking.connect(server.url) as own:
            return sum(1 for _ in own.streams.get(stream.name).read())

    assert asyncio.run(main()) == 2_000


def test_call_on_the_loops_own_thread_is_refused(portal: Portal) -> None:
    with pytest.raises(UsageError, match="own thread"):
        portal.call(lambda: portal.call(lambda: 1))


@pytest.mark.sampled_variants
@pytest.mark.parametrize("use", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickling_and_copying_are_refused(
    js: blocking.JetStream, stream: blocking.Stream, use: Callable[[object], object]
) -> None:
    for each in (js, js.streams, stream, stream.read()):
        with pytest.raises(UsageError, match="pickled or copied"):
            use(each)


def test_an_open_connection_is_not_pickled_but_its_description_is(server: NatsServer) -> None:
    described = blocking.connect(server.url)
    with described, pytest.raises(UsageError, match="pickled"):
        pickle.dumps(described)

    with pickle.loads(pickle.dumps(blocking.connect(server.url))) as js:  # noqa: S301 - our own.
        assert js.url == server.url


def test_help_lists_methods_as_they_are_called_without_async() -> None:
    shown = pydoc.plain(pydoc.render_doc(blocking.Stream))

    assert re.search(r"\binfo\([\s|]*self", shown)
    assert re.search(r"\bread\([\s|]*self", shown)
    assert not re.search(r"\bAsyncIterator\b|\bawait \b|\basync (with|for)\b", shown)
    context = pydoc.plain(pydoc.render_doc(blocking.JetStream))
    assert '`js.producer("ORDERS", "order-service-1")`' in context


def test_method_of_an_object_tells_what_help_of_its_class_tells(stream: blocking.Stream) -> None:
    assert stream.get.__doc__ == blocking.Stream.get.__doc__
    assert "self" not in inspect.signature(stream.get).parameters


def test_opener_shows_its_arguments_and_docstring(js: blocking.JetStream) -> None:
    shown = inspect.signature(js.producer)

    assert list(shown.parameters)[:2] == ["stream", "producer_id"]
    assert "auto_claim: Claim the next epoch" in (type(js.producer).__call__.__doc__ or "")


def test_only_what_takes_a_call_is_callable(js: blocking.JetStream) -> None:
    """A console completes the name of a callable with a parenthesis."""
    assert callable(js.producer)
    assert not callable(js.streams)
    assert not callable(js.kv)


def test_help_of_the_module_tells_nothing_that_only_the_repository_has() -> None:
    assert "scripts/" not in pydoc.plain(pydoc.render_doc(blocking))


def test_answers_on_their_way_have_short_reprs(js: blocking.JetStream, stream_name: str) -> None:
    js.streams.ensure(stream_name, subjects=[stream_name], storage="memory")
    with js.publisher() as publisher:
        wait = publisher.send(stream_name, b"1")
        wait()

    assert repr(wait) == "<blocking answer, done>"


def test_notebooks_show_a_range_as_a_table_of_its_bounds(stream: blocking.Stream) -> None:
    rows: object = stream.read(first_seq=3, filters=[stream.name])
    shown: str = getattr(rows, "_repr_html_")()  # noqa: B009 - as notebooks call it.

    assert "<td>first_seq</td><td>3</td>" in shown
    assert f"<td>filters</td><td>{stream.name}</td>" in shown
