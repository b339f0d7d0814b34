"""What every contestant in Python shares: the lines that it and the driver say to each other.

A contestant has lay_out(url), producer(url, clients) with one(args) and many(all), and work(url, begun), which answers
a function that ends the work once all that was begun is on record. All of them are coroutines.
"""

import asyncio
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

TELLS_EVERY_S = 0.01
TOO_FAR_AHEAD_S = 0.002
STRETCH = 1000
REMEMBERED = 2_000_000


def say(line):
    print(json.dumps(line), flush=True)


def now_ms():
    """The monotonic clock, which all processes of the machine share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC) * 1e3


def args_now(number):
    return {"sent_ms": now_ms(), "number": number, "pad": "x" * 50}


def percentile(figures, part):
    ordered = sorted(figures)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else None


class Tally:
    def __init__(self):
        self.begun = 0
        self.first_ms = self.last_ms = self.pause_ms = 0.0
        self.waits_ms, self.pauses_ms = [], []
        self.lock = threading.Lock()

    def note(self, args):
        """Handlers of some systems run on threads."""
        if args["number"] >= 0:
            with self.lock:
                self.note_now(args, now_ms())

    def note_now(self, args, now):
        if self.begun == 0:
            self.first_ms = now
        else:
            self.pause_ms = max(self.pause_ms, now - self.last_ms)
        self.begun += 1
        self.last_ms = now
        if len(self.waits_ms) < REMEMBERED:
            self.waits_ms.append(now - args["sent_ms"])
        if self.begun % STRETCH == 0:
            self.pauses_ms.append(self.pause_ms)
            self.pause_ms = 0.0

    def result(self):
        late = self.waits_ms[len(self.waits_ms) * 2 // 3 :]
        return {
            "jobs": self.begun,
            "seconds": (self.last_ms - self.first_ms) / 1e3,
            "p50_ms": percentile(self.waits_ms, 0.5),
            "p99_ms": percentile(self.waits_ms, 0.99),
            "late_p99_ms": percentile(late, 0.99),
            "pause_p50_ms": percentile(self.pauses_ms, 0.5),
            "pause_p99_ms": percentile(self.pauses_ms, 0.99),
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
        }


class Blocking:
    """A producer out of one whose calls block: each client has a thread of its own."""

    def __init__(self, producer, clients):
        self.producer = producer
        self.threads = ThreadPoolExecutor(clients) if clients > 1 else None

    async def one(self, args):
        await self.call(self.producer.one, args)

    async def many(self, every):
        await self.call(self.producer.many, every)

    async def call(self, does, what):
        if self.threads:
            await asyncio.get_running_loop().run_in_executor(self.threads, does, what)
        else:
            does(what)
            # Others have their turn as well.
            await asyncio.sleep(0)


async def send(producer, first, jobs):
    if jobs == 1:
        await producer.one(args_now(first))
    else:
        await producer.many([args_now(number) for number in range(first, first + jobs)])


async def put(producer, clients, jobs, batch):
    calls_ms, left = [], iter(range(0, jobs, batch))
    start = now_ms()

    async def client():
        for first in left:
            sent = now_ms()
            await send(producer, first, min(batch, jobs - first))
            calls_ms.append(now_ms() - sent)

    await asyncio.gather(*(client() for _ in range(clients)))
    seconds = (now_ms() - start) / 1e3
    p50, p99 = percentile(calls_ms, 0.5), percentile(calls_ms, 0.99)
    say({"jobs": jobs, "seconds": seconds, "p50_ms": p50, "p99_ms": p99})


async def pace(producer, rate, seconds, batch):
    start, jobs = now_ms(), rate * seconds
    for first in range(0, jobs, batch):
        early_ms = start + first * 1e3 / rate - now_ms()
        await asyncio.sleep(max(early_ms, 0) / 1e3)
        await send(producer, first, min(batch, jobs - first))
    say({"jobs": jobs, "seconds": (now_ms() - start) / 1e3})


async def flow(producer, clients, lines, seconds, batch, ahead):
    end = now_ms() + seconds * 1e3
    sent = begun = 0

    async def hear():
        nonlocal begun
        while True:
            begun = int((await lines.get()).split()[1])

    async def client():
        nonlocal sent
        while now_ms() < end:
            if sent - begun >= ahead:
                await asyncio.sleep(TOO_FAR_AHEAD_S)
                continue
            first = sent
            sent += batch
            await send(producer, first, batch)

    hearing = asyncio.create_task(hear())
    await asyncio.gather(*(client() for _ in range(clients)))
    hearing.cancel()
    say({"jobs": sent})


async def work(contestant, lines):
    tally = Tally()
    end = await contestant.work(os.environ["DATABASE_URL"], tally.note)

    async def tell():
        told = 0
        while True:
            await asyncio.sleep(TELLS_EVERY_S)
            if tally.begun != told:
                told = tally.begun
                say({"done": told})

    telling = asyncio.create_task(tell())
    await lines.get()
    telling.cancel()
    await end()
    say(tally.result())


async def obey(contestant):
    lines, loop = asyncio.Queue(), asyncio.get_running_loop()

    def hear():
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line.strip())
        # What still runs has nobody left to tell.
        os._exit(0)

    loop.run_in_executor(None, hear)
    url, producer, clients = os.environ["DATABASE_URL"], None, 0
    while True:
        word, *numbers = (await lines.get()).split()
        numbers = [int(number) for number in numbers]
        match word:
            case "setup":
                await contestant.lay_out(url)
                say({"ok": True})
            case "open":
                clients = numbers[0]
                producer = await contestant.producer(url, clients)
                say({"ok": True})
            case "warm":
                for _ in range(numbers[0]):
                    await producer.one(args_now(-1))
                say({"ok": True})
            case "put":
                await put(producer, clients, *numbers)
            case "pace":
                await pace(producer, *numbers)
            case "flow":
                await flow(producer, clients, lines, *numbers)
            case "work":
                await work(contestant, lines)
            case "done":
                pass  # Said while what it was meant for came to its end.
            case _:
                raise ValueError(f"what is {word}?")


def compete(contestant):
    """Does what the driver says until it says no more."""
    import uvloop

    try:
        uvloop.run(obey(contestant))
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)
