"""The pages: what they name exists, what they link to is there, and indexes list every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.site_pages import links, pages

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heliograph"
GENERATED = {f"docs/reference/{name}.md" for name in ("configuration", "rest", "metrics", "conformance")}
PAGES = [page.as_posix() for page in pages()]
NAMING = [page for page in PAGES if page not in GENERATED and page != "CHANGELOG.md"]
OF_EXAMPLES = {"acme_mirror.py"}  # classes that a reader is to write

_TOP = {path.name for path in SOURCE.iterdir() if path.is_dir()} | {"src", "tests", "bench", "docs"}
_MODULE = re.compile(r"(?<![\w/.*-])[a-z_0-9]+(?:/[a-z_0-9]+)*\.py\b")
_PACKAGE = re.compile(r"`([a-z_]+(?:/[a-z_0-9]+)+)/?`")
_STARTS = (ROOT, SOURCE, ROOT / "tests", ROOT / "bench", ROOT / "docs")


FILE_NAMES = frozenset(
    file.name for start in ("src", "tests", "bench", "docs") for file in (ROOT / start).rglob("*.py")
)


def exists(name: str) -> bool:
    """A path below the repository, the package or one of its folders; a bare file name may be anywhere."""
    if "/" not in name and name in FILE_NAMES | OF_EXAMPLES:
        return True
    return any((start / name).exists() or (start / f"{name}.py").exists() for start in _STARTS)


def named(text: str) -> Iterator[str]:
    yield from _MODULE.findall(text)
    yield from (name for name in _PACKAGE.findall(text) if name.partition("/")[0] in _TOP)


@pytest.mark.parametrize("page", NAMING)
def test_every_module_and_package_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    assert sorted({name for name in named(text) if not exists(name)}) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    folder = (ROOT / page).parent
    assert [target for target in links((ROOT / page).read_text()) if not (folder / target).is_file()] == []


@pytest.mark.parametrize("folder", ["docs/guides", "docs/decisions"])
def test_the_index_of_a_folder_lists_every_page(folder: str) -> None:
    listed = set(links((ROOT / folder / "README.md").read_text()))
    assert {file.name for file in (ROOT / folder).glob("*.md")} - {"README.md"} - listed == set()


def test_the_map_of_packages_is_complete() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("## Package map")[2].partition("\n## ")[0]
    rows = {match[1].rstrip("/") for match in re.finditer(r"^\| `([\w/]+)` \|", text, re.MULTILINE)}
    packages = {file.parent.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("__init__.py")} - {"."}
    assert rows == packages
