"""What clients do that know nothing of this server and follow what long-running operations have in common. They are given
the server's address; a worker is played here, too."""
import sys, threading, time

import httpx
import requests
from azure.core import PipelineClient
from azure.core.pipeline.policies import RedirectPolicy
from azure.core.polling import LROPoller
from azure.core.polling.base_polling import LROBasePolling
from azure.core.rest import HttpRequest

url = sys.argv[1]


def work(kind, seconds, end):
    """Does the next job of a kind, in so long."""
    claimed = requests.post(f"{url}/v1/claim", json={"kinds": [kind]}, headers={"prefer": "wait=20"}).json()["jobs"][0]
    time.sleep(seconds)
    act, body = end
    requests.post(f"{url}/v1/jobs/{claimed['id']}/{act}", json={"token": claimed["token"], **body}).raise_for_status()


def at_work(*args):
    thread = threading.Thread(target=work, args=args)
    thread.start()
    return thread


def accepted(kind):
    return requests.post(f"{url}/v1/jobs", json={"kind": kind, "max_attempts": 1})


MADE = ("complete", {"result": {"mass": 1}, "resource_location": "/v1/version"})


def polled(kind, end, monitor=True, location=None, seconds=1.5, **options):
    """What azure-core's poller comes to: its answer, its status, and how long it took. The first answer can be had without its
    monitor, and with another location, to see why both are as they are."""
    client = PipelineClient(url, per_call_policies=[RedirectPolicy()])
    request = HttpRequest("POST", f"{url}/v1/jobs", json={"kind": kind, "max_attempts": 1})
    first = client.send_request(request, _return_pipeline_response=True)
    headers = first.http_response.headers
    if not monitor:
        del headers["operation-location"]
    if location:
        headers["location"] = url + location.format(id=first.http_response.json()["id"])
    working, began = at_work(kind, seconds, end), time.monotonic()
    poller = LROPoller(client, first, lambda response: response.http_response, LROBasePolling(timeout=1, **options))
    try:
        return poller.result(timeout=30), poller.status(), time.monotonic() - began
    finally:
        working.join()


# The monitor wins over the item in the queue; at the end the poller gets what was made, from where that is.
answer, status, took = polled("monitor", MADE)
assert status == "Succeeded" and answer.request.url.endswith("/v1/version"), (status, answer.request.url)
assert "version" in answer.json() and took >= 1.4, took
print("azure-core, Operation-Location: waits until the end, and gets what was made")

# The usual job makes no resource. After the end the poller gets the item in the queue, from an absolute URL.
answer, status, took = polled("no-resource", ("complete", {"result": {"mass": 2}}), seconds=0.5)
assert status == "Succeeded" and answer.json()["result"] == {"mass": 2} and took >= 0.4, (status, answer.request.url, took)
print("azure-core, a job without a resource: gets its result")

# The same where the description of a service says that the end is at `Location`.
for end, get in ((("complete", {"result": 3}), lambda told: told["result"] == 3), (MADE, lambda told: "version" in told)):
    answer, status, took = polled("via-location", end, seconds=0.5, lro_options={"final-state-via": "location"})
    assert status == "Succeeded" and get(answer.json()) and took >= 0.4, (status, answer.request.url, took)
print("azure-core, final-state-via location: gets the result, or what was made")

# Without the monitor it believes the item in the queue, which answers 200 while the job waits: it has a wrong answer at once.
# That is why every 202 names the monitor as well.
answer, status, took = polled("article-only", MADE, monitor=False)
assert status == "Succeeded" and answer.json()["status"] != "Succeeded" and took < 1.4, (status, answer.json(), took)
print("azure-core, Location of the queue item alone: a wrong answer at once, so it is never alone")

# Sent to the result, it waits until that is there.
answer, status, took = polled("result-only", MADE, monitor=False, location="/v1/jobs/{id}/result")
assert status == "Succeeded" and answer.json() == {"mass": 1} and took >= 1.4, (status, took)
print("azure-core, Location of the result: waits until it is there")

# A job that fails is an operation that has failed, and its error is told.
try:
    polled("falls", ("fail", {"error": {"detail": "too hot"}, "retryable": False}))
    raise AssertionError("it has failed")
except Exception as error:
    assert "too hot" in str(error), repr(error)
print("azure-core, Operation-Location: a job that fails is told with its error")

# A poller that is sent to the result is answered 202 until it is there.
job = accepted("result").json()
working = at_work("result", 1.5, ("complete", {"result": {"mass": 1}}))
looks = 0
while (answer := requests.get(url + job["links"]["result"])).status_code == 202:
    looks += 1
    time.sleep(int(answer.headers["retry-after"]))
working.join()
assert answer.json() == {"mass": 1} and looks >= 1
print("Location polling of the result: 202 until it is there, and then 200")

# Whoever follows 303 ends at what was made; whoever does not is told where it is; the monitor never leads elsewhere.
first = accepted("article")
item, monitor = first.headers["location"], first.headers["operation-location"]
assert first.status_code == 202 and int(first.headers["retry-after"]) >= 1
assert requests.get(item).json()["status"] == "NotStarted"
working = at_work("article", 0, MADE)
assert requests.get(monitor, headers={"prefer": "wait=20"}).json()["status"] == "Succeeded"
working.join()
assert requests.get(item).url == f"{url}/v1/version"
bare = httpx.get(item)
assert (bare.status_code, bare.headers["location"], bare.json()["status"]) == (303, "/v1/version", "Succeeded")
assert httpx.get(item, follow_redirects=True).url == f"{url}/v1/version"
for ask in (requests.get, httpx.get):
    told = ask(monitor)
    assert (told.status_code, told.json()["resourceLocation"]) == (200, f"{url}/v1/version")
print("requests follows 303, httpx is told where it leads, and the monitor leads nowhere")
print("all of it")
