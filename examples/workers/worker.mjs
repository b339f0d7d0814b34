#!/usr/bin/env node
// A worker for Node 18 or newer, without packages: TENURE_URL=http://localhost:8368 ./worker.mjs
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
const URL = process.env.TENURE_URL ?? 'http://localhost:8368', SLOTS = 4, LEASE = Number(process.env.TENURE_LEASE ?? 30);
const me = { name: `worker.mjs on ${hostname()}` }, held = new Map(); // Who asks, and what it runs.
let stopping = false, ends = [], freed = () => {};

async function ask(path, body, patience = 0, method = 'POST') {
  const headers = { 'content-type': 'application/json', prefer: `wait=${patience}` };
  const signal = AbortSignal.timeout((patience + 10) * 1000);
  const answer = await fetch(URL + path, { method, headers, body: JSON.stringify(body), signal });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return answer.status === 204 ? null : answer.json();
}

/** The work: what it returns is the result, what it throws fails the attempt. `stop` is aborted when it shall end. */
async function handle(kind, args, tell, stop) {
  tell({ fraction: 0.5, message: 'at it' });
  if (kind === 'add') return args.reduce((sum, one) => sum + one, 0);
  if (kind === 'wait') return sleep(args[0] * 1000, true, { signal: stop });
  throw new TypeError(`nobody here can do ${kind}`);
}

async function run(job) {
  const one = { token: job.token, stop: new AbortController() }, end = { job_id: job.id, token: job.token };
  held.set(job.id, one);
  try {
    const result = await handle(job.kind, job.args, (progress) => { one.progress = progress; }, one.stop.signal);
    Object.assign(end, { outcome: 'complete', result: result ?? null });
  } catch (error) {
    Object.assign(end, { outcome: 'fail', error: { type: error.name, detail: error.message } });
  }
  ends.push(one.stop.signal.aborted ? { job_id: job.id, token: job.token, outcome: 'release' } : end);
  freed();
}

async function live() { // Says of all jobs at once that they are being done.
  const running = [...held].map(([job_id, { token, progress }]) => ({ job_id, token, progress }));
  const { lost, cancel, command } = await ask(`/v1/workers/${me.worker_id}/heartbeat`, { running });
  for (const id of [...lost, ...cancel.map((one) => one.job_id)]) held.get(id)?.stop.abort();
  stopping ||= command === 'terminate';
}
const beat = setInterval(() => held.size && live().catch((error) => console.error(error.message)), LEASE * 333);
process.on('SIGTERM', () => { stopping = true; freed(); }); // What runs is finished, and nothing more is begun.
while (held.size || !stopping) {
  const told = ends, free = stopping ? 0 : SLOTS - (held.size - told.length), busy = held.size > 0;
  const claim = free ? { ...me, limit: free, lease_seconds: LEASE } : undefined;
  try { // What is done is told and more is claimed in one round trip; whoever has nothing to do waits for a job.
    const answer = busy ? await ask('/v1/settle', { items: told, claim }) : await ask('/v1/claim', claim, 5);
    me.worker_id = answer.worker_id ?? me.worker_id;
    ends = ends.slice(told.length);
    told.forEach((end) => held.delete(end.job_id));
    answer.jobs.forEach(run);
  } catch (error) { // Whoever is told to take no more jobs asks on, until it is told to end.
    stopping ||= error.message.includes('"command":"terminate"'); console.error(error.message); await sleep(1000); }
  if (held.size && !ends.length) await Promise.race([new Promise((go) => { freed = go; }), sleep(1000)]);
}
clearInterval(beat);
if (me.worker_id) await ask(`/v1/workers/${me.worker_id}`, undefined, 0, 'DELETE').catch(() => {});
