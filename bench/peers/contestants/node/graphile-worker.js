// graphile-worker: with a local queue and completions in batches, or as it comes (`as-it-comes`).

import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker';
import pg from 'pg';
import { compete } from './contestant.js';

const AT_ONCE = 24;
const AHEAD = 500;
const tuned = { localQueue: { size: AHEAD }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const chosen = process.argv.includes('as-it-comes') ? {} : tuned;

const pool = (url, max) => new pg.Pool({ connectionString: url, max });

await compete({
  async layOut(url) {
    const pgPool = pool(url, 1);
    await runMigrations({ pgPool });
    await pgPool.end();
  },

  async producer(url, clients) {
    const utils = await makeWorkerUtils({ pgPool: pool(url, clients) });
    return {
      one: (args) => utils.addJob('noop', args),
      many: (all) => utils.addJobs(all.map((payload) => ({ identifier: 'noop', payload }))),
    };
  },

  async work(url, begun) {
    const silent = new Logger(() => () => {});
    const worker = { connectionString: url, concurrentJobs: AT_ONCE, maxPoolSize: AT_ONCE + 1, logger: silent };
    const runner = await run({
      preset: { worker: { ...worker, ...chosen } },
      taskList: { noop: (args) => begun(args) },
      noHandleSignals: true,
    });
    return () => runner.stop();
  },
});
