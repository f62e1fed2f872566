"""Under which subjects JetStream is asked."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from natsstream._wire import subjects as api
from natsstream.errors import ConsumerNameError, StreamNameError

if TYPE_CHECKING:
    from collections.abc import Callable

BUILDERS = [
    each
    for name, each in inspect.getmembers(api, inspect.isfunction)
    if each.__module__ == api.__name__
    # Advisories are filters, and have wildcards.
    and not name.startswith(("_", "advisory_", "is_"))
    and "stream" in inspect.signature(each).parameters
]
NO_NAMES = [
    *("", "a.b", "a.>.b", "a..b", ".", ">", "a b", "a\tb", "a\0", "x 0\r\nPUB y", "a/b", "\\"),
    *("a*", "\ud800", "x" * 256),
]
GOOD = {"stream": "S", "consumer": "c", "subject": "orders.new", "sequence": 5}


@pytest.mark.parametrize(
    ("domain", "prefix", "found"),
    [
        (None, None, "$JS.API"),
        ("hub", None, "$JS.hub.API"),
        (None, "JS.data.API", "JS.data.API"),
        (None, "JS.data.API.", "JS.data.API"),
        ("", "", "$JS.API"),
    ],
)
def test_domain_and_prefix_say_where_the_api_is(
    domain: str | None, prefix: str | None, found: str
) -> None:
    assert api.api_prefix(domain, prefix) == found


def test_only_subjects_of_the_api_move() -> None:
    moved = api.under_prefix(api.consumer_next("S", "c"), "$JS.hub.API")

    assert moved == "$JS.hub.API.CONSUMER.MSG.NEXT.S.c"
    for subject in ("orders.new", "$JS.ACK.S.c.1", "$JS.API", "$JS.APIX.Y", "x.$JS.API.INFO"):
        assert api.under_prefix(subject, "$JS.hub.API") == subject
    assert api.under_prefix(api.INFO, api.PREFIX) == api.INFO


@pytest.mark.parametrize(
    ("sent", "named", "is_same"),
    [
        ("orders.new", "orders.new", True),
        ("$JS.hub.API.INFO", "$JS.API.INFO", True),
        ("$JS.hub.API.STREAM.INFO.S", "$JS.API.STREAM.INFO.S", True),
        ("$JS.hub.API.STREAM.INFO.S", "$JS.API.STREAM.INFO.T", False),
        ("$JS.hub.APIX.INFO", "$JS.API.INFO", False),
        ("$JS.hub.API", "$JS.API.INFO", False),
        ("hub.INFO", "INFO", False),
        ("", "$JS.API.INFO", False),
    ],
)
def test_server_may_name_a_request_without_its_domain(
    sent: str,
    named: str,
    is_same: bool,  # noqa: FBT001 - a row of the table.
) -> None:
    assert api.is_same_request(sent, named) is is_same


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_no_subject_is_made_of_what_is_no_name(build: Callable[..., str]) -> None:
    given = {name: GOOD[name] for name in inspect.signature(build).parameters if name in GOOD}
    assert "S" in build(**given).split(".")
    for wrong in NO_NAMES:
        with pytest.raises(StreamNameError):
            build(**{**given, "stream": wrong})
        if "consumer" in given:
            with pytest.raises(ConsumerNameError):
                build(**{**given, "consumer": wrong})
