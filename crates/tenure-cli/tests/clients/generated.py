"""What a client of the interface does that was generated from its description: nothing here is written by hand but the
calls. It is given the server's address."""
import sys
from uuid import uuid4

from tenure_client import AuthenticatedClient, Client
from tenure_client.api.jobs import (
    cancel_job, delete_job, enqueue_job, enqueue_jobs, get_job, get_job_result, list_attempts, list_jobs, put_job, retry_job,
)
from tenure_client.api.leases import acquire_lease, get_lease, release_lease, renew_lease
from tenure_client.api.queues import get_queue_stats, put_queue
from tenure_client.api.schedules import list_next_slots, put_schedule
from tenure_client.api.workers import claim_jobs, complete_job, extend_job, settle_jobs
from tenure_client.models import (
    AcquireAsk, Batch, CancelAsk, Claim, Complete, GiveBackAsk, Heartbeat, HeartbeatProgress, Job, JobState, Nothing, Outcome, Problem, QueueSpec,
    RenewAsk, Rule, ScheduleSpec, Settle, SettleItem, Submit,
)

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)

# A job is submitted, once however often that is asked, and looked at.
star = Submit(kind="star", args={"name": "Sol"}, queue="stars", tags=["bright"], max_attempts=3)
job = enqueue_job.sync(client=client, body=star, idempotency_key='"order 7"')
again = enqueue_job.sync_detailed(client=client, body=star, idempotency_key='"order 7"')
assert isinstance(job, Job) and again.parsed.id == job.id, (job, again)
assert again.headers["idempotency-replayed"] == "true" and again.headers["location"].endswith(f"/queue/{job.id}")
assert (job.state, job.status, job.attempt) == ("queued", "NotStarted", 0)
assert get_job.sync(job.id, client=client).created_at == job.created_at
other = put_job.sync(uuid4(), client=client, body=Submit(kind="star", queue="stars"))
assert other.args is None and other.created_at >= job.created_at
batch = enqueue_jobs.sync(client=client, body=Batch(jobs=[star, star]))
assert [item.created for item in batch.items] == [True, True]

# They are listed, page by page.
page = list_jobs.sync(client=client, queue=["stars"], state=[JobState.QUEUED, JobState.RUNNING], limit=3)
assert len(page.items) == 3 and page.next_cursor, page
rest = list_jobs.sync(client=client, queue=["stars"], state=[JobState.QUEUED, JobState.RUNNING], limit=3, cursor=page.next_cursor)
assert [item.id for item in rest.items] == [job.id] and rest.next_cursor is None, rest

# A worker is granted two, says that it lives, and ends both.
claimed = claim_jobs.sync(client=client, body=Claim(queues=["stars"], limit=2, lease_seconds=10.0), prefer="wait=5")
first, second = claimed.jobs
assert first.id == job.id and first.token and first.args == {"name": "Sol"} and first.lease.fence
beat = extend_job.sync(
    first.id, client=client, body=Heartbeat(token=first.token, progress=HeartbeatProgress(fraction=0.5, message="hot")))
assert beat.cancel_requested is False and 9.0 < beat.expires_in_seconds <= 10.0, beat
assert get_job.sync(job.id, client=client).progress.message == "hot"
done = complete_job.sync(first.id, client=client, body=Complete(token=first.token, result={"mass": 1}))
assert done.state == "succeeded" and not done.repeated
settled = settle_jobs.sync(client=client, body=Settle(
    items=[SettleItem(job_id=second.id, token=second.token, outcome=Outcome.FAIL, retryable=False)],
    claim=Claim(queues=["stars"])))
assert settled.items[0].status == 200 and len(settled.jobs) == 1, settled
assert get_job_result.sync(job.id, client=client) == {"mass": 1}
assert [one.outcome for one in list_attempts.sync(job.id, client=client).items] == ["succeeded"]

# One is ended, one done again, and one removed. What is refused is a problem.
third = settled.jobs[0]
assert cancel_job.sync(third.id, client=client, body=CancelAsk(reason="enough")).cancel_requested_at is not None
assert retry_job.sync(second.id, client=client, body=Nothing()).state == "queued"
assert delete_job.sync_detailed(job.id, client=client).status_code == 204
gone = get_job.sync(job.id, client=client)
assert isinstance(gone, Problem) and gone.type_ == "urn:tenure:problem:not-found", gone

# Leases.
held = acquire_lease.sync("month-end", client=client, body=AcquireAsk(owner="web-3", ttl_seconds=20.0))
busy = acquire_lease.sync("month-end", client=client, body=AcquireAsk(owner="web-4"))
assert isinstance(busy, Problem) and busy["holder"]["owner"] == "web-3", busy
assert renew_lease.sync("month-end", client=client, body=RenewAsk(token=held.token)).fence == held.fence
assert get_lease.sync("month-end", client=client).holder.owner == "web-3"
assert release_lease.sync_detailed("month-end", client=client, body=GiveBackAsk(token=held.token)).status_code == 204

# Queues and schedules.
assert put_queue.sync("stars", client=client, body=QueueSpec(max_running=4)).max_running == 4
assert get_queue_stats.sync("stars", client=client).jobs["queued"] == 2
nightly = ScheduleSpec(spec=Rule(cron="0 2 * * *"), time_zone="Europe/Copenhagen", job=Submit(kind="report"))
assert put_schedule.sync("nightly", client=client, body=nightly).name == "nightly"
assert len(list_next_slots.sync("nightly", client=client, count=3).items) == 3

# Whoever has to say who he is does so with the same calls.
assert AuthenticatedClient(base_url=sys.argv[1], token="tenure_x").token == "tenure_x"
print("all of it")
