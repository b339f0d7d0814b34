"""huey on SQLite, every commit on disk: four threads."""

import asyncio
import logging

from contestant import Blocking, compete
from huey import SqliteHuey

THREADS = 4
# As long as it comes it waits up to ten seconds when there was nothing.
FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.02
WAITS_FOR_WRITERS_S = 30


def huey_of(url, begun=None):
    path = url.removeprefix("sqlite://")
    huey = SqliteHuey("bench", filename=path, results=False, fsync=True, timeout=WAITS_FOR_WRITERS_S)

    @huey.task(name="noop")
    def noop(args):
        begun(args)

    return huey, noop


class Producer:
    def __init__(self, noop):
        self.one = noop

    def many(self, every):
        """It has no way to enqueue many at once."""
        for args in every:
            self.one(args)


class Huey:
    async def lay_out(self, url):
        huey_of(url)

    async def producer(self, url, clients):
        _, noop = huey_of(url)
        return Blocking(Producer(noop), clients)

    async def work(self, url, begun):
        logging.getLogger("huey").setLevel(logging.ERROR)
        huey, _ = huey_of(url, begun)
        consumer = huey.create_consumer(
            workers=THREADS,
            periodic=False,
            initial_delay=FIRST_LOOK_S,
            max_delay=LAST_LOOK_S,
            check_worker_health=False,
        )
        consumer.start()

        async def end():
            await asyncio.to_thread(consumer.stop, graceful=True)

        return end


compete(Huey())
