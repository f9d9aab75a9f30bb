"""The house: purity at run time, sizes, docstrings, names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "heliograph"
FILES = sorted(SOURCE.rglob("*.py"))
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
    loaded = imported_by("heliograph.engine.copy_task")
    assert not loaded & {"click", "rich", "pyspark", "psutil", "heliograph.worker", "heliograph.cli"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_is_one_idea(file: Path) -> None:
    text = file.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "every module says what it is"
    lines = len(text.splitlines())
    assert lines <= (600 if file.name == "keys.py" else 450), f"{lines} lines"
    assert file.stem not in BANNED_NAMES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"
