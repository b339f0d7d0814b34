"""What is shown is what is, and it does not run away from whoever reads it."""

import os
import re
import subprocess
import tempfile
import time
import urllib.request

from playwright.sync_api import expect

from stage import free_port


def play(stage):
    page = stage.page()
    told(stage, page)
    dear(stage)
    left(stage, page)
    logs(stage, page)
    other_servers(stage)
    outage(stage)


def told(stage, page):
    page.goto(f"{stage.ui}jobs?q=kind%3Afresh")
    expect(page.locator("#list")).to_contain_text("No job is like that")
    first = stage.enqueue("fresh", queue="nobody")
    # Sooner than a page looks by itself: it was told.
    expect(page.locator("#list tbody tr")).to_have_count(1, timeout=4_000)
    pause = page.locator("#pause")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    stage.enqueue("fresh", queue="nobody")
    page.wait_for_timeout(1_500)
    expect(page.locator("#list tbody tr")).to_have_count(1)
    expect(page.locator("#fresh")).to_have_count(0)
    pause.click()
    # What is new is counted, and comes when it is wanted.
    expect(page.locator("#fresh")).to_have_text("1 new", timeout=10_000)
    expect(page.locator("#list tbody tr")).to_have_count(1)
    page.locator("#fresh").click()
    expect(page.locator("#list tbody tr")).to_have_count(2)
    # What is there is kept up to date where it stands.
    stage.ask("POST", f"/v1/jobs/{first}/cancel", {})
    expect(page.locator(f"tr[data-key='{first}']")).to_contain_text("cancelled", timeout=10_000)
    # Whoever ticks is not disturbed.
    page.locator("tbody input[type=checkbox]").first.check()
    stage.ask("POST", f"/v1/jobs/{first}/retry", {})
    page.wait_for_timeout(1_500)
    expect(page.locator(f"tr[data-key='{first}']")).to_contain_text("cancelled")
    expect(page.locator("tbody input[type=checkbox]").first).to_be_checked()


def dear(stage):
    """A page that takes its server long is not asked for with each thing that happens."""
    page = stage.page(took=200)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.resource_type == "fetch" else None)
    page.goto(f"{stage.ui}jobs?q=kind%3Adear")
    stage.enqueue("dear", queue="nobody")
    expect(page.locator("#list tbody tr")).to_have_count(1, timeout=25_000)
    so_far = len(asked)
    for _ in range(3):
        stage.enqueue("dear", queue="nobody")
        page.wait_for_timeout(1_500)
    assert len(asked) <= so_far + 1, asked
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
    expect(row).to_contain_text("no longer in this list", timeout=10_000)
    expect(page.locator("#fresh")).to_have_text("1 left")
    stage.judged(page, "a row that has left its list")
    page.locator("#fresh").click()
    expect(page.locator("#list tbody tr")).to_have_count(1)
    assert len(jobs) == 2


def other_servers(stage):
    """Pages of two servers that make other ones, behind one address, are not loaded again for ever."""
    page = stage.page()
    page.route("**/ui/live", lambda route: route.fulfill(content_type="text/event-stream", body="event: hello\nretry: 200\ndata: another\n\n"))
    loads = []
    page.on("request", lambda request: loads.append(request.url) if request.is_navigation_request() else None)
    page.goto(f"{stage.ui}queues")
    expect(page.locator("#old")).to_contain_text("Another server answers", timeout=10_000)
    page.wait_for_timeout(2_000)
    assert len(loads) <= 2, loads
    expect(page.locator("#old")).to_contain_text("Another server answers")
    page.context.close()


def logs(stage, page):
    """A log opens at its end and follows, unless somebody reads further up."""
    job = stage.enqueue("chatty", queue="chat")
    claimed = stage.ask("POST", "/v1/claim", {"queues": ["chat"], "name": "chatter", "lease_seconds": 600})["jobs"][0]
    say = lambda first, lines: stage.ask("POST", f"/v1/jobs/{job}/logs", {"token": claimed["token"], "first": first, "lines": lines})
    for begin in range(1, 1500, 500):
        say(begin, [f"line {number}" for number in range(begin, begin + 500)])
    page.goto(f"{stage.ui}jobs/{job}")
    log = page.locator(".logs")
    expect(log).to_contain_text("line 1500")
    assert "line 1200 " not in log.inner_text() and log.evaluate("(log) => log.scrollTop > 0"), "it opens at its end"
    say(1501, ["\u001b[31mit is on fire\u001b[0m"])
    expect(log.locator(".a31")).to_have_text("it is on fire", timeout=10_000)
    assert log.evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8"), "it follows"
    # Whoever reads further up, and has the keyboard there, stays where he is; what comes is put behind.
    log.focus()
    log.evaluate("(log) => { log.scrollTop = 500; }")
    expect(page.locator("#follow")).to_have_text("Follow the end")
    say(1502, ["while somebody reads"])
    expect(log).to_contain_text("while somebody reads", timeout=10_000)
    assert log.evaluate("(log) => log.scrollTop") == 500, "it jumped"
    assert log.evaluate("(log) => log === document.activeElement"), "the keyboard is not there any more"
    page.locator("#follow").click()
    assert log.evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8"), "it does not follow again"
    say(1503, ["and follows"])
    expect(log).to_contain_text("and follows", timeout=10_000)
    assert log.evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 8"), "it does not follow"
    page.get_by_role("link", name="Earlier lines").click()
    expect(page.locator(".logs")).to_contain_text("line 1\n")
    page.get_by_label("Lines that have this").fill("ON FIRE")
    page.get_by_role("button", name="Search lines").click()
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
        page = stage.page()
        page.goto(f"http://127.0.0.1:{port}/ui/queues")
        expect(page.locator("#pause")).to_be_visible()
        page.wait_for_timeout(1_000)
        began = time.monotonic()
        server.terminate()
        server.wait(30)
        took = time.monotonic() - began
        assert took < 10, f"a page that is looked at kept the server for {took:.0f} s"
        stage.expects_outage = True
        expect(page.locator("#old")).to_contain_text("No answer since", timeout=40_000)
        server = serve(folder, port)
        ask(port, "PUT", "/v1/queues/afterwards", b"{}")
        expect(page.locator("main")).to_contain_text("afterwards", timeout=40_000)
        expect(page.locator("#old")).to_be_hidden()
        stage.expects_outage = False
        # Its forms are taken by the new server as well.
        page.get_by_role("main").get_by_role("button", name="pause").click()
        expect(page.get_by_role("status")).to_contain_text("Paused")
        page.context.close()
        server.kill()
        server.wait(30)


def serve(folder, port):
    command = [os.environ["TENURE"], "serve", "--db", "jobs.db", "--bind", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        try:
            ask(port, "GET", "/livez")
            return server
        except OSError:
            time.sleep(0.1)
    raise AssertionError("it does not answer")


def ask(port, method, path, body=None):
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    return urllib.request.urlopen(request, timeout=10).read()
