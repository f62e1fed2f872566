"""Object stores without async."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from natsstream.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from natsstream.testing import NatsNode


def test_every_call_has_a_twin(server: NatsNode, stream_name: str) -> None:
    with blocking.connect(server.url) as js:
        box = js.objects.ensure(stream_name, storage="memory")
        box.put("a", b"xyz", metadata={"m": "n"})
        box.link("l", "a")

        assert box.get("l") == b"xyz"
        assert box.rename("a", "b").name == "b"
        assert box.update("b", description="d").description == "d"
        assert sorted(box.names()) == ["b", "l"]
        assert [info.metadata for info in box.list() if info.name == "b"] == [{"m": "n"}]
        with box.watch() as watch:
            assert len(list(watch.initial())) == 2
            box.put("c", b"")
            assert next(iter(watch)).name == "c"
        box.delete("b")
        with pytest.raises(ObjectNotFoundError):
            box.update("b", description="e")
        assert stream_name in list(js.objects.names())
        assert stream_name in [status.name for status in js.objects.list()]
        assert box.seal().is_sealed
        js.objects.delete(stream_name)
