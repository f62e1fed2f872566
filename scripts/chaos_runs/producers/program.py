"""A program that copies a source into a stream, to be killed at any moment.

`python -m scripts.chaos_runs.producers.program URLS STREAM SUBJECT MODE NAME LIFE`: goes on behind
the checkpoint, and tells a line for each thing that has happened: "open", "at N" (items below N are
stored), "stale", "again ..." (it could not open), "gone ..." (it gave up), "error ...", and "end N"
after SIGTERM, when all is stored.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from typing import cast

from natsstream import IdempotentProducer, NatsStreamError
from natsstream.errors import ServerError, StaleEpochError, TransportError
from scripts.chaos_runs.load import describe_client
from scripts.chaos_runs.producers.book import LIFE_HEADER, make_item
from scripts.chaos_runs.producers.sources import Mode, Post

_BURST = (1, 60)
_PAUSE_S = 0.2
_AGAIN_S = 0.2
_FLUSHED_EVERY = 3
_BATCH = 100


async def main(urls: str, stream: str, subject: str, mode: str, name: str, life: str) -> None:
    """Copy until SIGTERM, or until another life has taken over."""
    # Faults break connections all the time; the run counts what it is told.
    logging.getLogger("natsstream").setLevel(logging.CRITICAL)
    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    post = Post(
        stream=stream, subject=subject, mode=cast("Mode", mode), producer_id=f"program {name}"
    )
    has_opened = False
    while not has_opened:
        try:
            async with describe_client(f"{name}-{life}", urls.split(",")) as js:
                producer = await post.open(js, delivery_timeout=60.0, batch=_BATCH)
                has_opened = True
                tell("open")
                tell(f"end {await copy(producer, name, life, is_over)}")
        except StaleEpochError:
            tell("stale")
            return
        except TransportError as error:
            # One that has had an epoch may have been replaced: it must not claim another.
            tell(f"{'gone' if has_opened else 'again'} {type(error).__name__}")
            await asyncio.sleep(_AGAIN_S)
        except ServerError as error:
            # Opening asks once: a cluster without a leader is asked again. Later that is a finding.
            if has_opened or not error.retryable:
                raise
            tell(f"again {type(error).__name__}")
            await asyncio.sleep(_AGAIN_S)


async def copy(producer: IdempotentProducer, name: str, life: str, is_over: asyncio.Event) -> int:
    """Append with one instance; return how many items are stored in the end."""
    draw = random.Random(f"{name} {life}")  # noqa: S311 - To be repeated, no secret.
    headers = {LIFE_HEADER: life}
    async with producer:
        state = producer.recovered
        number = cast("int", state.checkpoint or 0) if state is not None else 0
        bursts = 0
        while not is_over.is_set():
            for _ in range(draw.randint(*_BURST)):
                item = make_item(name, number)
                producer.append(item, headers=headers, checkpoint=number + 1)
                number += 1
            bursts += 1
            if bursts % _FLUSHED_EVERY == 0:
                await producer.flush()
                tell(f"at {number}")
            await asyncio.sleep(draw.uniform(0, _PAUSE_S))
        await producer.flush()
    return number


def tell(text: str) -> None:
    """Write a line; a run that is gone ends the program."""
    print(text, flush=True)  # noqa: T201 - The run reads it.


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except NatsStreamError as failure:
        tell(f"error {type(failure).__name__}: {failure.message}")
