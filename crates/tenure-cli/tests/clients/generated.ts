// What a client of the interface does whose types were generated from its description. It is given the server's address.
import createClient from "openapi-fetch";
import type { components, paths } from "./tenure.js";

type Job = components["schemas"]["Job"];
type Submit = components["schemas"]["Submit"];

declare const process: { argv: string[] };
const url = process.argv[2] ?? "http://localhost:8368";
const tenure = createClient<paths>({ baseUrl: url });

/** What was answered, where nothing else is right. */
function right<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

function is(what: string, found: unknown, wanted: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)}`);
}

// A job is submitted, once however often that is asked, and looked at.
const star: Submit = { kind: "star", args: { name: "Sol" }, queue: "stars" };
const header = { "Idempotency-Key": '"order 7"' };
const accepted = await tenure.POST("/v1/jobs", { body: star, params: { header } });
const job: Job = right(accepted);
is("the place to watch", accepted.response.headers.get("location"), `${url}/queue/${job.id}`);
is("the same again", right(await tenure.POST("/v1/jobs", { body: star, params: { header } })).id, job.id);
const path = { id: job.id };
is("its status", right(await tenure.GET("/v1/jobs/{id}", { params: { path } })).status, "NotStarted");
const other = right(await tenure.POST("/v1/jobs", { body: { ...star, max_attempts: 1 } }));

// They are listed.
const query = { queue: ["stars"], state: ["queued" as const, "running" as const], limit: 10 };
const page = right(await tenure.GET("/v1/jobs", { params: { query } }));
is("the list", page.items.map((one) => one.id), [other.id, job.id]);

// A worker is granted both, says that it lives, and ends both.
const claim = { queues: ["stars"], limit: 2, lease_seconds: 10 };
const claimed = right(await tenure.POST("/v1/claim", { body: claim, params: { header: { Prefer: "wait=5" } } }));
const [first, second] = claimed.jobs;
if (first === undefined || second === undefined) throw new Error("two were to be granted");
const beat = { token: first.token, progress: { fraction: 0.5, message: "hot" } };
is("to stop", right(await tenure.POST("/v1/jobs/{id}/heartbeat", { body: beat, params: { path } })).cancel_requested, false);
const done = { token: first.token, result: { mass: 1 }, resource_location: "/v1/version" };
is("the end", right(await tenure.POST("/v1/jobs/{id}/complete", { body: done, params: { path } })).state, "succeeded");
const items = [{ job_id: second.id, token: second.token, outcome: "fail" as const, error: { detail: "too hot" } }];
const settled = right(await tenure.POST("/v1/settle", { body: { items } }));
is("what was settled", settled.items.map((one) => one.state), ["failed"]);
const fell: Job = right(await tenure.GET("/v1/jobs/{id}", { params: { path: { id: second.id } } }));
is("why", fell.error?.detail, "too hot");

// The item in the queue leads on to what was made: whoever asks by `fetch` ends there.
is("where it leads", (await fetch(`${url}/queue/${job.id}`)).url, `${url}/v1/version`);

// What cannot be done is a problem.
const late = await tenure.POST("/v1/jobs/{id}/cancel", { body: {}, params: { path } });
is("a problem", late.error?.type, "urn:tenure:problem:state-conflict");

// Leases.
const name = { path: { name: "month-end" } };
const held = right(await tenure.POST("/v1/leases/{name}/acquire", { body: { owner: "web-3" }, params: name }));
const busy = await tenure.POST("/v1/leases/{name}/acquire", { body: { owner: "web-4" }, params: name });
is("who may not", busy.error?.type, "urn:tenure:problem:lease-held");
is("the fence", right(await tenure.POST("/v1/leases/{name}/renew", { body: { token: held.token }, params: name })).fence, held.fence);
is("given back", (await tenure.POST("/v1/leases/{name}/release", { body: { token: held.token }, params: name })).response.status, 204);
console.log("all of it");
