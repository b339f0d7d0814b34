"""What is shown is what is, and it does not run away from whoever reads it."""

from playwright.sync_api import expect


def play(stage):
    page = stage.page()
    page.goto(f"{stage.ui}jobs?q=kind%3Afresh")
    expect(page.locator("#list")).to_contain_text("No job is like that")
    stage.enqueue("fresh", queue="nobody")
    expect(page.locator("#list tbody tr")).to_have_count(1, timeout=10_000)
    pause = page.locator("#pause")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    stage.enqueue("fresh", queue="nobody")
    page.wait_for_timeout(3_000)
    expect(page.locator("#list tbody tr")).to_have_count(1)
    pause.click()
    expect(page.locator("#list tbody tr")).to_have_count(2, timeout=10_000)
