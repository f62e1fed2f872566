"""A process that takes a lock again and again, and writes down what it believed and when.

`python -m tests.support.lock_worker URLS BUCKET HOLDER TTL`: until it is killed it takes the
lock `l`, looks at it 40 times, and while it believes in it prints a line `TOKEN BEFORE_NS AFTER_NS
WRITTEN`: it held the lock at some moment between the two (of CLOCK_MONOTONIC, which all processes
of a machine share), and its guarded write of its token was stored or not.
"""

from __future__ import annotations

import asyncio
import sys
import time

import natsstream as ns
from natsstream.errors import LockHeldError, LockLostError, NatsStreamError

# Counted, not timed: one that was stopped looks again when it goes on.
LOOKS = 40


async def work(kv: ns.KeyValue, holder: str, ttl: float) -> None:
    """Hold the lock once, and tell of each look."""
    async with kv.lock("l", ttl=ttl, timeout=20, holder=holder, on_loss="tell") as lock:
        for _ in range(LOOKS):
            before_ns = time.monotonic_ns()
            is_held = lock.is_held
            after_ns = time.monotonic_ns()
            if not is_held:
                return
            is_written = 0
            try:
                await lock.put("guarded", b"%d" % lock.token)
                is_written = 1
            finally:
                sys.stdout.write(f"{lock.token} {before_ns} {after_ns} {is_written}\n")
                sys.stdout.flush()
            await asyncio.sleep(0.01)


async def opened(js: ns.JetStream, bucket: str) -> ns.KeyValue:
    """Open the bucket: a server that stands still, or an election, may lose the question."""
    while True:
        try:
            return await js.kv.get(bucket)
        except NatsStreamError as error:
            sys.stderr.write(f"{error!r}\n")
            await asyncio.sleep(0.1)


async def main(urls: str, bucket: str, holder: str, ttl: str) -> None:
    """Take the lock until killed."""
    async with ns.connect(urls.split(","), request_timeout=3, reconnect_timeout=60) as js:
        kv = await opened(js, bucket)
        while True:
            try:
                await work(kv, holder, float(ttl))
            except (LockHeldError, LockLostError):
                continue
            except NatsStreamError as error:
                sys.stderr.write(f"{error!r}\n")
                await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
