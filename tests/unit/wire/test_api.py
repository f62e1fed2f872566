"""Under which subjects JetStream is asked."""

from __future__ import annotations

import pytest

from natsstream._wire import api


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
