"""The picture of the report in the README: python -m tests.browser.screenshot PAGE OUT.png"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import QUIET, find_browser


def take(page_file, out, *, width=1120, height=1240):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(Path(page_file).absolute().as_uri())
        page.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    take(*sys.argv[1:])
