"""A browser, a server, and what a story needs of them."""

import json
import os
import random
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from playwright.sync_api import expect, sync_playwright

# How long whatever has to come may take: nothing is proved by how quick a machine is.
PATIENCE = 60_000

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# What a page says that was not let through is told like any other mistake.
TATTLE = "document.addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.violatedDirective, e.blockedURI))"

# A page is asked for the less often the longer its server took. How long that is depends on what else the machine does, so
# a story says it: `took` milliseconds.
TOOK = """(() => {
    const real = window.fetch;
    window.fetch = async (...asked) => {
        const answer = await real(...asked);
        const told = (name) => name === 'server-timing' ? 'page;dur=%d' : Headers.prototype.get.call(answer.headers, name);
        answer.headers.get = told;
        return answer;
    };
})()"""

# What a page is told, and how often it asks; and it asks because it was told, never because some time has passed.
TOLD = """(() => {
    window.heard = { hello: 0, change: 0 };
    window.asked = window.answered = 0;
    const [Stream, every, ask] = [window.EventSource, window.setInterval, window.fetch];
    window.EventSource = class extends Stream {
        constructor(...where) {
            super(...where);
            for (const what of Object.keys(window.heard)) this.addEventListener(what, () => { window.heard[what] += 1; });
        }
    };
    window.setInterval = (does, span, ...more) => span >= 5000 ? 0 : every(does, span, ...more);
    window.fetch = async (...asked) => {
        window.asked += 1;
        try { return await ask(...asked); } finally { window.answered += 1; }
    };
})()"""


class Stage:
    def __init__(self, base, chromium, axe, shots):
        self.base, self.ui, self.shots = base, f"{base}/ui/", shots
        self.axe = open(axe, encoding="utf-8").read()
        expect.set_options(timeout=PATIENCE)
        self.play = sync_playwright().start()
        self.browser = self.play.chromium.launch(executable_path=chromium, args=FLAGS)
        self.mistakes = []
        self.expects_outage = False
        os.makedirs(shots, exist_ok=True)

    def page(self, theme="light", width=1280, took=1, **more):
        height = 844 if width < 500 else 900
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce", **more)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.add_init_script(TATTLE)
        page.add_init_script(TOOK % took)
        page.on("console", self.heard)
        page.on("pageerror", lambda error: self.mistakes.append(f"{page.url}: {error}"))
        page.on("dialog", lambda dialog: (self.mistakes.append(f"{page.url}: a dialog"), dialog.dismiss()))
        return page

    def heard(self, said):
        where = said.location.get("url") or ""
        # A page that is not there, and a form that is refused.
        is_expected = self.expects_outage or where.endswith(("/nowhere", "/new-job"))
        if said.type == "error" and not (is_expected and "CSP" not in said.text):
            self.mistakes.append(f"{where}: {said.text}")

    def judged(self, page, where, rules=None):
        """What keeps somebody from using the page: by all rules, or by these."""
        only = {"type": "rule", "values": rules} if rules else RULES
        if not page.evaluate("'axe' in window"):
            page.evaluate(self.axe + ";undefined")
        found = page.evaluate("""async (only) => {
            // What lies under text is one colour: of what is in shadow at its edges axe would say nothing.
            const sheet = document.styleSheets[0], at = sheet.insertRule('.wide { background: var(--card) !important }', sheet.cssRules.length);
            const told = await window.axe.run(document, { runOnly: only, rules: { 'target-size': { enabled: true } }, resultTypes: ['violations'] });
            sheet.deleteRule(at);
            return told.violations.flatMap((rule) => rule.nodes.slice(0, 3).map((node) =>
                rule.id + ': ' + node.html.slice(0, 160) + ' ' + node.failureSummary));
        }""", only)
        self.mistakes += [f"{where}: {each}" for each in found]

    def shot(self, page, name):
        """A picture for people, if somebody wants them."""
        if os.environ.get("TENURE_SHOTS"):
            page.screenshot(path=f"{self.shots}/{name}.png", full_page=True)

    def fits(self, page, where):
        """Nothing hangs over the side of the page."""
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if over > 0:
            self.mistakes.append(f"{where}: is {over} pixels wider than the screen")
        # Headings are larger than text, and no text is too small to be read.
        sizes = page.evaluate("""() => {
            const size = (one) => parseFloat(getComputedStyle(one).fontSize);
            const seen = (what) => [...document.querySelectorAll(what)].filter((one) => one.offsetHeight > 1 && size(one) > 0);
            const small = seen('main *').filter((one) => size(one) < 12).map((one) => one.outerHTML.slice(0, 80));
            const heads = seen('main h2, main caption:not(.sr)').filter((one) => size(one) <= size(document.body));
            return [...small.slice(0, 3), ...heads.slice(0, 3).map((one) => one.outerHTML.slice(0, 80))];
        }""")
        self.mistakes += [f"{where}: text of a wrong size: {each}" for each in sizes]

    def ask(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{method} {path}: {refused.code} {refused.read().decode()}") from refused
        return json.loads(text) if text.strip() else None

    def enqueue(self, kind, **more):
        return self.ask("POST", "/v1/jobs", {"kind": kind, "args": {}, **more}, {"prefer": "respond-async"})["id"]

    def end(self):
        self.browser.close()
        self.play.stop()
        assert not self.mistakes, "\n".join(self.mistakes)


def quoted(text):
    return urllib.parse.quote(text, safe="")


def free_port():
    """One that is free, and stays so while nobody has it: no system gives it to whoever takes any port."""
    while True:
        port = random.randrange(12_000, 20_000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def serve(folder, port, *more):
    """A server of its own, once it answers."""
    command = [os.environ["TENURE"], "serve", "--db", "jobs.db", "--bind", f"127.0.0.1:{port}", *more]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    over = time.monotonic() + 60
    while time.monotonic() < over:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=10).read()
            return server
        except OSError:
            assert server.poll() is None, "it has ended"
            time.sleep(0.1)
    server.kill()
    raise AssertionError("it does not answer")
