"""Checks that every page is accessible and fits the screen: light and wide, and dark on a phone."""

from playwright.sync_api import expect


def fill(stage):
    """What makes each page have something to show."""
    job = stage.enqueue("mailing", queue="post-room", tags=["vip"], args={"to": "ada@example.com"}, delay_seconds=3600)
    stage.ask("PUT", "/v1/schedules/nightly", {
        "spec": {"cron": "30 2 * * *", "dialect": "unix"}, "time_zone": "Europe/Berlin", "job": {"kind": "close_books"}})
    stage.ask("POST", "/v1/leases/by-hand/acquire", {"owner": "ledger-1", "ttl_seconds": 600})
    stage.ask("POST", "/v1/queues/post-room/pause", {})
    stage.ask("POST", "/v1/queues/post-room/resume", {})
    bulk = stage.ask("POST", "/v1/bulk", {"action": "run_now", "filter": {"q": "kind:nobody"}})["id"]
    hook = stage.ask("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/", "types": ["*"]})["id"]
    stage.ask("POST", f"/v1/webhooks/{hook}/test", {})
    worker = stage.ask("GET", "/v1/workers")["items"][0]["worker_id"]
    return job, bulk, hook, worker, long_winded(stage)


def long_winded(stage):
    """A job whose words have no end, wherever a job says something."""
    endless = "unbroken" * 30
    job = stage.enqueue("long-winded", queue="long-winded", args={"text": endless}, tags=["t" * 60], max_attempts=2)
    for is_last in (False, True):
        claim = {"queues": ["long-winded"], "name": "w" * 100, "lease_seconds": 600}
        proof = {"token": stage.ask("POST", "/v1/claim", claim)["jobs"][0]["token"]}
        if is_last:
            stage.ask("POST", f"/v1/jobs/{job}/heartbeat", {**proof, "progress": {"fraction": 0.4, "message": endless}})
            stage.ask("POST", f"/v1/jobs/{job}/logs", {**proof, "first": 1, "lines": [endless * 3]})
        else:
            stage.ask("POST", f"/v1/jobs/{job}/fail", {**proof, "error": {"type": "x", "detail": endless}, "retryable": True})
            stage.ask("POST", f"/v1/jobs/{job}/run-now", {})
    return job


def addresses(job, bulk, hook, worker, long_winded):
    return [
        f"jobs/{long_winded}",
        "", "jobs", "jobs?state=failed", "jobs?q=kind%3Aecho", "jobs?q=stat%3A1", f"jobs/{job}", "queues", "schedules",
        "schedules/nightly", "schedules/pulse", "calendar", "leases", "leases/by-hand", "workers", "kinds", "events",
        "audit", "sign-in", "settings", "bulk", f"bulk/{bulk}", "bulk/new?q=kind%3Aecho", "bulk/new", "webhooks",
        f"webhooks/{hook}", "queues/post-room", "kinds/echo", f"workers/{worker}", "new-schedule",
        "new-schedule?rule=weekly+mon-fri+09%3A30&zone=Europe%2FBerlin", "new-schedule?rule=never", "new-job", f"new-job?like={long_winded}", "calendar?month=2035-03",
        "settings?zone=Mars", "nowhere", "apps", "apps?of=in-trouble", "apps?q=none", "apps?set=other",
        "apps/triggered/rotate-logs", "apps/continuous/mail-intake", "apps/triggered/tax-export", "apps/triggered/nowhere",
    ]


def play(stage):
    chosen(stage)
    page = stage.page("light", 1280)
    for address in addresses(*fill(stage)):
        page.goto(stage.ui + address)
        seen(stage, page, address or "overview")
        if address == "":
            in_line(stage, page, ".top nav a", "the rooms")
            in_line(stage, page, ".strip .tile", "the tiles")


def chosen(stage):
    """A theme that somebody has chosen counts, whatever his system says."""
    for theme, other in (("dark", "light"), ("light", "dark")):
        page = stage.page(other, 1280)
        page.goto(f"{stage.ui}settings")
        before = ground(page)
        page.get_by_role("radio", name=theme, exact=True).check()
        page.get_by_role("main").get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("saved")
        for address in ("", "jobs?state=failed"):
            page.goto(stage.ui + address)
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            assert ground(page) != before, f"{theme} looks like {other}"
            stage.judged(page, f"{address or 'overview'} ({theme}, chosen where the system says {other})")
        page.context.close()


def ground(page):
    """What lies under everything, and what is written on it."""
    return page.evaluate("""[document.documentElement, document.body].flatMap((one) => {
        const { backgroundColor, color } = getComputedStyle(one);
        return [backgroundColor, color];
    })""")


def seen(stage, page, name):
    """Loads a page once, and judges it wide and light, then narrow and dark. Only some rules can differ in the second look."""
    for theme, width, height, rules in (("light", 1280, 900, None), ("dark", 390, 844, CHANGES)):
        where = f"{name} ({theme}, {width})"
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        stage.judged(page, where, rules)
        stage.fits(page, where)
        stage.shot(page, f"{name.replace('/', '-').replace('?', '-')[:40]}-{theme}-{width}")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")


# The rules whose results a theme or a width can change.
CHANGES = ["color-contrast", "target-size", "scrollable-region-focusable"]


def in_line(stage, page, what, name):
    tops = page.eval_on_selector_all(what, "all => [...new Set(all.map((one) => one.offsetTop))]")
    if len(tops) != 1:
        stage.mistakes.append(f"{name} stand in {len(tops)} lines")
