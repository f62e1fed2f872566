"""Three programs share a list while their server is killed: `python -m scripts.three_clients`.

Each writes with an id for every message and tries again until it is stored. A picture shows how
many messages each one has; at the end all three must have the same, each message once.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

import natsstream as ns
from natsstream.errors import NatsStreamError
from natsstream.testing import NatsServer

NAMES = ("ann", "bob", "eve")
_FRAME_S = 0.1
_WRITE_EVERY_S = 0.02
_BAR = 40


async def write(stream: ns.CoreStream, name: str, until: float) -> int:
    """Store numbered messages until a moment; return how many."""
    number = 0
    while time.monotonic() < until:
        try:
            await stream.publish(f"{name} {number}", msg_id=f"{name}-{number}", timeout=1)
            number += 1
        except NatsStreamError:
            continue  # The server is away; the id makes the retry safe.
        await asyncio.sleep(_WRITE_EVERY_S)
    return number


async def kill(server: NatsServer, times: int, seconds: float) -> None:
    """Kill the server and start it again, spread over the time."""
    for _ in range(times):
        await asyncio.sleep(seconds / (times + 1))
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)


def picture(streams: dict[str, ns.CoreStream], elapsed: float, *, is_up: bool) -> str:
    """Return one line for each program."""
    most = max(1, *(len(each) for each in streams.values()))
    lines = [f"{elapsed:5.1f} s   server {'up  ' if is_up else 'DOWN'}"]
    for name, stream in streams.items():
        bar = "#" * (len(stream) * _BAR // most)
        lines.append(f"  {name}  {bar:<{_BAR}} {len(stream):>6} messages")
    return "\n".join(lines)


async def draw(streams: dict[str, ns.CoreStream], js: ns.JetStream) -> None:
    """Draw the picture again and again: over itself on a terminal, else once a second."""
    began, is_terminal, frames = time.monotonic(), sys.stdout.isatty(), 0
    while True:
        if is_terminal and frames:
            sys.stdout.write(f"\x1b[{len(streams) + 1}A")
        if is_terminal or frames % int(1 / _FRAME_S) == 0:
            elapsed = time.monotonic() - began
            sys.stdout.write(picture(streams, elapsed, is_up=js.is_connected) + "\n")
            sys.stdout.flush()
        frames += 1
        await asyncio.sleep(_FRAME_S)


async def run(seconds: float, kills: int) -> bool:
    """Run the three programs; return True if they agree at the end."""
    with NatsServer() as server:
        async with (
            ns.connect(server.url) as ann_js,
            ns.connect(server.url) as bob_js,
            ns.connect(server.url) as eve_js,
        ):
            all_js = dict(zip(NAMES, (ann_js, bob_js, eve_js), strict=True))
            streams = {name: await js.core_stream("shared") for name, js in all_js.items()}
            drawing = asyncio.ensure_future(draw(streams, ann_js))
            until = time.monotonic() + seconds
            writers = (write(stream, name, until) for name, stream in streams.items())
            counts = await asyncio.gather(*writers, kill(server, kills, seconds))
            for stream in streams.values():
                await stream.config()  # Compares with the server until nothing is in doubt.
            drawing.cancel()
            wanted = {
                f"{name} {at}"
                for name, count in zip(NAMES, counts, strict=False)
                for at in range(count or 0)
            }
            lists = [stream.get_all() for stream in streams.values()]
            for stream in streams.values():
                await stream.close()
    is_same = lists[0] == lists[1] == lists[2]
    is_whole = sorted(lists[0]) == sorted(wanted)
    print(  # noqa: T201
        f"{len(lists[0])} messages, {kills} kills: "
        f"{'the same list everywhere' if is_same else 'THE LISTS DIFFER'}, "
        f"{'each message once' if is_whole else 'MESSAGES ARE MISSING OR TWICE'}"
    )
    return is_same and is_whole


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="python -m scripts.three_clients", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="how long they write (15)")
    parser.add_argument("--kills", type=int, default=3, help="how often the server is killed (3)")
    args = parser.parse_args()
    return 0 if asyncio.run(run(args.seconds, args.kills)) else 1


if __name__ == "__main__":
    sys.exit(main())
