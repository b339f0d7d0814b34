"""Whoever signs in sees and does what his token may: nobody, a wrong token, one to look, one to act, one for all."""

import os
import subprocess
import tempfile
import urllib.request

from playwright.sync_api import expect

from forms import press
from pages import seen
from stage import free_port, serve


def play(stage):
    with tempfile.TemporaryDirectory() as folder:
        tokens = {right: token(folder, right) for right in ("read", "manage", "admin")}
        port = free_port()
        server = serve(folder, port, "--auth", "tokens")
        ui = f"http://127.0.0.1:{port}/ui/"
        try:
            ask(port, tokens["manage"], "PUT", "/v1/queues/mail", b'{"paused": true}')
            page = stage.page()
            wrong(stage, page, ui)
            looks(stage, page, ui, tokens["read"])
            acts(stage, page, ui, tokens["manage"])
            sees_all(stage, page, ui, tokens["admin"])
            nobody = stage.page()
            nobody.goto(ui)
            seen(stage, nobody, "sign-in")
        finally:
            server.kill()
            server.wait(60)


def sign_in(page, ui, text):
    page.goto(ui)
    expect(page).to_have_url(f"{ui}sign-in")
    page.get_by_label("Access token").fill(text)
    press(page, "Sign in")


def wrong(stage, page, ui):
    stage.expects_outage = True
    sign_in(page, ui, "tenure_guessed")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Access token")).to_be_visible()
    page.goto(f"{ui}queues")
    expect(page).to_have_url(f"{ui}sign-in?to=queues")
    stage.expects_outage = False


def looks(stage, page, ui, text):
    """A viewer sees that the queue is paused, and no button that changes anything but his own views; what he asks for all the same is refused."""
    sign_in(page, ui, text)
    expect(page).to_have_url(ui)
    assert text not in page.content(), "the token stands in no page"
    for at in ("", "jobs", "queues", "queues/mail", "schedules", "apps", "leases", "kinds", "workers"):
        page.goto(ui + at)
        buttons = page.get_by_role("main").locator("form[method=post]:not([action*='/views'])")
        assert buttons.count() == 0, f"{at}: {buttons.first.inner_html()}"
    page.goto(f"{ui}queues")
    expect(page.get_by_role("main")).to_contain_text("paused")
    stage.expects_outage = True
    page.goto(f"{ui}audit")
    expect(page.get_by_role("alert")).to_be_visible()
    stage.expects_outage = False
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{ui}sign-in")
    page.goto(ui)
    expect(page).to_have_url(f"{ui}sign-in")


def acts(stage, page, ui, text):
    sign_in(page, ui, text)
    page.goto(f"{ui}queues/mail")
    press(page, "Resume queue")
    expect(page.get_by_role("status")).to_contain_text("Resumed")
    expect(page.locator("#queue .paused")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()


def sees_all(stage, page, ui, text):
    sign_in(page, ui, text)
    page.goto(f"{ui}audit")
    expect(page.get_by_role("main")).to_contain_text("/v1/queues/mail/resume")
    expect(page.get_by_role("main")).to_contain_text("a person who may manage")
    stage.judged(page, "the audit of a server that asks for tokens")
    page.get_by_role("button", name="Sign out").click()


def token(folder, right):
    command = [os.environ["TENURE"], "token", "create", "--name", f"a person who may {right}", "--scope", right, "--db", "jobs.db"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def ask(port, text, method, path, body):
    headers = {"content-type": "application/json", "authorization": f"Bearer {text}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    return urllib.request.urlopen(request, timeout=60).read()
