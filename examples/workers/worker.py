#!/usr/bin/env python3
"""A worker in Python, with nothing but its standard library: TENURE_URL=http://localhost:8368 ./worker.py"""
import json, os, signal, threading, urllib.request
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

URL, SLOTS, LEASE, stopping = os.environ.get("TENURE_URL", "http://localhost:8368"), 4, 30, threading.Event()

def ask(path, body, patience=0):
    headers = {"content-type": "application/json", "prefer": f"wait={patience}"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=patience + 10) as answer:
        return json.load(answer)

def handle(kind, args, told, stop):
    """The work: what it returns is the result, what it raises fails the attempt. `stop` is set when it shall end."""
    if kind == "add":
        told["progress"] = {"fraction": 0.5, "message": "adding"}
        return sum(args)
    raise ValueError(f"nobody here can do {kind}")

def live(job, told, ended, stop):
    while not ended.wait(LEASE / 6):  # Says that the job is being done, until it has ended.
        try:
            beat = {"token": job["token"], "lease_seconds": LEASE, **told}
            if ask(f"/v1/jobs/{job['id']}/heartbeat", beat)["cancel_requested"]:
                stop.set()
        except OSError as error:  # The next one may come through, unless the job is somebody else's now.
            if getattr(error, "code", 0) in (404, 409, 410):
                return stop.set()

def run(job):
    told, ended, stop, end = {}, threading.Event(), threading.Event(), {"job_id": job["id"], "token": job["token"]}
    threading.Thread(target=live, args=(job, told, ended, stop), daemon=True).start()
    try:
        result = json.loads(json.dumps(handle(job["kind"], job["args"], told, stop), allow_nan=False))
        return {**end, "outcome": "release"} if stop.is_set() else {**end, "outcome": "complete", "result": result}
    except Exception as error:
        return {**end, "outcome": "fail", "error": {"type": type(error).__name__, "detail": str(error)}}
    finally:
        ended.set()

signal.signal(signal.SIGTERM, lambda *_: stopping.set())
pool, running, ends, me = ThreadPoolExecutor(SLOTS), set(), [], {"name": f"worker.py on {os.uname().nodename}"}
while running or ends or not stopping.is_set():
    done, running = wait(running, 1, FIRST_COMPLETED) if running else ((), running)
    ends += [job.result() for job in done]
    free = 0 if stopping.is_set() else SLOTS - len(running)
    claim = {**me, "limit": free, "lease_seconds": LEASE} if free else None
    try:  # What is done is told and more is claimed in one round trip; whoever has nothing to do waits for a job.
        settle = ends or free < SLOTS
        answer = ask("/v1/settle", {"items": ends, "claim": claim}) if settle else ask("/v1/claim", claim, 5)
        ends, running = [], running | {pool.submit(run, job) for job in answer["jobs"]}
        me["worker_id"], told = answer["worker_id"] or me["worker_id"], answer.get("command")
    except OSError as error:  # Whoever is told to take no more jobs asks on until it is told to end.
        told = json.load(error).get("command") if getattr(error, "code", 0) == 409 else print("trying again:", error)
        threading.Event().wait(1)
    stopping.set() if told == "terminate" else None
