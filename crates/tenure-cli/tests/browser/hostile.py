"""Whatever somebody hands in is shown as text, wherever it is shown."""

from stage import quoted

CORPUS = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>",
    "'><svg/onload=alert(3)>",
    "</pre></code><iframe srcdoc='<script>alert(4)</script>'></iframe>",
    "javascript:alert(5)",
    "<a href=\"javascript:alert(6)\">me</a>",
    "</title><style>*{display:none}</style>",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "\u202e\u0000\u001b[31mred\u001b[0m".replace("\u0000", ""),
    "<form action=//evil.example><button>Sign in</button></form>",
]


def play(stage):
    worst = "".join(CORPUS)
    job = stage.enqueue("hostile", queue="hostile", args={"text": CORPUS, worst[:60]: 1}, meta={"note": worst})
    claimed = stage.ask("POST", "/v1/claim", {"queues": ["hostile"], "name": worst[:200], "lease_seconds": 600})["jobs"][0]
    proof = {"token": claimed["token"]}
    stage.ask("POST", f"/v1/jobs/{job}/heartbeat", {**proof, "progress": {"fraction": 0.4, "message": worst[:200]}})
    stage.ask("POST", f"/v1/jobs/{job}/logs", {**proof, "first": 1, "lines": CORPUS})
    page = stage.page()
    looked = [f"jobs/{job}", "workers", "jobs"]
    for at in looked:
        look(stage, page, at)
    stage.ask("POST", f"/v1/jobs/{job}/fail", {**proof, "error": {"type": "x", "detail": worst}, "retryable": False})
    stage.ask("POST", f"/v1/leases/{quoted('a-lease')}/acquire", {"owner": worst[:200], "ttl_seconds": 600})
    for at in [f"jobs/{job}", "jobs", "", "events", "leases", "leases/a-lease", "audit", "kinds", "queues"]:
        look(stage, page, at)
    stage.expects_outage = True
    for at in ASKED:
        look(stage, page, at + quoted(worst))
    # Each alone as well: what would be run or loaded stands in the page that is answered.
    for at, strange in page.evaluate(f"""async (asked) => Promise.all(asked.map(async (at) => {{
        const text = await (await fetch(at)).text();
        return [at, ({STRANGE})(new DOMParser().parseFromString(text, 'text/html'))];
    }}))""", [stage.ui + at + quoted(text) for text in CORPUS for at in ASKED]):
        stage.mistakes += [f"{at[:80]}: {each}" for each in strange]
    stage.expects_outage = False
    told = page.goto(f"{stage.ui}jobs/{job}")
    assert told.status == 200 and "<script>alert(1)</script>" in page.inner_text("main"), "it is shown as it is"


ASKED = ["jobs?q=", "jobs?state=", "jobs?col=", "jobs?cursor=", "schedules?prefix=", "leases?prefix=", "calendar?week=",
         "calendar?month=", "schedules/pulse?from=", "events?queue=", "jobs/", "leases/", "schedules/", "queues?did="]
STRANGE = """(page) => [...page.querySelectorAll(
    'iframe, object, embed, style, script:not([src]), [onerror], [onload], [srcdoc], [href^="javascript:"], img, form[action*="evil"]')]
    .map((one) => one.outerHTML.slice(0, 100))"""


def look(stage, page, at):
    page.goto(stage.ui + at)
    strange = page.evaluate(f"({STRANGE})(document)")
    stage.mistakes += [f"{at[:60]}: {each}" for each in strange]
