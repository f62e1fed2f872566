"""The mapping from the server's error catalogue to error classes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import errors
from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream._wire.errors_map import RULES, server_error

ROOT = Path(__file__).parents[3]
GENERATOR = ROOT / "scripts" / "generate_error_codes"
RETRYABLE_BEYOND_UNAVAILABLE = {10124, 10158, 10164, 10202, 10210, 10211, 10226}

any_json = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats())


def answer(err_code: int, description: str = "any text", code: int = 400) -> dict[str, object]:
    """Return the `error` object of an API reply."""
    return {"code": code, "err_code": err_code, "description": description}


def generate(tmp_path: Path, entries: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    """Run the generator over a catalogue."""
    catalogue = tmp_path / "errors.json"
    catalogue.write_text(json.dumps(entries))
    return subprocess.run(
        [sys.executable, str(GENERATOR), str(catalogue), "--server-version", "0"],
        capture_output=True,
        text=True,
        check=False,
    )


def entry(constant: str, err_code: int) -> dict[str, object]:
    """Return one entry of a catalogue."""
    return {"constant": constant, "code": 400, "error_code": err_code, "description": "text"}


@pytest.mark.parametrize("error_code", ErrorCode, ids=lambda code: code.name)
def test_every_error_of_the_catalogue_has_a_class(error_code: ErrorCode) -> None:
    failure = server_error(answer(error_code.value), what="stream ORDERS")

    assert isinstance(failure, errors.ServerError)
    assert type(failure) is RULES[error_code].error
    assert failure.err_code == error_code
    assert failure.message.endswith(f"[{error_code.value}]")


def test_the_table_and_the_catalogue_hold_the_same_errors() -> None:
    assert set(RULES) == set(ErrorCode)


@pytest.mark.parametrize(
    ("err_code", "expected"),
    [
        (10008, errors.UnavailableError),
        (10014, errors.ConsumerNotFoundError),
        (10023, errors.ResourceExhaustedError),
        (10037, errors.MessageNotFoundError),
        (10039, errors.JetStreamNotEnabledError),
        (10043, errors.MessageNotFoundError),
        (10052, errors.InvalidConfigError),
        (10054, errors.MessageTooLargeError),
        (10058, errors.StreamExistsError),
        (10059, errors.StreamNotFoundError),
        (10060, errors.WrongStreamError),
        (10065, errors.SubjectOverlapError),
        (10070, errors.WrongLastMessageIdError),
        (10071, errors.WrongLastSequenceError),
        (10076, errors.JetStreamNotEnabledError),
        (10077, errors.StreamFullError),
        (10097, errors.MessageTooLargeError),
        (10109, errors.StreamSealedError),
        (10111, errors.MessageRuleError),
        (10148, errors.ConsumerExistsError),
        (10164, errors.WrongLastSequenceError),
        (10166, errors.MessageRuleError),
        (10174, errors.BatchDisabledError),
        (10185, errors.UnsupportedServerError),
    ],
)
def test_common_errors_get_their_class_and_a_hint(
    err_code: int, expected: type[errors.ServerError]
) -> None:
    failure = server_error(answer(err_code), what="stream ORDERS")

    assert type(failure) is expected
    assert failure.hint


def test_message_says_what_on_what_with_the_code_at_its_end() -> None:
    failure = server_error(answer(10059, "stream not found", 404), what="stream ORDERS")

    assert failure.message == "stream ORDERS: stream not found [10059]"
    assert (failure.code, failure.err_code) == (404, 10059)
    assert failure.description == "stream not found"


@given(code=any_json, description=any_json)
def test_identity_is_the_number_whatever_text_and_code_say(
    code: object, description: object
) -> None:
    error = {"code": code, "err_code": 10059, "description": description}

    assert type(server_error(error, what="x")) is errors.StreamNotFoundError


@given(st.dictionaries(st.sampled_from(["code", "err_code", "description", "more"]), any_json))
def test_no_answer_breaks_the_mapping(error: dict[str, object]) -> None:
    assert isinstance(server_error(error, what="x"), errors.ServerError)


def test_lost_write_names_the_sequence_that_the_server_found() -> None:
    failure = server_error(answer(10071, "wrong last sequence: 18446744073709551615"), what="x")

    assert isinstance(failure, errors.WrongLastSequenceError)
    assert failure.last_seq == 2**64 - 1
    assert not failure.retryable


def test_undecided_write_is_retryable_and_names_no_sequence() -> None:
    failure = server_error(answer(10164, "wrong last sequence"), what="x")

    assert isinstance(failure, errors.WrongLastSequenceError)
    assert failure.last_seq is None
    assert failure.retryable


def test_only_refusals_that_pass_by_themselves_are_retryable() -> None:
    retryable = {code.value for code, rule in RULES.items() if rule.retryable}
    unavailable = {
        code.value for code, rule in RULES.items() if rule.error is errors.UnavailableError
    }

    assert retryable == unavailable | RETRYABLE_BEYOND_UNAVAILABLE
    assert {10008, 10009, 10118, 10119, 10163, 10167} <= unavailable


def test_incomplete_batch_is_not_retryable_because_it_may_be_stored() -> None:
    assert not server_error(answer(10176), what="x").retryable
    assert not server_error(answer(10208), what="x").retryable


def test_unknown_number_gives_a_plain_error_even_with_code_503() -> None:
    failure = server_error(answer(19999, "new", 503), what="x")

    assert type(failure) is errors.ServerError
    assert not failure.retryable
    assert failure.message == "x: new [19999]"


def test_503_without_a_number_is_retryable() -> None:
    failure = server_error({"code": 503, "description": "busy"}, what="x")

    assert type(failure) is errors.UnavailableError
    assert failure.retryable
    assert failure.message == "x: busy (code 503)"


def test_catalogue_keeps_number_code_and_text() -> None:
    found = find_error_code(10071)

    assert found is ErrorCode.STREAM_WRONG_LAST_SEQUENCE
    assert (found.value, found.code) == (10071, 400)
    assert found.description == "wrong last sequence: {seq}"
    assert find_error_code(1) is None


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        (entry("JSOtherErr", 10001), "err_code stands twice in the catalogue: 10001"),
        (entry("JSSomeErrF", 10002), "name stands twice in the catalogue: SOME"),
    ],
)
def test_generator_refuses_a_catalogue_that_contradicts_itself(
    tmp_path: Path, second: dict[str, object], complaint: str
) -> None:
    done = generate(tmp_path, [entry("JSSomeErr", 10001), second])

    assert done.returncode == 1
    assert complaint in done.stderr
    assert not done.stdout


def test_generator_writes_a_module_sorted_by_number(tmp_path: Path) -> None:
    done = generate(tmp_path, [entry("JSLaterErr", 10002), entry("JSFirstMsgIDErrF", 10001)])

    assert done.returncode == 0
    assert done.stdout.index("FIRST_MSG_ID = 10001, 400") < done.stdout.index("LATER = 10002, 400")
