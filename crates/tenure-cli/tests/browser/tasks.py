"""What somebody wants to know who has never seen these pages: each in three clicks at most, or one search and two."""

import datetime
import re
import time

from playwright.sync_api import expect

from forms import eventually

MOST = 3


class Stranger:
    """Somebody who counts his clicks. A search is one."""

    def __init__(self, stage, task):
        self.stage, self.task, self.clicks = stage, task, 0
        self.page = stage.page()
        self.page.goto(stage.ui)
        self.began = time.monotonic()

    def click(self, what):
        self.clicks += 1
        what.click()

    def search(self, words):
        self.clicks += 1
        self.page.goto(f"{self.stage.ui}jobs")
        self.page.get_by_role("searchbox").fill(words)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url("**q=*")

    def room(self, name):
        self.click(self.page.get_by_label("Main", exact=True).get_by_role("link", name=name, exact=True))

    def done(self):
        took = time.monotonic() - self.began
        print(f"{self.task}: {self.clicks} clicks, {took:.1f} s")
        assert self.clicks <= MOST, f"{self.task}: {self.clicks} clicks"
        self.page.context.close()


def play(stage):
    why_a_job_does_not_run(stage)
    all_with_one_error_again(stage)
    who_held_it(stage)
    a_free_hour(stage)
    a_job_as_it_runs(stage)


def why_a_job_does_not_run(stage):
    one = Stranger(stage, "why a job does not run")
    row = one.page.locator("#queues").get_by_role("row").filter(has_text="newsletter")
    one.click(row.get_by_role("link", name="39", exact=True))
    one.click(one.page.locator(".rows tbody tr a.id").first)
    expect(one.page.locator("p.why").first).to_contain_text("paused")
    one.done()


def all_with_one_error_again(stage):
    day = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=5)
    failed = stage.ask("GET", "/v1/jobs?state=failed&kind=charge_card&limit=200")["items"]
    with_it = [job for job in failed if "card declined" in job["error"]["detail"]]
    assert with_it, "the shop has such jobs"
    one = Stranger(stage, "all that failed with one error since then, again")
    one.search(f"state:failed error:\"card declined\" ended:>{day:%Y-%m-%dT%H:%M:%SZ}")
    one.click(one.page.get_by_role("link", name="All matching"))
    expect(one.page.get_by_role("radio", name="Retry")).to_be_checked()
    one.click(one.page.get_by_role("button", name=re.compile(r"^Retry \d")))
    expect(one.page.locator("#operation")).to_contain_text("succeeded")
    again = stage.ask("GET", f"/v1/jobs/{with_it[0]['id']}")
    assert again["attempt"] != with_it[0]["attempt"] or again["state"] != "failed" or again["finished_at"] != with_it[0]["finished_at"], again
    one.done()


def who_held_it(stage):
    one = Stranger(stage, "who held a lease three hours ago")
    one.room("Leases")
    one.click(one.page.get_by_role("link", name="month-end"))
    history = one.page.locator("#history")
    expect(history).to_contain_text("ledger on app-2")
    expect(history).to_contain_text("app-2 was taken out of service")
    one.done()


def a_free_hour(stage):
    one = Stranger(stage, "a free hour in the week")
    one.room("Calendar")
    assert one.page.locator(".heat tbody td").count() == 7 * 24
    # No coming hour of the shop is empty: what is free are minutes, and the page says which.
    freest = one.page.locator("#freest")
    if not freest.count():
        # The week has but minutes left.
        one.click(one.page.get_by_role("link", name="Next →"))
    expect(freest).to_contain_text("without a run")
    said = freest.get_by_role("link").inner_text()
    one.click(freest.get_by_role("link"))
    hour = one.page.locator("#hour")
    begin = re.search(r"(\d\d:\d\d) to", said)[1]
    expect(hour).to_contain_text(re.compile(f"Free:.*{begin} to"))
    # Who fires around it is named with its minute.
    expect(hour.get_by_role("row").filter(has_text=re.compile(r"^\d\d:\d\d")).get_by_role("link").first).to_be_visible()
    taken = hour.locator("td.slot").all_inner_texts()
    assert begin not in taken, f"{begin} is taken: {taken}"
    one.done()


def a_job_as_it_runs(stage):
    # Of his own, so that it does not end before he gets there.
    job = stage.enqueue("import_csv", queue="stranger")
    claim = {"queues": ["stranger"], "name": "reader", "lease_seconds": 600}
    proof = {"token": stage.ask("POST", "/v1/claim", claim)["jobs"][0]["token"]}
    is_at = lambda part: stage.ask("POST", f"/v1/jobs/{job}/heartbeat", {**proof, "progress": {"fraction": part, "message": "reading rows"}})
    is_at(0.25)
    one = Stranger(stage, "a job as it runs")
    # Ten are shown, and those that began before it end before it.
    row = one.page.locator(f"#running tr:has(a.id[href$='{job}'])")
    expect(row).to_be_visible(timeout=180_000)
    one.click(row.locator("a.id"))
    progress = one.page.get_by_role("progressbar")
    before = float(progress.get_attribute("value"))
    is_at(0.5)
    eventually(one.page, lambda: float(progress.get_attribute("value")) > before)
    stage.ask("POST", f"/v1/jobs/{job}/logs", {**proof, "first": 1, "lines": ["ok reading rows"]})
    expect(one.page.locator(".logs")).to_contain_text("ok reading rows")
    one.done()
