#!/usr/bin/env python3
"""A worker in Python without dependencies. Run: TENURE_URL=http://localhost:8368 ./worker.py
TENURE_TOKEN, or the file TENURE_TOKEN_FILE, has the access token of a server with `--auth tokens`."""
import contextlib, functools, json, os, signal, threading, urllib.request
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

URL, SLOTS, stopping = os.environ.get("TENURE_URL", "http://localhost:8368"), 4, threading.Event()
LEASE = float(os.environ.get("TENURE_LEASE", 30))

def token():  # Read for each request, so that a rotated token counts at once.
    with open(os.environ["TENURE_TOKEN_FILE"]) if "TENURE_TOKEN_FILE" in os.environ else contextlib.nullcontext() as file:
        return file.read().strip() if file else os.environ.get("TENURE_TOKEN", "")

def request(method, path, body=None, wait_seconds=0):
    headers = {"content-type": "application/json", "prefer": f"wait={wait_seconds}"}
    headers |= {"authorization": f"Bearer {token()}"} if token() else {}
    request = urllib.request.Request(URL + path, json.dumps(body).encode() if body else None, headers, method=method)
    with urllib.request.urlopen(request, timeout=wait_seconds + 10) as response:
        return json.load(response) if response.status != 204 else None
post = functools.partial(request, "POST")

def handle(kind, args, status, cancelled):
    """Your work. Return the result or raise an error. Stop when `cancelled` is set."""
    if kind == "add":
        status["progress"] = {"fraction": 0.5, "message": "adding"}
        return sum(args)
    if kind == "wait":
        return not cancelled.wait(args[0])
    raise ValueError(f"unknown kind: {kind}")

def heartbeat(job, status, done, cancelled):
    while not done.wait(LEASE / 6):  # Renew the lease until the job is done.
        try:
            body = {"token": job["token"], "lease_seconds": LEASE, **status}
            if post(f"/v1/jobs/{job['id']}/heartbeat", body)["cancel_requested"]:
                cancelled.set()
        except OSError as error:  # Retry, unless the lease is lost.
            if getattr(error, "code", 0) in (404, 409, 410):
                return cancelled.set()

def run(job):
    status, done, cancelled = {}, threading.Event(), threading.Event()
    item = {"job_id": job["id"], "token": job["token"]}
    threading.Thread(target=heartbeat, args=(job, status, done, cancelled), daemon=True).start()
    try:
        result = json.loads(json.dumps(handle(job["kind"], job["args"], status, cancelled), allow_nan=False))
        return {**item, "outcome": "release"} if cancelled.is_set() else {**item, "outcome": "complete", "result": result}
    except Exception as error:
        return {**item, "outcome": "fail", "error": {"type": type(error).__name__, "detail": str(error)}}
    finally:
        done.set()

signal.signal(signal.SIGTERM, lambda *_: stopping.set())
pool, running, items, me = ThreadPoolExecutor(SLOTS), set(), [], {"name": f"worker.py on {os.uname().nodename}"}
while running or items or not stopping.is_set():
    finished, running = wait(running, 1, FIRST_COMPLETED) if running else ((), running)
    items += [job.result() for job in finished]
    free = 0 if stopping.is_set() else SLOTS - len(running)
    claim = {**me, "limit": free, "lease_seconds": LEASE} if free else None
    try:  # Report results and claim new jobs in one request. An idle worker uses a long poll.
        busy = items or free < SLOTS
        answer = post("/v1/settle", {"items": items, "claim": claim}) if busy else post("/v1/claim", claim, 5)
        items, running = [], running | {pool.submit(run, job) for job in answer["jobs"]}
        me["worker_id"], command = answer["worker_id"] or me["worker_id"], answer.get("command")
    except OSError as error:  # A quiet worker gets 409 and keeps polling until the command is "terminate".
        command = json.load(error).get("command") if getattr(error, "code", 0) == 409 else print("retrying:", error)
        threading.Event().wait(1)
    stopping.set() if command == "terminate" else None
with contextlib.suppress(OSError, KeyError):  # Leave the list of workers.
    request("DELETE", f"/v1/workers/{me['worker_id']}")
