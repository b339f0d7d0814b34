"""Without a mouse: whatever is on a page is reached, and what has the focus is seen."""

from playwright.sync_api import expect


def play(stage):
    page = stage.page()
    page.goto(stage.ui)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    rooms(stage, page)
    rows(stage, page)
    search(stage, page)
    help_(page)
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


def walk(stage, page):
    """Nothing holds the focus, and all that has it is marked."""
    for at in ("", "jobs", "queues", "schedules/pulse", "leases", "calendar"):
        page.goto(stage.ui + at)
        page.keyboard.press("p")
        seen = set()
        for _ in range(200):
            page.keyboard.press("Tab")
            told = page.evaluate("""() => {
                const one = document.activeElement;
                if (!one || one === document.body) return null;
                window.places ??= new Map();
                if (!window.places.has(one)) window.places.set(one, window.places.size);
                const looks = getComputedStyle(one);
                return [window.places.get(one), looks.outlineStyle !== 'none', one.outerHTML.slice(0, 120)];
            }""")
            if told is None:
                break
            place, is_marked, html = told
            if place in seen:
                break
            seen.add(place)
            if not is_marked:
                stage.mistakes.append(f"{at}: nobody sees where he is: {html}")
        if len(seen) < 10:
            stage.mistakes.append(f"{at}: only {len(seen)} things are reached")
