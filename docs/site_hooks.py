"""Hooks of the site: README.md is its first page, and results/ is part of it.

Links in the repository are relative to the file they stand in (docs/choosing.md says
../results/speed.md); these hooks turn them into links of the site.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\()(?:\.\./)+(results|src|benchmarks|training)/")
OUTSIDE = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)*((?:src|benchmarks|training|[A-Z]+\.md|[A-Z]+)(?:/[^)]*)?)\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README.md as index.md, and the pages and plots of results/."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=readme))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in (".md", ".svg", ".png"):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to results/ into the site; what is only in the repository becomes plain code."""
    depth = page.file.src_uri.count("/")
    inside = LINK.sub(lambda match: f"{match[1]}{'../' * depth}{match[2]}/", markdown)
    return OUTSIDE.sub(lambda match: f"{match[1]} (`{match[2]}`)", inside)
