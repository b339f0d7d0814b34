"""Celery on Redis: two threads, so that the handlers run in the process that counts them."""

import asyncio
import logging
import threading

from celery import Celery
from celery.worker import WorkController
from contestant import Blocking, compete

THREADS = 2
AHEAD = 64
CONNECTIONS = 32


def app_of(url, begun=None):
    app = Celery("bench", broker=url)
    app.conf.update(
        task_ignore_result=True,
        worker_prefetch_multiplier=AHEAD,
        broker_pool_limit=CONNECTIONS,
        broker_connection_retry_on_startup=True,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
    )

    @app.task(name="noop")
    def noop(args):
        begun(args)

    app.finalize()
    return app, noop


class Producer:
    def __init__(self, noop):
        self.noop = noop

    def one(self, args):
        self.noop.apply_async((args,), ignore_result=True)

    def many(self, every):
        """It has no way to enqueue many at once."""
        for args in every:
            self.one(args)


class OnRedis:
    async def lay_out(self, url):
        pass  # It makes what it needs when it needs it.

    async def producer(self, url, clients):
        _, noop = app_of(url)
        return Blocking(Producer(noop), clients)

    async def work(self, url, begun):
        logging.disable(logging.WARNING)
        app, _ = app_of(url, begun)
        worker = WorkController(
            app=app,
            pool_cls="threads",
            concurrency=THREADS,
            loglevel="ERROR",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        threading.Thread(target=worker.start, daemon=True).start()

        async def end():
            # It begins with what it holds, and ends it.
            await asyncio.to_thread(worker.stop)

        return end


compete(OnRedis())
