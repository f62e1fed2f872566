"""Errors are copied and pickled whole, whatever their classes want to be made."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from natsstream import errors

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.NatsStreamError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_error_is_copied_and_pickled_with_its_attributes(
    kind: type[errors.NatsStreamError],
) -> None:
    error = kind.__new__(kind, "told")
    vars(error).update(message="told", detail="why", hint="do this", retryable=True, index=3, own=7)

    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 - Ours.
        assert (type(other), other.args, vars(other)) == (kind, ("told",), vars(error))
        assert "do this" in str(other)


def test_error_that_wants_more_than_a_message_is_copied() -> None:
    error = errors.PermissionDeniedError("no", operation="publish", subject="a")
    assert copy.copy(error).subject == "a"
