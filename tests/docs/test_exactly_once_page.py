"""The programs of the page "Exactly once, end to end", killed at random moments."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import blocking
from tests.docs.test_snippets import DOCS, URL_ON_PAGES, find_snippets
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from natsstream.blocking import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.spread

KILLS = 4
LINES_EACH = 6_000
# Only a hang reaches it: a program takes 20 s to start on a machine with many others.
WITHIN_S = 180.0


class Program:
    """A program of the page, which may be killed and started again.

    Args:
        name: Its file.
        folder: Where it runs.
        url: The server.
    """

    def __init__(self, name: str, folder: Path, url: str) -> None:
        page = (DOCS / "guides" / "exactly-once.md").read_text()
        program = next(each.program for each in find_snippets(page) if each.file == name)
        self._folder = folder
        self._file = folder / name
        self._file.write_text(program.replace(URL_ON_PAGES, url))

    @contextmanager
    def running(self) -> Generator[subprocess.Popen[bytes]]:
        """Run it, and kill it in the end."""
        process = subprocess.Popen([sys.executable, str(self._file)], cwd=self._folder)
        try:
            yield process
        finally:
            process.kill()
            process.wait(WITHIN_S)

    def finish(self) -> None:
        """Run it to its end."""
        with self.running() as process:
            assert process.wait(WITHIN_S) == 0


def stored(js: JetStream, stream: str) -> int:
    """Return how many messages a stream has; 0 if there is no such stream."""
    if stream not in list(js.streams.names()):
        return 0
    return js.streams.get(stream).cached.state.messages


def kill_at_random(
    program: Program, js: JetStream, stream: str, chosen: random.Random, *, most: int
) -> None:
    """Run a program until it has stored some more, `most` in all, and kill it."""
    more = chosen.choice([1, chosen.randint(1, LINES_EACH)])
    wanted = min(stored(js, stream) + more, most)
    with program.running() as process:
        eventually(
            lambda: stored(js, stream) >= wanted or process.poll() is not None, within_s=WITHIN_S
        )
        # A copy may have come to its end.
        assert process.poll() in (None, 0)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [20])
def test_programs_lose_and_double_nothing_when_they_are_killed(
    fresh_server: NatsServer, tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)  # noqa: S311 - Reproducible, not secret.
    lines: list[str] = []
    follow = Program("follow_csv.py", tmp_path, fresh_server.url)
    copy = Program("copy_stream.py", tmp_path, fresh_server.url)
    with blocking.connect(fresh_server.url) as js, (tmp_path / "prices.csv").open("a") as file:
        for _ in range(KILLS):
            fresh = [f"{len(lines) + at},{chosen.randint(1, 9)}" for at in range(LINES_EACH)]
            lines += fresh
            text = "".join(f"{line}\n" for line in fresh)
            # The writer, too, may be in the middle of a line.
            cut = chosen.randint(1, len(text) - 1)
            file.write(text[:cut])
            file.flush()
            most = len(lines) - text[cut:].count("\n")
            kill_at_random(follow, js, "PRICES", chosen, most=most)
            file.write(text[cut:])
            file.flush()
        file.write("end\n")
        file.flush()
        follow.finish()
        follow.finish()
        prices = [m.data.decode() for m in js.streams.get("PRICES").read(until_closed=True)]
        assert prices == lines

        for _ in range(KILLS):
            kill_at_random(copy, js, "GROSS", chosen, most=len(lines))
        copy.finish()
        gross = [m.data.decode() for m in js.streams.get("GROSS").read(until_closed=True)]
        expected = [(day, int(price) * 1.25) for day, price in (each.split(",") for each in lines)]
        assert gross == [f"{day},{price:g}" for day, price in expected]
