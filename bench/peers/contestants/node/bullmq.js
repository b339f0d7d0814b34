// BullMQ on Redis: a hundred jobs at once, which are removed when they are done.

import { Queue, Worker } from 'bullmq';
import { compete } from './contestant.js';

const QUEUE = 'noop';
const AT_ONCE = 100;
// As it comes it keeps everything for ever; its guide recommends this.
const forgets = { removeOnComplete: true };

const connection = (url) => ({ url, maxRetriesPerRequest: null });

await compete({
  // It makes what it needs when it needs it.
  async layOut() {},

  async producer(url) {
    const queue = new Queue(QUEUE, { connection: connection(url) });
    await queue.waitUntilReady();
    return {
      one: (args) => queue.add('noop', args, forgets),
      many: (all) => queue.addBulk(all.map((data) => ({ name: 'noop', data, opts: forgets }))),
    };
  },

  async work(url, begun) {
    const options = { connection: connection(url), concurrency: AT_ONCE };
    const worker = new Worker(QUEUE, async (job) => begun(job.data), options);
    worker.on('error', (error) => console.error(error));
    await worker.waitUntilReady();
    return () => worker.close();
  },
});
