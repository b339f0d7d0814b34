"""Procrastinate: thirty jobs at once, woken by notifications."""

import asyncio

import procrastinate
from contestant import compete

AT_ONCE = 30
WORKER_CONNECTIONS = 8


def app_of(url, connections, begun=None):
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=1, max_size=connections)
    app = procrastinate.App(connector=connector)

    @app.task(name="noop", queue="default")
    async def noop(sent_ms, number, pad):
        begun({"sent_ms": sent_ms, "number": number})

    return app, noop


class Producer:
    def __init__(self, noop):
        self.noop = noop

    async def one(self, args):
        await self.noop.defer_async(**args)

    async def many(self, every):
        await self.noop.batch_defer_async(*every)


class Procrastinate:
    async def lay_out(self, url):
        app, _ = app_of(url, 2)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def producer(self, url, clients):
        app, noop = app_of(url, clients)
        await app.open_async()
        return Producer(noop)

    async def work(self, url, begun):
        app, _ = app_of(url, WORKER_CONNECTIONS, begun)
        await app.open_async()
        worker = app.run_worker_async(
            concurrency=AT_ONCE,
            install_signal_handlers=False,
            listen_notify=True,
            fetch_job_polling_interval=1.0,
        )
        working = asyncio.create_task(worker)

        async def end():
            # A cancelled worker finishes what it has begun.
            working.cancel()
            await asyncio.wait([working], timeout=10)

        return end


compete(Procrastinate())
