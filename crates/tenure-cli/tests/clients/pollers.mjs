// What the poller of Azure's packages for JavaScript comes to. It is given the server's address; a worker is played here, too.
import { createHttpPoller } from '@azure/core-lro';

const url = process.argv[2];

async function send(path, body, headers = {}) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
  const response = await fetch(url + path, options);
  if (!response.ok) throw new Error(`${path}: ${response.status}: ${await response.text()}`);
  return response;
}

/** Does the next job of a kind. */
async function work(kind, act, body) {
  const { jobs: [job] } = await (await send('/v1/claim', { kinds: [kind] }, { prefer: 'wait=20' })).json();
  await send(`/v1/jobs/${job.id}/${act}`, { token: job.token, ...body });
}

/** A response as the poller reads it. */
async function read(response) {
  const text = await response.text(), body = text ? JSON.parse(text) : undefined;
  return { flatResponse: body, rawResponse: { statusCode: response.status, headers: Object.fromEntries(response.headers), body } };
}

async function polled(kind, act, body, options = {}) {
  const operation = {
    sendInitialRequest: async () => {
      const accepted = { ...(await read(await send('/v1/jobs', { kind, max_attempts: 1 }))) };
      const request = { method: 'POST', url: `${url}/v1/jobs` };
      return { ...accepted, rawResponse: { ...accepted.rawResponse, request } };
    },
    sendPollRequest: async (path) => read(await fetch(path)),
  };
  const poller = createHttpPoller(operation, { intervalInMs: 100, ...options });
  const working = work(kind, act, body);
  try {
    return await poller.pollUntilDone();
  } finally {
    await working;
  }
}

function is(what, found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)}`);
}

const made = { result: { mass: 1 }, resource_location: '/v1/version' };
is('what was made', typeof (await polled('js-made', 'complete', made)).time_zones, 'string');
is('its result', (await polled('js-none', 'complete', { result: { mass: 2 } })).result, { mass: 2 });
const via = { resourceLocationConfig: 'location' };
is('what was made, by Location', typeof (await polled('js-via-made', 'complete', made, via)).time_zones, 'string');
is('its result, by Location', (await polled('js-via', 'complete', { result: { mass: 3 } }, via)).result, { mass: 3 });
const fell = await polled('js-fell', 'fail', { error: { detail: 'too hot' }, retryable: false }).catch((error) => error);
is('its error', /too hot|fail/i.test(`${fell.message} ${JSON.stringify(fell)}`), true);
console.log('all of it');
