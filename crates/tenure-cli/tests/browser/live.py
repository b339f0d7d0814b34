"""What is shown is what is, and it does not run away from whoever reads it."""

import re
import tempfile
import time
import urllib.request

from playwright.sync_api import expect

from forms import eventually
from stage import TOLD, free_port, serve


# Whoever follows would have a server that stops wait for its grace of 25 seconds.
KEEPS = 20


def play(stage):
    page = stage.page()
    told(stage)
    dear(stage)
    left(stage, page)
    logs(stage, page)
    other_servers(stage)
    outage(stage)


def looking(stage, at, **more):
    """A page that asks only because it is told something, once it has asked because it was greeted."""
    page = stage.page(**more)
    page.add_init_script(TOLD)
    page.goto(stage.ui + at)
    until(page, "window.heard.hello > 0 && window.answered > 0 && window.answered === window.asked")
    return page


def until(page, so):
    """Waits until this is so, whether or not the page is painted."""
    for _ in range(300):
        if page.evaluate(so):
            return
        page.wait_for_timeout(200)
    found = page.evaluate("[window.heard, window.asked, window.answered, document.hidden, document.querySelector('#old').innerText]")
    raise AssertionError(f"never {so}: {found}")


def is_told(page, times):
    """Waits until it was told so often that something has changed."""
    until(page, f"window.heard.change >= {page.evaluate('window.heard.change') + times}")


def told(stage):
    page = looking(stage, "jobs?q=kind%3Afresh")
    expect(page.locator("#list")).to_contain_text("No matching jobs")
    first = stage.enqueue("fresh", queue="nobody")
    # It was told: the stream greets it again after a minute, and by itself it does not look.
    expect(page.locator("#list tbody tr")).to_have_count(1, timeout=50_000)
    pause = page.locator("#pause")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    until(page, "window.answered === window.asked")
    asked = page.evaluate("window.asked")
    stage.enqueue("fresh", queue="nobody")
    # Another page, which is not stopped, shows it; and whoever comes back to this one does not make it go on.
    other = stage.page()
    other.goto(f"{stage.ui}jobs?q=kind%3Afresh")
    expect(other.locator("#list tbody tr")).to_have_count(2)
    other.context.close()
    page.evaluate("dispatchEvent(new Event('visibilitychange'))")
    assert page.evaluate("window.asked") == asked, "a page that is stopped has asked"
    expect(page.locator("#list tbody tr")).to_have_count(1)
    expect(page.locator("#fresh")).to_have_count(0)
    pause.click()
    # What is new is counted, and comes when it is wanted.
    expect(page.locator("#fresh")).to_have_text("1 new")
    expect(page.locator("#list tbody tr")).to_have_count(1)
    page.locator("#fresh").click()
    expect(page.locator("#list tbody tr")).to_have_count(2)
    # What is there is kept up to date where it stands.
    stage.ask("POST", f"/v1/jobs/{first}/cancel", {})
    expect(page.locator(f"tr[data-key='{first}']")).to_contain_text("cancelled")
    # Whoever ticks is not disturbed: it is told, and does not ask.
    page.locator("tbody input[type=checkbox]").first.check()
    asked = page.evaluate("window.asked")
    stage.ask("POST", f"/v1/jobs/{first}/retry", {})
    is_told(page, 2)
    assert page.evaluate("window.asked") == asked, "it has asked although somebody ticks"
    expect(page.locator(f"tr[data-key='{first}']")).to_contain_text("cancelled")
    expect(page.locator("tbody input[type=checkbox]").first).to_be_checked()
    page.context.close()


def dear(stage):
    """A page that takes its server long is not asked for with each thing that happens."""
    page = looking(stage, "jobs?q=kind%3Adear", took=200)
    stage.enqueue("dear", queue="nobody")
    expect(page.locator("#list tbody tr")).to_have_count(1)
    began, so_far = time.monotonic(), page.evaluate("window.asked")
    for _ in range(3):
        stage.enqueue("dear", queue="nobody")
        is_told(page, 1)
    asked = page.evaluate("window.asked") - so_far
    # Once in twenty seconds.
    assert asked <= 1 + (time.monotonic() - began) / 20, f"{asked} times"
    page.context.close()


def left(stage, page):
    """A job that has ended is not shown as if it ran."""
    jobs = [stage.enqueue("brief", queue="brief") for _ in range(2)]
    claimed = stage.ask("POST", "/v1/claim", {"queues": ["brief"], "name": "quick", "lease_seconds": 600, "limit": 2})["jobs"]
    page.goto(f"{stage.ui}jobs?state=running&q=kind%3Abrief")
    expect(page.locator("#list tbody tr")).to_have_count(2)
    ends = claimed[0]
    stage.ask("POST", f"/v1/jobs/{ends['id']}/complete", {"token": ends["token"]})
    row = page.locator(f"tr[data-key='{ends['id']}']")
    expect(row).to_contain_text("no longer in this list")
    expect(page.locator("#fresh")).to_have_text("1 no longer listed")
    stage.judged(page, "a row that has left its list")
    page.locator("#fresh").click()
    expect(page.locator("#list tbody tr")).to_have_count(1)
    assert len(jobs) == 2


