"""Errors of natsstream as the codes of Conat."""

from __future__ import annotations

import pytest

from natsstream import errors
from natsstream._wire.errors_map import server_error
from natsstream.conat.codes import conat_code


@pytest.mark.parametrize(
    ("err_code", "code"),
    [
        (10071, "wrong-last-sequence"),
        (10164, "wrong-last-sequence"),
        (10077, "reject"),
        (10054, "reject"),
        (10097, "reject"),
        (10026, 429),
        (10027, 429),
        (10028, 429),
        (10047, 429),
        (10210, 429),
        (10058, None),
    ],
)
def test_an_error_of_a_server_has_conats_code(err_code: int, code: int | str | None) -> None:
    error = server_error({"code": 400, "err_code": err_code, "description": "x"}, what="a publish")

    assert conat_code(error) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.StoragePathError("x"), 403),
        (errors.PermissionDeniedError("x", operation="publish", subject="a"), 403),
        (errors.RejectedError("x"), "reject"),
        (errors.WrongRevisionError("x"), "wrong-last-sequence"),
        (errors.UnsupportedServerError("x"), 404),
        (errors.RequestTimeoutError("x"), 408),
        (errors.NoRespondersError("x"), 503),
        (errors.ConnectionLostError("x"), 503),
        (errors.UnavailableError("x"), 503),
        (errors.IncompleteReadError("x"), 503),
        (errors.SlowReaderError("x", dropped=1), 503),
        (errors.ConfigError("x"), None),
        (ValueError("x"), None),
    ],
)
def test_an_error_of_ours_has_conats_code(error: Exception, code: int | str | None) -> None:
    assert conat_code(error) == code
