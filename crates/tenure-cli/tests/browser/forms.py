"""Each thing that can be done on a page is done by its form, and the store is asked whether it was."""

from playwright.sync_api import expect


def press(page, name):
    page.get_by_role("main").get_by_role("button", name=name, exact=True).click()


def play(stage):
    page = stage.page()
    jobs(stage, page)
    queues(stage, page)
    schedules(stage, page)
    leases(stage, page)


def state(stage, job):
    return stage.ask("GET", f"/v1/jobs/{job}")["state"]


def jobs(stage, page):
    job = stage.enqueue("nobody_does_this", delay_seconds=3600)
    page.goto(f"{stage.ui}jobs/{job}")
    press(page, "Run now")
    expect(page.get_by_role("status")).to_contain_text("due now")
    assert state(stage, job) == "queued", state(stage, job)
    press(page, "Cancel this job")
    expect(page.get_by_role("status")).to_contain_text("cancelled")
    assert state(stage, job) == "cancelled"
    press(page, "Do again")
    assert state(stage, job) == "queued"
    press(page, "Cancel this job")
    press(page, "Delete this job")
    expect(page).to_have_url(f"{stage.ui}jobs?did=delete")


def queues(stage, page):
    stage.enqueue("nobody_does_this", queue="mail")
    page.goto(f"{stage.ui}queues")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="mail"))
    row.get_by_role("button", name="pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="resume").click()
    expect(row).not_to_contain_text("paused")


def schedules(stage, page):
    stage.ask("PUT", "/v1/schedules/nightly", {"spec": {"cron": "30 2 * * *"}, "job": {"kind": "close_books"}})
    page.goto(f"{stage.ui}schedules/nightly")
    press(page, "Pause")
    expect(page.get_by_role("main").get_by_role("button", name="Resume")).to_be_visible()
    press(page, "Resume")
    press(page, "Run now")
    expect(page.get_by_role("status")).to_contain_text("enqueued")
    assert stage.ask("GET", "/v1/jobs?kind=close_books")["items"]


def leases(stage, page):
    stage.ask("POST", "/v1/leases/month-end/acquire", {"owner": "ledger-1", "ttl_seconds": 600})
    page.goto(f"{stage.ui}leases/month-end")
    page.get_by_label("Write its name").fill("month-end")
    page.get_by_label("Why").fill("the ledger is on fire")
    press(page, "Break month-end")
    expect(page.get_by_role("status")).to_contain_text("taken from")
    assert not stage.ask("GET", "/v1/leases/month-end")["locked"]
