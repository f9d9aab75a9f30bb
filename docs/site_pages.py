"""Gathers the pages of the site: `python docs/site_pages.py build/pages`.

Pages keep their place in the repository, so that a relative link means the same here, on the site and where the
repository is browsed. Files that a page links to (tests, examples, pictures) come along. A link to something that does
not exist stays as it is, and the strict build of the site fails on it.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
_PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md", "tests/README.md")
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")


def pages(root: Path = ROOT) -> list[Path]:
    """Return every page, relative to the root of the repository."""
    return sorted({file.relative_to(root) for pattern in _PAGES for file in root.glob(pattern)})


def links(text: str) -> Iterator[str]:
    """Yield the targets of relative links, without anchors; code blocks contain none."""
    for match in _LINK.finditer(_FENCE.sub("", text)):
        if not re.match(r"[a-z]+:", match["target"]):
            yield match["target"]


def gather(folder: Path, root: Path = ROOT) -> None:
    """Copy all pages and the files they link to."""
    if folder.exists():
        shutil.rmtree(folder)
    for page in pages(root):
        _copy(root, page, folder)
        for target in links((root / page).read_text(encoding="utf-8")):
            linked = (root / page.parent / target).resolve()
            if linked.is_file() and linked.is_relative_to(root) and linked.suffix != ".md":
                _copy(root, linked.relative_to(root), folder)


def _copy(root: Path, file: Path, folder: Path) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / file, folder / file)


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
