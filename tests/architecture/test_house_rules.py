"""The house: purity at run time, sizes, docstrings, names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "heliograph"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = Path(__file__).parents[1]
BANNED_NAMES = {"utils", "helpers", "common", "misc", "base"}


def imported_by(modules: str) -> set[str]:
    code = f"import sys\nimport {modules}\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_pure_packages_bring_no_client_and_no_spark() -> None:
    pure = [
        ".".join(("heliograph", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for file in FILES
        if file.relative_to(SOURCE).parts[0] in ("config", "mirror", "wire", "errors.py", "model.py")
    ]
    loaded = imported_by(", ".join(pure)) - imported_by("numba, cramjam")  # which log and ask for the time themselves
    assert not loaded & {"pyspark", "kafka", "ssl", "click", "rich", "logging"}


def test_an_executor_loads_neither_the_screen_nor_the_control_loops() -> None:
    loaded = imported_by("heliograph.executor.copy.copy_task")
    assert not loaded & {"click", "rich", "pyspark", "psutil", "heliograph.driver", "heliograph.cli"}


def oddities(file: Path) -> Iterator[str]:
    text = file.read_text()
    tree = ast.parse(text)
    if not ast.get_docstring(tree):
        yield "does not say what it is"
    lines = len(text.splitlines())
    if lines > 600:
        yield f"has {lines} lines"
    if file.stem in BANNED_NAMES:
        yield "has a name that says nothing"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (length := (node.end_lineno or 0) - node.lineno + 1) > 60:
            yield f"{node.name} has {length} lines"


def test_a_file_is_one_idea() -> None:
    assert len(FILES) > 100
    assert [f"{file}: {oddity}" for file in FILES for oddity in oddities(file)] == []


def test_every_test_is_run_by_make_test() -> None:
    """Outside the fast folders `make test` runs what is marked, and would pass over what is not."""
    fast = {"architecture", "golden", "properties", "unit"}
    others = [file for file in TESTS.rglob("test_*.py") if file.relative_to(TESTS).parts[0] not in fast]
    assert len(others) > 30
    marks = re.compile(r"^pytestmark = [^=]*?pytest\.mark\.(broker|spark)\b", re.MULTILINE)
    assert [file for file in others if not marks.search(file.read_text())] == []


def test_every_promise_of_the_security_page_links_to_a_test() -> None:
    text = (TESTS.parent / "SECURITY.md").read_text()
    links = re.findall(r"\]\((tests/[^)]+)\)", text)
    assert [link for link in links if not (TESTS.parent / link).exists()] == []
    defended = text.partition("## What is defended")[2].partition("### Rules for the project itself")[0]
    rows = [
        line for line in defended.splitlines() if line.startswith("|") and not line.startswith(("| attack", "|---"))
    ]
    assert len(rows) > 15
    assert [row for row in rows if "](tests/" not in row] == []
