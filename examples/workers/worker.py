#!/usr/bin/env python3
"""A worker in Python, with nothing but its standard library: TENURE_URL=http://localhost:8368 ./worker.py"""
import json
import os
import signal
import threading
import urllib.request

URL = os.environ.get("TENURE_URL", "http://localhost:8368")
LEASE = 30
stopping = threading.Event()


def ask(path, body, wait=0):
    headers = {"content-type": "application/json", "prefer": f"wait={wait}"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=wait + 10) as answer:
        return json.load(answer)


def handle(kind, args, progress):
    """The work itself: what it returns is the job's result, what it raises fails the attempt."""
    if kind == "add":
        progress(0.5, "adding")
        return sum(args)
    raise ValueError(f"nobody here can do {kind}")


def run(job):
    """Does one job, and says all the while that it lives."""
    path, token, ended = f"/v1/jobs/{job['id']}", job["token"], threading.Event()

    def beat(**more):
        return ask(path + "/heartbeat", {"token": token, "lease_seconds": LEASE, **more})

    def live():
        while not ended.wait(LEASE / 3):
            beat()

    threading.Thread(target=live, daemon=True).start()
    end = {"job_id": job["id"], "token": token}
    try:
        result = handle(job["kind"], job["args"], lambda f, m: beat(progress={"fraction": f, "message": m}))
        return {**end, "outcome": "complete", "result": result}
    except Exception as error:
        return {**end, "outcome": "fail", "error": {"type": type(error).__name__, "detail": str(error)}}
    finally:
        ended.set()


signal.signal(signal.SIGTERM, lambda *_: stopping.set())
signal.signal(signal.SIGINT, lambda *_: stopping.set())
claim, ends = {"queues": ["default"], "limit": 10, "lease_seconds": LEASE}, []
while ends or not stopping.is_set():
    # What is done is told, and the next jobs are claimed, in one round trip; whoever stops claims no more.
    answer = ask("/v1/settle", {"items": ends} if stopping.is_set() else {"items": ends, "claim": claim})
    jobs = answer["jobs"] or ([] if ends or stopping.is_set() else ask("/v1/claim", claim, wait=5)["jobs"])
    ends = [run(job) for job in jobs]
