"""The image of the report in the README: python -m tests.browser.screenshot PAGE OUT.png"""

import io
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.conftest import QUIET, find_browser


def take(page_file, out, *, width=1120, height=1340):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(Path(page_file).absolute().as_uri())
        whole = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    # 256 colors are enough for it, and a third of the size.
    whole.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(out, optimize=True)


if __name__ == "__main__":
    take(*sys.argv[1:])
