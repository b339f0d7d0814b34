#!/usr/bin/env node
// A worker for Node 18 or newer without packages. Run: TENURE_URL=http://localhost:8368 ./worker.mjs
// Set TENURE_TOKEN or TENURE_TOKEN_FILE if the server runs with `--auth tokens`.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
const URL = process.env.TENURE_URL ?? 'http://localhost:8368', SLOTS = 4, LEASE = Number(process.env.TENURE_LEASE ?? 30);
const me = { name: `worker.mjs on ${hostname()}` }, running = new Map();
let stopping = false, items = [], wake = () => {};

function token() { // Read for each request, so that a rotated token counts at once.
  const file = process.env.TENURE_TOKEN_FILE;
  return file ? readFileSync(file, 'utf8').trim() : process.env.TENURE_TOKEN;
}

async function request(path, body, waitSeconds = 0, method = 'POST') {
  const headers = { 'content-type': 'application/json', prefer: `wait=${waitSeconds}` };
  if (token()) headers.authorization = `Bearer ${token()}`;
  const signal = AbortSignal.timeout((waitSeconds + 10) * 1000);
  const response = await fetch(URL + path, { method, headers, body: JSON.stringify(body), signal });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.status === 204 ? null : response.json();
}

/** Your work. Return the result or throw an error. Stop when `signal` is aborted. */
async function handle(kind, args, progress, signal) {
  progress({ fraction: 0.5, message: 'working' });
  if (kind === 'add') return args.reduce((sum, number) => sum + number, 0);
  if (kind === 'wait') return sleep(args[0] * 1000, true, { signal });
  throw new TypeError(`unknown kind: ${kind}`);
}

async function run(job) {
  const entry = { token: job.token, cancel: new AbortController() }, item = { job_id: job.id, token: job.token };
  running.set(job.id, entry);
  try {
    const result = await handle(job.kind, job.args, (progress) => { entry.progress = progress; }, entry.cancel.signal);
    Object.assign(item, { outcome: 'complete', result: result ?? null });
  } catch (error) {
    Object.assign(item, { outcome: 'fail', error: { type: error.name, detail: error.message } });
  }
  items.push(entry.cancel.signal.aborted ? { job_id: job.id, token: job.token, outcome: 'release' } : item);
  wake();
}

async function heartbeat() { // Renew the leases of all running jobs.
  const jobs = [...running].map(([job_id, { token, progress }]) => ({ job_id, token, progress }));
  const { lost, cancel, command } = await request(`/v1/workers/${me.worker_id}/heartbeat`, { running: jobs });
  for (const id of [...lost, ...cancel.map((job) => job.job_id)]) running.get(id)?.cancel.abort();
  stopping ||= command === 'terminate';
}
const timer = setInterval(() => running.size && heartbeat().catch((error) => console.error(error.message)), LEASE * 333);
process.on('SIGTERM', () => { stopping = true; wake(); }); // Finish the running jobs and claim no more.
while (running.size || !stopping) {
  const sent = items, free = stopping ? 0 : SLOTS - (running.size - sent.length), busy = running.size > 0;
  const claim = free ? { ...me, limit: free, lease_seconds: LEASE } : undefined;
  try { // Report results and claim new jobs in one request. An idle worker uses a long poll.
    const answer = busy ? await request('/v1/settle', { items: sent, claim }) : await request('/v1/claim', claim, 5);
    me.worker_id = answer.worker_id ?? me.worker_id;
    items = items.slice(sent.length);
    sent.forEach((item) => running.delete(item.job_id));
    answer.jobs.forEach(run);
  } catch (error) { // A quiet worker gets 409 and keeps polling until the command is "terminate".
    stopping ||= error.message.includes('"command":"terminate"'); console.error(error.message); await sleep(1000); }
  if (running.size && !items.length) await Promise.race([new Promise((resolve) => { wake = resolve; }), sleep(1000)]);
}
clearInterval(timer);
if (me.worker_id) await request(`/v1/workers/${me.worker_id}`, undefined, 0, 'DELETE').catch(() => {});