def other_servers(stage):
    """Pages of two servers that make other ones, behind one address, are not loaded again for ever."""
    page = stage.page()
    greeted, loads = [], []

    def greet(route):
        greeted.append(route)
        route.fulfill(content_type="text/event-stream", body="event: hello\nretry: 200\ndata: another\n\n")

    page.route("**/ui/live", greet)
    page.on("request", lambda request: loads.append(request.url) if request.is_navigation_request() else None)
    page.goto(f"{stage.ui}queues")
    expect(page.locator("#old")).to_contain_text("A different server is answering")
    so_far = len(greeted)
    eventually(page, lambda: len(greeted) >= so_far + 5)
    assert len(loads) <= 2, loads
    expect(page.locator("#old")).to_contain_text("A different server is answering")
    page.context.close()


def logs(stage, page):
    """A log opens at its end and follows, unless somebody reads further up."""
    job = stage.enqueue("chatty", queue="talk")
    claimed = stage.ask("POST", "/v1/claim", {"queues": ["talk"], "name": "chatter", "lease_seconds": 600})["jobs"][0]
    say = lambda first, lines: stage.ask("POST", f"/v1/jobs/{job}/logs", {"token": claimed["token"], "first": first, "lines": lines})
    for begin in range(1, 1500, 500):
        say(begin, [f"line {number}" for number in range(begin, begin + 500)])
    page.goto(f"{stage.ui}jobs/{job}")
    log = page.locator(".logs")
    expect(log).to_contain_text("line 1500")
    assert "line 1200 " not in log.inner_text() and log.evaluate("(log) => log.scrollTop > 0"), "it opens at its end"
    say(1501, ["\u001b[31mit is on fire\u001b[0m"])
    expect(log.locator(".a31")).to_have_text("it is on fire")
    assert log.evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8"), "it follows"
    # Whoever reads further up, and has the keyboard there, stays where he is; what comes is put behind.
    log.focus()
    log.evaluate("(log) => { log.scrollTop = 500; }")
    expect(page.locator("#follow")).to_have_text("Follow log")
    say(1502, ["while somebody reads"])
    expect(log).to_contain_text("while somebody reads")
    assert log.evaluate("(log) => log.scrollTop") == 500, "it jumped"
    assert log.evaluate("(log) => log === document.activeElement"), "the keyboard is not there any more"
    page.locator("#follow").click()
    assert log.evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8"), "it does not follow again"
    say(1503, ["and follows"])
    expect(log).to_contain_text("and follows")
    assert log.evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8"), "it does not follow"
    page.get_by_role("link", name="Earlier lines").click()
    expect(page.locator(".logs")).to_contain_text("line 1\n")
    page.get_by_label("Search log lines").fill("ON FIRE")
    page.get_by_role("button", name="Search log").click()
    expect(page.get_by_text("1 of 1503 lines")).to_be_visible()
    expect(page.locator(".logs")).to_have_text(re.compile(r"it is on fire\s*$"))
    stage.judged(page, "a search in a log")
    page.get_by_role("link", name="All lines").click()
    expect(page.locator(".logs")).to_contain_text("line 1500")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    lines = open(download.value.path(), encoding="utf-8").read().splitlines()
    assert len(lines) == 1503 and lines[0].endswith("line 1"), lines[:2]


def outage(stage):
    """A server that ends and comes back: what is old is said to be, and then it is not any more."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = serve(folder, port)
        try:
            page = stage.page()
            page.add_init_script(TOLD.replace("5000", "Infinity"))
            page.goto(f"http://127.0.0.1:{port}/ui/queues")
            expect(page.locator("#pause")).to_be_visible()
            until(page, "window.heard.hello > 0")
            overview = stage.page()
            overview.add_init_script(TOLD.replace("5000", "Infinity"))
            overview.goto(f"http://127.0.0.1:{port}/ui/")
            expect(overview.locator("#says")).to_be_visible()
            until(overview, "window.heard.hello > 0")
            began = time.monotonic()
            server.terminate()
            server.wait(60)
            took = time.monotonic() - began
            assert took < KEEPS, f"a page that is looked at kept the server for {took:.0f} s"
            stage.expects_outage = True
            expect(page.locator("#old")).to_contain_text("No answer from the server since")
            # A server that does not answer is not said to be well.
            expect(overview.locator("#old")).to_contain_text("No answer from the server since")
            expect(overview.locator("#says")).to_be_hidden()
            overview.context.close()
            server = serve(folder, port)
            ask(port, "PUT", "/v1/queues/afterwards", b"{}")
            expect(page.locator("main")).to_contain_text("afterwards")
            expect(page.locator("#old")).to_be_hidden()
            stage.expects_outage = False
            # Its forms are taken by the new server as well.
            page.get_by_role("main").get_by_role("button", name="pause").click()
            expect(page.get_by_role("status")).to_contain_text("Paused")
            page.context.close()
        finally:
            server.kill()
            server.wait(60)


def ask(port, method, path, body=None):
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    return urllib.request.urlopen(request, timeout=60).read()
