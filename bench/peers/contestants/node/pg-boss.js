// pg-boss: fetches of 500 by four fetchers, woken by notifications.

import { PgBoss } from 'pg-boss';
import { compete } from './contestant.js';

const QUEUE = 'noop';
const FETCHERS = 4;
const FETCHED = 500;
const POLL_SECONDS = 0.5;

async function start(url, max, more = {}) {
  const boss = new PgBoss({ connectionString: url, max, schedule: false, useListenNotify: true, ...more });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  return boss;
}

await compete({
  async layOut(url) {
    const boss = await start(url, 2);
    await boss.createQueue(QUEUE, { notify: true });
    await boss.stop({ graceful: false });
  },

  async producer(url, clients) {
    const boss = await start(url, clients, { supervise: false });
    return {
      one: (args) => boss.send(QUEUE, args),
      many: (all) => boss.insert(QUEUE, all.map((data) => ({ data }))),
    };
  },

  async work(url, begun) {
    const boss = await start(url, FETCHERS + 3);
    const options = {
      batchSize: FETCHED,
      localConcurrency: FETCHERS,
      pollingIntervalSeconds: POLL_SECONDS,
      notifyPollingIntervalSeconds: POLL_SECONDS,
      burstWhenBatchFull: true,
    };
    await boss.work(QUEUE, options, async (jobs) => {
      for (const job of jobs) begun(job.data);
    });
    return () => boss.stop({ graceful: true, timeout: 5000 });
  },
});
