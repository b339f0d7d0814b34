"""Every page, in both themes, wide and as narrow as a phone: everybody can use it, and nothing is out of place."""

from stage import quoted


def fill(stage):
    """What makes each page have something to show."""
    job = stage.enqueue("mailing", queue="mail", tags=["vip"], args={"to": "ada@example.com"}, delay_seconds=3600)
    stage.ask("PUT", "/v1/schedules/nightly", {
        "spec": {"cron": "30 2 * * *", "dialect": "unix"}, "time_zone": "Europe/Berlin", "job": {"kind": "close_books"}})
    stage.ask("POST", "/v1/leases/month-end/acquire", {"owner": "ledger-1", "ttl_seconds": 600})
    stage.ask("POST", "/v1/queues/mail/pause", {})
    stage.ask("POST", "/v1/queues/mail/resume", {})
    return job


def addresses(stage, job):
    return [
        "", "jobs", "jobs?state=failed", "jobs?q=kind%3Aecho", "jobs?q=stat%3A1", f"jobs/{job}", "queues", "schedules",
        "schedules/nightly", "schedules/pulse", "calendar", "leases", "leases/month-end", "workers", "kinds", "events",
        "audit", "sign-in", "nowhere",
    ]


def play(stage):
    job = fill(stage)
    for theme in ("light", "dark"):
        for width in (1280, 390):
            page = stage.page(theme, width)
            for address in addresses(stage, job):
                where = f"{address or 'overview'} ({theme}, {width})"
                if address != "nowhere":
                    page.goto(stage.ui + address)
                else:
                    stage.expects_outage = True
                    page.goto(stage.ui + address)
                    stage.expects_outage = False
                stage.judged(page, where)
                stage.fits(page, where)
                name = (address or "overview").replace("/", "-").replace("?", "-")[:40]
                page.screenshot(path=f"{stage.shots}/{name}-{theme}-{width}.png", full_page=True)
            if width == 1280:
                page.goto(stage.ui)
                in_line(stage, page, ".top nav a", "the rooms")
                in_line(stage, page, ".strip .tile", "the tiles")
            page.context.close()


def in_line(stage, page, what, name):
    tops = page.eval_on_selector_all(what, "all => [...new Set(all.map((one) => one.offsetTop))]")
    if len(tops) != 1:
        stage.mistakes.append(f"{name} stand in {len(tops)} lines")
