// What every contestant in Node shares: the lines that it and the driver say to each other.
//
// A contestant has three functions: layOut(url), producer(url, clients) with one(args) and many(all), and
// work(url, begun), which answers a function that ends the work once all that was begun is on record.

import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const TELLS_EVERY_MS = 10;
const TOO_FAR_AHEAD_MS = 2;
const STRETCH = 1000;
const REMEMBERED = 2_000_000;

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');
// The monotonic clock, which all processes of the machine share.
const nowMs = () => Number(process.hrtime.bigint()) / 1e6;
const argsNow = (number) => ({ sent_ms: nowMs(), number, pad: 'x'.repeat(50) });

const percentile = (figures, part) => {
  const sorted = Float64Array.from(figures).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;
};

class Tally {
  begun = 0;
  firstMs = 0;
  lastMs = 0;
  pauseMs = 0;
  waitsMs = [];
  pausesMs = [];

  note({ sent_ms, number }) {
    if (number < 0) return;
    const now = nowMs();
    if (this.begun === 0) this.firstMs = now;
    else this.pauseMs = Math.max(this.pauseMs, now - this.lastMs);
    this.begun += 1;
    this.lastMs = now;
    if (this.waitsMs.length < REMEMBERED) this.waitsMs.push(now - sent_ms);
    if (this.begun % STRETCH === 0) {
      this.pausesMs.push(this.pauseMs);
      this.pauseMs = 0;
    }
  }

  result() {
    return {
      jobs: this.begun,
      seconds: (this.lastMs - this.firstMs) / 1e3,
      p50_ms: percentile(this.waitsMs, 0.5),
      p99_ms: percentile(this.waitsMs, 0.99),
      late_p99_ms: percentile(this.waitsMs.slice(Math.floor(this.waitsMs.length * 2 / 3)), 0.99),
      pause_p50_ms: percentile(this.pausesMs, 0.5),
      pause_p99_ms: percentile(this.pausesMs, 0.99),
      first_ms: this.firstMs,
      last_ms: this.lastMs,
    };
  }
}

const send = (producer, from, jobs) => jobs === 1
  ? producer.one(argsNow(from))
  : producer.many(Array.from({ length: jobs }, (_, at) => argsNow(from + at)));

const eachClient = (clients, does) => Promise.all(Array.from({ length: clients }, does));

async function put(producer, clients, jobs, batch) {
  const callsMs = [];
  const start = nowMs();
  let next = 0;
  await eachClient(clients, async () => {
    while (next < jobs) {
      const from = next;
      next += batch;
      const sent = nowMs();
      await send(producer, from, Math.min(batch, jobs - from));
      callsMs.push(nowMs() - sent);
    }
  });
  const seconds = (nowMs() - start) / 1e3;
  say({ jobs, seconds, p50_ms: percentile(callsMs, 0.5), p99_ms: percentile(callsMs, 0.99) });
}

async function pace(producer, rate, seconds, batch) {
  const start = nowMs();
  const jobs = rate * seconds;
  for (let from = 0; from < jobs; from += batch) {
    const early = start + from * 1e3 / rate - nowMs();
    if (early > 0) await sleep(early);
    await send(producer, from, Math.min(batch, jobs - from));
  }
  say({ jobs, seconds: (nowMs() - start) / 1e3 });
}

async function flow(producer, clients, lines, seconds, batch, ahead) {
  const end = nowMs() + seconds * 1e3;
  let sent = 0;
  let begun = 0;
  const hear = (line) => { begun = Number(line.split(' ')[1]); };
  lines.on('line', hear);
  await eachClient(clients, async () => {
    while (nowMs() < end) {
      if (sent - begun >= ahead) {
        await sleep(TOO_FAR_AHEAD_MS);
        continue;
      }
      const from = sent;
      sent += batch;
      await send(producer, from, batch);
    }
  });
  lines.off('line', hear);
  say({ jobs: sent });
}

async function work(contestant, lines) {
  const tally = new Tally();
  const end = await contestant.work(process.env.DATABASE_URL, (args) => tally.note(args));
  let told = 0;
  const tells = setInterval(() => {
    if (tally.begun !== told) {
      told = tally.begun;
      say({ done: told });
    }
  }, TELLS_EVERY_MS);
  await once(lines, 'line');
  clearInterval(tells);
  await end();
  say(tally.result());
}

/** Does what the driver says until it says no more. */
export async function compete(contestant) {
  const url = process.env.DATABASE_URL;
  const lines = createInterface({ input: process.stdin });
  lines.on('close', () => process.exit(0));
  let producer = null;
  let clients = 0;
  for (;;) {
    const [line] = await once(lines, 'line');
    const [word, ...rest] = line.split(' ');
    const numbers = rest.map(Number);
    switch (word) {
      case 'setup':
        await contestant.layOut(url);
        say({ ok: true });
        break;
      case 'open':
        [clients] = numbers;
        producer = await contestant.producer(url, clients);
        say({ ok: true });
        break;
      case 'warm':
        for (let job = 0; job < numbers[0]; job += 1) await producer.one(argsNow(-1));
        say({ ok: true });
        break;
      case 'put': await put(producer, clients, ...numbers); break;
      case 'pace': await pace(producer, ...numbers); break;
      case 'flow': await flow(producer, clients, lines, ...numbers); break;
      case 'work': await work(contestant, lines); break;
      // Said while what it was meant for came to its end.
      case 'done': break;
      default: throw new Error(`what is ${line}?`);
    }
  }
}
