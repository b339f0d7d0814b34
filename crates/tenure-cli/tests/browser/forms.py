"""Each thing that can be done on a page is done by its form, and the store is asked whether it was."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import expect


def press(page, name):
    page.get_by_role("main").get_by_role("button", name=name, exact=True).click()


def play(stage):
    page = stage.page()
    jobs(stage, page)
    new_job(stage, page)
    views(stage, page)
    queues(stage, page)
    schedules(stage, page)
    leases(stage, page)
    apps(stage, page)
    bulk(stage, page)
    webhooks(stage, page)
    settings(stage, page)


def state(stage, job):
    return stage.ask("GET", f"/v1/jobs/{job}")["state"]


def jobs(stage, page):
    job = stage.enqueue("nobody_does_this", delay_seconds=3600)
    page.goto(f"{stage.ui}jobs/{job}")
    page.get_by_role("main").get_by_text("Cancel…").click()
    expect(page.get_by_text("will not run")).to_be_visible()
    stage.judged(page, "a job that is to be called off")
    # What somebody opened is closed when he goes on to something else.
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_text("will not run")).to_be_hidden()
    press(page, "Run now")
    expect(page.get_by_role("status")).to_contain_text("due now")
    assert state(stage, job) == "queued", state(stage, job)
    press(page, "Cancel job")
    expect(page.get_by_role("status")).to_contain_text("cancelled")
    assert state(stage, job) == "cancelled"
    press(page, "Retry")
    assert state(stage, job) == "queued"
    press(page, "Cancel job")
    page.get_by_text("Delete…").click()
    press(page, "Delete job")
    expect(page.get_by_role("status")).to_contain_text("deleted")
    # It is told once.
    expect(page).to_have_url(f"{stage.ui}jobs")
    page.reload()
    expect(page.get_by_role("status")).to_have_count(0)


def new_job(stage, page):
    """A job is filled in, refused where it is wrong, enqueued, and another like it begins with what it has."""
    page.goto(f"{stage.ui}jobs")
    page.get_by_role("link", name="New job").click()
    page.get_by_label("Kind").fill("by_hand")
    page.get_by_label("Args").fill('{"to": ')
    page.get_by_label("Queue").fill("nobodys")
    expect(page.get_by_label("Due time, in")).to_be_visible()
    press(page, "Enqueue job")
    expect(page.get_by_role("alert")).to_contain_text("not valid JSON")
    stage.judged(page, "a job that is refused")
    page.get_by_label("Args").fill('{"to": "ada"}')
    press(page, "Enqueue job")
    expect(page.get_by_role("status")).to_contain_text("enqueued")
    made = stage.ask("GET", "/v1/jobs?kind=by_hand")["items"]
    assert len(made) == 1 and made[0]["args"] == {"to": "ada"} and made[0]["queue"] == "nobodys", made
    page.get_by_role("link", name="Duplicate").click()
    expect(page.get_by_label("Kind")).to_have_value("by_hand")
    press(page, "Enqueue job")
    expect(page.get_by_role("status")).to_contain_text("enqueued")
    made = stage.ask("GET", "/v1/jobs?kind=by_hand")["items"]
    assert len(made) == 2 and {str(job["args"]) for job in made} == {"{'to': 'ada'}"}, made
    page.get_by_role("link", name="this job").click()
    expect(page.get_by_role("searchbox", name="job, lease or schedule")).to_have_value(made[0]["id"])


def views(stage, page):
    """Columns stand in the address, and a view keeps it."""
    stage.enqueue("nobody_does_this", delay_seconds=3600)
    page.goto(f"{stage.ui}jobs?q=kind%3Anobody_does_this")
    main = page.get_by_role("main")
    main.get_by_text("Columns", exact=True).click()
    page.get_by_label("Due").check()
    page.get_by_label("Queue", exact=True).uncheck()
    press(page, "Apply")
    expect(page.get_by_role("columnheader", name="Due")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Queue")).to_have_count(0)
    main.get_by_text("Views", exact=True).click()
    page.get_by_label("Save this search").fill("undone")
    stage.judged(page, "keeping a view")
    press(page, "Save view")
    expect(page.get_by_role("status")).to_contain_text("saved")
    page.goto(f"{stage.ui}jobs")
    main.get_by_role("link", name="undone").click()
    expect(page.get_by_role("searchbox")).to_have_value("kind:nobody_does_this")
    expect(page.get_by_role("columnheader", name="Due")).to_be_visible()
    main.get_by_text("Views", exact=True).click()
    press(page, "Remove undone")
    expect(main.get_by_role("link", name="undone")).to_have_count(0)


def queues(stage, page):
    stage.enqueue("nobody_does_this", queue="post-room")
    page.goto(f"{stage.ui}queues")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="post-room"))
    row.get_by_role("button", name="pause").click()
    expect(page.locator("#queue")).to_contain_text("paused")
    press(page, "Undo")
    expect(page.locator("#queue .paused")).to_have_count(0)
    press(page, "Pause queue")
    press(page, "Resume queue")
    expect(page.locator("#queue .paused")).to_have_count(0)
    page.get_by_label("Max running jobs").fill("3")
    page.get_by_label("Rate limit: jobs").fill("10")
    page.get_by_label("Rate limit: interval").fill("60")
    press(page, "Save limits")
    expect(page.get_by_role("status")).to_contain_text("Limits saved")
    queue = stage.ask("GET", "/v1/queues/post-room")
    assert (queue["max_running"], queue["rate"]["limit"]) == (3, 10), queue
    page.get_by_label("Max running jobs").fill("")
    page.get_by_label("Rate limit: jobs").fill("")
    press(page, "Save limits")
    queue = stage.ask("GET", "/v1/queues/post-room")
    assert (queue["max_running"], queue["rate"]) == (None, None), queue
    page.get_by_label("To confirm, type").fill("post-room")
    press(page, "Purge post-room")
    expect(page.get_by_role("status")).to_contain_text("Purge started")
    eventually(page, lambda: not stage.ask("GET", "/v1/jobs?queue=post-room")["items"])


def apps(stage, page):
    """Each act asks once more before it does something; runs lead to their app and back."""
    # One run at a time is let in, and the last one of the shop's past may go on for half a minute.
    active = lambda state: stage.ask("GET", f"/v1/jobs?kind=apps.rebuild-search&state={state}")["items"]
    eventually(page, lambda: not active("queued") and not active("running"))
    page.goto(f"{stage.ui}apps")
    page.get_by_role("link", name="rebuild-search").click()
    main = page.get_by_role("main")
    main.get_by_text("Run…").click()
    page.get_by_label("Arguments, one per line").fill("--all\na b")
    press(page, "Run now")
    expect(page.get_by_role("status")).to_contain_text("Run requested")
    runs = stage.ask("GET", "/v1/jobs?kind=apps.rebuild-search")["items"]
    assert runs[0]["args"]["arguments"] == ["--all", "a b"], runs[0]
    page.locator(".runs a.id").first.click()
    page.get_by_role("link", name="rebuild-search", exact=True).click()
    main.get_by_text("Stop…").click()
    page.get_by_label("Reason, shown to others").fill("audit week")
    press(page, "Stop rebuild-search")
    expect(page.locator("#app")).to_contain_text("Stopped: audit week")
    assert stage.ask("GET", "/v1/apps/triggered/rebuild-search")["stopped"] == "audit week"
    expect(main.get_by_text("Run…")).to_have_count(0)
    press(page, "Start")
    expect(page.get_by_role("status")).to_contain_text("can run it again")
    assert stage.ask("GET", "/v1/apps/triggered/rebuild-search")["stopped"] is None
    page.goto(f"{stage.ui}apps/continuous/mail-intake")
    lines = page.locator(".logs")
    expect(lines).to_contain_text("out:")
    before = lines.inner_text().count("\n")
    eventually(page, lambda: lines.inner_text().count("\n") > before)


def bulk(stage, page):
    """All that a search means, by a job of its own; many of them only for whoever writes how many."""
    ask = {"jobs": [{"kind": "many", "queue": "nobody", "delay_seconds": 3600} for _ in range(120)]}
    stage.ask("POST", "/v1/jobs/batch", ask)
    page.goto(f"{stage.ui}jobs?q=kind%3Amany&state=scheduled")
    page.get_by_role("link", name="All matching").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("120 jobs match")
    page.get_by_role("radio", name="Cancel").check()
    page.get_by_label("To confirm, type the number").fill("12")
    stage.expects_outage = True
    press(page, "Cancel 120 jobs")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
    stage.expects_outage = False
    assert len(stage.ask("GET", "/v1/jobs?kind=many&state=scheduled&limit=200")["items"]) == 120
    page.go_back()
    page.get_by_role("radio", name="Cancel").check()
    page.get_by_label("To confirm, type the number").fill("120")
    press(page, "Cancel 120 jobs")
    expect(page.locator("#operation")).to_contain_text("succeeded")
    assert len(stage.ask("GET", "/v1/jobs?kind=many&state=cancelled&limit=200")["items"]) == 120
    page.goto(f"{stage.ui}jobs?q=kind%3Amany")
    page.locator("tbody input[type=checkbox]").nth(0).check()
    page.locator("tbody input[type=checkbox]").nth(3).check()
    press(page, "Selected (2)…")
    expect(page.get_by_role("heading", level=1)).to_contain_text("2 jobs match")
    page.get_by_role("radio", name="Delete").check()
    press(page, "Delete 2 jobs")
    expect(page.locator("#operation")).to_contain_text("succeeded")
    assert len(stage.ask("GET", "/v1/jobs?kind=many&limit=200")["items"]) == 118
    page.goto(f"{stage.ui}bulk")
    assert page.locator(".rows tbody tr").count() >= 2


def settings(stage, page):
    page.goto(f"{stage.ui}settings")
    page.get_by_role("radio", name="dark").check()
    page.get_by_role("radio", name="compact").check()
    page.get_by_role("textbox", name="Time zone name").or_(page.get_by_role("combobox", name="Time zone name")).fill("Asia/Kolkata")
    press(page, "Save")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("html")).to_have_attribute("data-density", "dense")
    page.goto(stage.ui)
    expect(page.get_by_role("contentinfo")).to_contain_text("Asia/Kolkata")
    assert "Asia/Kolkata" in page.locator("time").first.get_attribute("title")
    page.goto(f"{stage.ui}settings")
    page.locator("#zone").fill("Mars/Olympus")
    press(page, "Save")
    expect(page.get_by_role("alert")).to_contain_text("Mars/Olympus")
    page.locator("#own-zone").click()
    page.get_by_role("radio", name="system").check()
    press(page, "Save")
    expect(page.get_by_role("status")).to_contain_text("saved")


def webhooks(stage, page):
    with Receiver() as receiver:
        page.goto(f"{stage.ui}webhooks")
        page.get_by_label("URL").fill(receiver.url)
        # Nobody pauses a queue meanwhile: what comes is what is asked for here. A job may fail at any time.
        page.get_by_role("radio", name="queue.*").check()
        press(page, "Create webhook")
        expect(page.locator("#secret")).to_contain_text("whsec_")
        page.get_by_role("link", name="Go to the webhook").click()
        press(page, "Send test event")
        expect(page.locator("#list")).to_contain_text("webhook.test")
        eventually(page, lambda: len(receiver.heard) == 1)
        expect(page.locator("#list")).to_contain_text("succeeded")
        press(page, "Redeliver")
        eventually(page, lambda: len(receiver.heard) == 2)
        press(page, "Disable")
        expect(page.locator("#webhook")).to_contain_text("disabled")
        press(page, "Enable")
        expect(page.locator("#webhook")).to_contain_text("enabled")
        page.get_by_label("To confirm, type").fill(page.locator("#webhook .id").inner_text())
        press(page, "Delete webhook")
        expect(page.get_by_role("status")).to_contain_text("Deleted")


class Receiver:
    """Takes deliveries, and remembers them."""

    def __enter__(self):
        heard = self.heard = []

        class Taker(BaseHTTPRequestHandler):
            def do_POST(self):
                heard.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def eventually(page, is_so, times=400):
    for _ in range(times):
        if is_so():
            return
        page.wait_for_timeout(200)
    raise AssertionError("it did not become so")


def schedules(stage, page):
    stage.ask("PUT", "/v1/schedules/nightly", {"spec": {"cron": "30 2 * * *"}, "job": {"kind": "close_books"}})
    page.goto(f"{stage.ui}schedules/nightly")
    press(page, "Pause schedule")
    expect(page.get_by_role("main").get_by_role("button", name="Resume schedule")).to_be_visible()
    press(page, "Resume schedule")
    press(page, "Run now")
    expect(page.get_by_role("status")).to_contain_text("enqueued")
    assert stage.ask("GET", "/v1/jobs?kind=close_books")["items"]
    passed(stage, page)
    page.goto(f"{stage.ui}schedules")
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_label("Rule").fill("weekly mon-fri 25:99")
    expect(page.locator("#preview .wrong")).to_be_visible()
    page.get_by_label("Rule").fill("weekly mon-fri 09:30")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    expect(page.locator("#preview strong")).to_contain_text("09:30")
    expect(page.locator("#preview tbody tr")).to_have_count(10)
    page.get_by_label("Job kind").fill("report")
    page.get_by_label("Args").fill("{not json")
    stage.expects_outage = True
    press(page, "Create schedule")
    expect(page.get_by_role("alert")).to_contain_text("JSON")
    stage.expects_outage = False
    page.get_by_label("Args").fill('{"of": "sales"}')
    press(page, "Create schedule")
    expect(page.get_by_role("status")).to_contain_text("created")
    made = stage.ask("GET", "/v1/schedules/by-hand")
    assert (made["time_zone"], made["job"]["args"]) == ("Europe/Berlin", {"of": "sales"}), made
    page.get_by_label("To confirm, type").fill("by-hand")
    press(page, "Delete by-hand")
    expect(page.get_by_role("status")).to_contain_text("Deleted")


def passed(stage, page):
    """Jobs for slots that have passed: which ones is shown before."""
    stage.ask("PUT", "/v1/schedules/hourly", {"spec": {"text": "every 1h"}, "job": {"kind": "tidy", "queue": "nobody"}})
    # A full hour that comes meanwhile brings no job beside these.
    stage.ask("POST", "/v1/schedules/hourly/pause", {})
    page.goto(f"{stage.ui}schedules/hourly")
    press(page, "Preview runs")
    # A day has 24 of them, and one more if it begins with one.
    shown = page.locator("#backfill .why")
    expect(shown).to_contain_text(re.compile(r"2[45] runs"))
    slots = int(shown.inner_text().split()[0])
    stage.judged(page, "slots that have passed")
    press(page, f"Enqueue {slots} jobs")
    expect(page.get_by_role("status")).to_contain_text("Backfill enqueued")
    assert len(stage.ask("GET", "/v1/jobs?kind=tidy&limit=100")["items"]) == slots


def leases(stage, page):
    stage.ask("POST", "/v1/leases/by-hand/acquire", {"owner": "ledger-1", "ttl_seconds": 600})
    page.goto(f"{stage.ui}leases/by-hand")
    page.get_by_label("To confirm, type").fill("by-hand")
    page.get_by_label("Reason").fill("the ledger is on fire")
    press(page, "Break by-hand")
    expect(page.get_by_role("status")).to_contain_text("Lease broken")
    assert not stage.ask("GET", "/v1/leases/by-hand")["locked"]
