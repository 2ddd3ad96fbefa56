"""The walk of docs/architecture.md is not longer than the page says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_label_passes_through_no_more_files_than_the_page_says():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (stated,) = re.findall(r"while 60 images are labeled: (\d+)", page)
    command = [sys.executable, "-m", "benchmarks.walk"]
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    (counted,) = re.findall(r"^together +(\d+)$", answer.stdout, re.MULTILINE)
    assert int(counted) <= int(stated), answer.stdout
