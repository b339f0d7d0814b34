"""dramatiq on Redis: eight threads, without what a job that does nothing has no use for."""

import asyncio

import dramatiq
from contestant import Blocking, compete
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Callbacks, Pipelines, Retries, ShutdownNotifications

THREADS = 8
STOPS_WITHIN_MS = 10_000


def broker_of(url, begun=None):
    broker = RedisBroker(url=url, middleware=[Pipelines(), Callbacks(), Retries(), ShutdownNotifications()])
    dramatiq.set_broker(broker)

    @dramatiq.actor(actor_name="noop")
    def noop(args):
        begun(args)

    return broker, noop


class Producer:
    def __init__(self, noop):
        self.one = noop.send

    def many(self, every):
        """It has no way to enqueue many at once."""
        for args in every:
            self.one(args)


class Dramatiq:
    async def lay_out(self, url):
        pass  # It makes what it needs when it needs it.

    async def producer(self, url, clients):
        _, noop = broker_of(url)
        return Blocking(Producer(noop), clients)

    async def work(self, url, begun):
        broker, _ = broker_of(url, begun)
        worker = dramatiq.Worker(broker, worker_threads=THREADS)
        worker.start()

        async def end():
            await asyncio.to_thread(worker.stop, STOPS_WITHIN_MS)

        return end


compete(Dramatiq())
