from __future__ import annotations

import pytest
from pyspark_natsstream.failures import spark_reason, typed_error
from pyspark_natsstream.offsets import OffsetError
from pyspark_natsstream.payloads import MalformedPayloadError

from natsstream.errors import (
    ChunksDamagedError,
    ConnectError,
    MessagesLostError,
    MissingExtraError,
    NatsStreamError,
    SequenceRangeError,
    StaleEpochError,
    StreamNotFoundError,
    StreamRecreatedError,
)

HEAD = """[PYTHON_DATA_SOURCE_ERROR] Failed to do something: Traceback (most recent call last):
  File "driver.py", line 60, in open_stream
    raise
"""
TAIL = "\n SQLSTATE: 38000"


@pytest.mark.parametrize(
    "error",
    [
        StreamNotFoundError("stream A: not found [10059]", hint="list them"),
        ConnectError("no server", detail="refused", hint="start one"),
        StreamRecreatedError("stream A was created anew"),
        OffsetError("not ours", detail="offset: 1", hint="use another"),
        SequenceRangeError("stream A holds 3 to 9: no", first_seq=3, last_seq=9, hint="less"),
        SequenceRangeError("stream A is empty and ends at 9", first_seq=10, last_seq=9),
    ],
)
def test_error_comes_back_from_the_words_of_spark(error: NatsStreamError) -> None:
    name = f"{type(error).__module__}.{type(error).__qualname__}"

    found = typed_error(RuntimeError(f"{HEAD}{name}: {error}{TAIL}"))

    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


def test_loss_comes_back_with_its_range() -> None:
    text = "natsstream.errors.MessagesLostError: messages 5 to 9 of stream A are gone"

    found = typed_error(RuntimeError(f"{HEAD}{text}{TAIL}"))

    assert isinstance(found, MessagesLostError)
    assert (found.first_seq, found.last_seq) == (5, 9)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (
            "8 chunks with 9 bytes under $O.m.C.x: some that its writer stored are missing",
            "missing",
        ),
        ("8 chunks with 9 bytes under $O.m.C.x: there are more than its writer stored", "surplus"),
        ("8 chunks with 9 bytes under $O.m.C.x: the digest is not its writer's", "digest"),
        ("bytes 0 to 9 under $O.m.C.x are not all there", "missing"),
        ("chunk 1 under $O.m.C.x has 2 bytes; its writer gave 8 for each but the last", "digest"),
        ("the 8 chunks under $O.m.C.x are not complete: there are others too", "surplus"),
    ],
)
def test_damaged_object_comes_back_with_its_chunks(told: str, kind: str) -> None:
    error = ChunksDamagedError(told, subject="$O.m.C.x", kind=kind, detail="1", hint="again")
    note = "in the read of object 'a' of bucket m"
    text = f"{HEAD}natsstream.errors.ChunksDamagedError: {error}\n{note}{TAIL}"

    found = typed_error(RuntimeError(text))

    assert isinstance(found, ChunksDamagedError)
    assert vars(found) == {**vars(error), "__notes__": [note]}
    assert str(found) == str(error)


def test_error_whose_numbers_are_not_told_stays_spark_s() -> None:
    error = StaleEpochError("producer p is fenced", current_epoch=4)

    assert typed_error(RuntimeError(f"{HEAD}natsstream.errors.StaleEpochError: {error}")) is None


def test_malformed_payload_comes_back_with_its_place() -> None:
    error = MalformedPayloadError(
        "sequence 7 of stream A, subject a.b: the payload is not JSON of the schema: b'{'",
        stream="A",
        subject="a.b",
        sequence=7,
        detail="Expecting value",
    )
    name = f"{type(error).__module__}.{type(error).__qualname__}"

    found = typed_error(RuntimeError(f"{HEAD}{name}: {error}{TAIL}"))

    assert isinstance(found, MalformedPayloadError)
    assert (found.stream, found.subject, found.sequence) == ("A", "a.b", 7)
    assert str(found) == str(error)


def test_last_of_several_errors_counts() -> None:
    """A traceback shows the cause first."""
    text = (
        f"{HEAD}natsstream.errors.ConnectError: no server\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        f"natsstream.errors.StreamRecreatedError: other stream{TAIL}"
    )

    assert isinstance(typed_error(RuntimeError(text)), StreamRecreatedError)


@pytest.mark.parametrize(
    "text", ["disk full", "natsstream.errors.NoSuchError: x", "ValueError: natsstream.errors"]
)
def test_error_of_others_stays_theirs(text: str) -> None:
    assert typed_error(RuntimeError(text)) is None


def test_error_of_ours_is_returned_as_it_is() -> None:
    error = ConnectError("no server")

    assert typed_error(error) is error


@pytest.mark.parametrize(
    ("module", "way_out"),
    [("pyarrow", "--archives"), ("numpy.core", "--archives"), ("nats", "--py-files")],
)
def test_executor_that_lacks_a_module_is_told_with_the_way_out(module: str, way_out: str) -> None:
    text = (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent "
        f"call last):\nModuleNotFoundError: No module named '{module}'\n SQLSTATE: 38000"
    )

    error = typed_error(RuntimeError(text))

    assert isinstance(error, MissingExtraError)
    assert module.partition(".")[0] in error.message
    assert way_out in error.hint


def test_module_of_the_user_that_is_missing_stays_spark_s_error() -> None:
    assert typed_error(RuntimeError("ModuleNotFoundError: No module named 'natsy'")) is None


def test_reason_ends_with_the_error_of_the_last_traceback() -> None:
    """Spark puts the traceback of a function for `foreachBatch` behind its own words."""
    head = "[STREAM_FAILED] Query [id = 1] terminated with exception: [FOREACH] Return Message: "
    first = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n'
    text = (
        f"{head}{first}KeyError: 1\n\nDuring handling of the above exception, another exception "
        f"occurred:\n\n{first}    ^^^\npyiceberg.exceptions.NoSuchTableError: t\n\n SQLSTATE: 39000"
        "\n\tat py4j.Protocol.getReturnValue(Protocol.java:476)\n=== Query ===\nId: [id = 1]"
    )

    assert spark_reason(RuntimeError(text)) == f"{head}pyiceberg.exceptions.NoSuchTableError: t"
    assert spark_reason(RuntimeError(f"{head}{first}")) == f"{head}{first}".partition("\n")[0]
