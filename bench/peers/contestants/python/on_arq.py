"""arq on Redis: a hundred jobs at once."""

import asyncio

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func
from contestant import compete

AT_ONCE = 100
# Half a second as it comes.
LOOKS_EVERY_S = 0.01
READ_AT_ONCE = 500
# It has no way to enqueue many at once: so many calls under way.
CALLS_AT_ONCE = 32


class Producer:
    def __init__(self, pool):
        self.pool = pool

    async def one(self, args):
        await self.pool.enqueue_job("noop", args)

    async def many(self, every):
        for first in range(0, len(every), CALLS_AT_ONCE):
            await asyncio.gather(*map(self.one, every[first : first + CALLS_AT_ONCE]))


class Arq:
    async def lay_out(self, url):
        pass  # It makes what it needs when it needs it.

    async def producer(self, url, clients):
        return Producer(await create_pool(RedisSettings.from_dsn(url)))

    async def work(self, url, begun):
        async def noop(context, args):
            begun(args)

        worker = Worker(
            functions=[func(noop, name="noop", keep_result=0)],
            redis_settings=RedisSettings.from_dsn(url),
            max_jobs=AT_ONCE,
            poll_delay=LOOKS_EVERY_S,
            queue_read_limit=READ_AT_ONCE,
            handle_signals=False,
        )
        working = asyncio.create_task(worker.async_run())

        async def end():
            worker.allow_pick_jobs = False
            working.cancel()
            await asyncio.wait([working], timeout=10)
            # What has begun ends.
            await asyncio.gather(*worker.tasks.values())

        return end


compete(Arq())
