"""Without a mouse: whatever is on a page is reached, and what has the focus is seen."""

from playwright.sync_api import expect


def play(stage):
    page = stage.page()
    page.goto(stage.ui)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    rooms(stage, page)
    rows(stage, page)
    search(stage, page)
    help_(page)
    palette(stage, page)
    asks(stage, page)
    walk(stage, page)


def rooms(stage, page):
    for key, at in {"j": "jobs", "q": "queues", "s": "schedules", "l": "leases", "w": "workers", "o": ""}.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"{stage.ui}{at}")


def rows(stage, page):
    page.goto(f"{stage.ui}jobs?state=succeeded")
    page.wait_for_selector(".rows tbody tr")
    page.keyboard.press("p")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("[...document.querySelectorAll('.rows tbody tr')].findIndex((r) => r.ariaSelected === 'true')") == 1
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/*-*")


def search(stage, page):
    page.goto(f"{stage.ui}jobs")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("kind:echo")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?q=kind%3Aecho*")


def help_(page):
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def palette(stage, page):
    """By name to a room, and by anything else to the jobs that it finds."""
    page.keyboard.press("Control+k")
    page.keyboard.type("work")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{stage.ui}workers")
    page.keyboard.press("Control+k")
    page.keyboard.type("kind:echo")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?q=kind%3Aecho")


def asks(stage, page):
    """What asks first is opened by its key, and closed by Escape, which leads back."""
    job = stage.enqueue("nobody_does_this", delay_seconds=3600)
    page.goto(f"{stage.ui}jobs/{job}")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Cancel job")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Cancel job")).to_be_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def walk(stage, page):
    """Nothing holds the focus, and all that has it is marked."""
    for at in ("", "jobs", "queues", "schedules/pulse", "leases", "calendar"):
        page.goto(stage.ui + at)
        page.keyboard.press("p")
        page.evaluate("""() => {
            window.places = new Map();
            addEventListener('focusin', ({ target }) => {
                if (window.places.has(target)) return void (window.isRound = true);
                window.places.set(target, getComputedStyle(target).outlineStyle !== 'none');
            });
        }""")
        for _ in range(20):
            for _ in range(10):
                page.keyboard.press("Tab")
            if page.evaluate("window.isRound || document.activeElement === document.body"):
                break
        seen = page.evaluate("[...window.places].map(([one, isMarked]) => [isMarked, one.outerHTML.slice(0, 120)])")
        stage.mistakes += [f"{at}: nobody sees where he is: {html}" for is_marked, html in seen if not is_marked]
        if len(seen) < 10:
            stage.mistakes.append(f"{at}: only {len(seen)} things are reached")
