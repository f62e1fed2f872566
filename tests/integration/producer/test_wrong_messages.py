"""Arguments that `append_many` refuses, as `publisher.send_many` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("messages", [{"key": b"value"}, "abc", b"abc", 1, None])
async def test_append_many_refuses_what_is_no_list_of_messages(place: Place, messages: Any) -> None:
    async with await place.open(mode="shared") as producer:
        with pytest.raises(ConfigError, match=r"^messages is ") as caught:
            producer.append_many(messages)
        assert caught.value.hint == "give a list of (subject, data) pairs"
        producer.append_many([(f"{place.name}.d", b"a"), b"b"])  # The hint works.
    assert await place.data() == [b"a", b"b"]


async def test_final_message_of_close_is_called_by_its_name(place: Place) -> None:
    async with await place.open(mode="shared") as producer:
        with pytest.raises(ConfigError, match=r"^final is \{") as caught:
            await producer.close(final={"done": 1})
        assert "json.dumps" in caught.value.hint
