"""A real browser for the pages: Debian's chromium, driven by Playwright."""

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def find_browser():
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


# Not for the whole session: while Playwright lives, its event loop runs in the tests' thread,
# and nothing else there can run one.
@pytest.fixture(scope="package")
def browser():
    path = find_browser()
    if path is None:
        pytest.skip("no browser: apt-get install -y chromium, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open an address in a fresh window; any script error or foreign request fails the test."""
    contexts, problems = [], []

    def visit(address, *, scripts=True):
        context = browser.new_context(java_script_enabled=scripts)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        origin = address.rpartition("/")[0]

        def check(request):
            if not request.url.startswith((origin, "data:")):
                problems.append(f"request to {request.url}")

        def complain(message):
            if message.type == "error" and "ERR_CONNECTION_REFUSED" not in message.text:
                problems.append(message.text)

        page.on("request", check)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("console", complain)
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert problems == []
