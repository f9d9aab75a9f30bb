"""Compiled kernels on disk: never those of other sources, never from a folder that others can write."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heliograph
from heliograph.wire.batches import kernel_cache
from heliograph.wire.batches.kernel_bytes import kernel
from heliograph.wire.batches.kernel_cache import KernelCache, cache_key, folder_name

PACKAGE = Path(heliograph.__file__).parent
BATCHES = PACKAGE / "wire" / "batches"
PROGRAM = """
import numpy as np
from heliograph.wire.batches.fingerprint import _print_records
from heliograph.wire.batches.kernel_cache import KernelCache
from heliograph.wire.batches.scan import COLUMNS
record = np.array([12, 0, 0, 0, 1, 1, 0], np.uint8)
print(_print_records(record, np.zeros(COLUMNS, np.int64), np.zeros((1, 2), np.int64)), KernelCache.compiled)
"""


def test_an_upgrade_that_changes_only_an_inlined_file_runs_the_new_code(tmp_path: Path) -> None:
    package = tmp_path / "site" / "heliograph"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))

    def run() -> str:
        variables = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert run() == "True 1"
    assert run() == "True 0", "the machine code is loaded"
    inlined = package / "wire" / "batches" / "kernel_bytes.py"
    upgraded = inlined.read_text().replace("if byte < 0x80:", "if byte < 0x00:")
    assert upgraded != inlined.read_text()
    inlined.write_text(upgraded)
    assert run() == "False 1", "the new code runs, and is compiled"
    assert len(list((tmp_path / "cache").iterdir())) == 2, "a process of the old version keeps its own"


def test_kernels_contain_nothing_of_modules_that_the_key_does_not_cover() -> None:
    found = 0
    for path in BATCHES.glob("*.py"):
        tree = ast.parse(path.read_text())
        modules = {
            alias.asname or alias.name: node.module or ""
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            if not {getattr(each, "id", None) for each in function.decorator_list} & {"kernel", "part_of_kernel"}:
                continue
            found += 1
            used = {name.id for line in function.body for name in ast.walk(line) if isinstance(name, ast.Name)}
            own = {modules[name] for name in used if modules.get(name, "").startswith("heliograph")}
            assert all(name.startswith("heliograph.wire.batches") for name in own), (path.name, function.name, own)
    assert found > 30


def test_the_key_depends_on_the_versions_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_key()
    for module in ("numba", "llvmlite", "np"):
        with monkeypatch.context() as patch:
            patch.setattr(getattr(kernel_cache, module), "__version__", "0.0")
            assert cache_key.__wrapped__() != before
    assert cache_key.__wrapped__() == before


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert not kernel_cache._is_usable(folder)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    assert not kernel_cache._is_usable(tmp_path / "link")
    assert not kernel_cache._is_usable(folder / "inside"), "another user can replace it"
    folder.chmod(0o1777)
    assert kernel_cache._is_usable(folder / "inside"), "as in /tmp"
    assert (folder / "inside").stat().st_mode & 0o022 == 0


def test_without_a_writable_home_or_package_the_temporary_folder_serves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernel_cache.numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernel_cache, "installed_folder", lambda: Path("/proc/none") / folder_name())
    monkeypatch.delenv("HELIOGRAPH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    assert kernel_cache.own_folder.__wrapped__() == tmp_path / f"{folder_name()}-{os.geteuid()}"


def _sum(values: np.ndarray) -> int:
    total = 0
    for value in values:
        total += value
    return total


@pytest.mark.parametrize("damage", [b"", b"no pickle"])
def test_damaged_machine_code_is_compiled_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: bytes) -> None:
    monkeypatch.setattr(kernel_cache, "installed_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "own_folder", lambda: tmp_path)
    assert kernel(_sum)(np.arange(4)) == 6
    compiled = KernelCache.compiled
    assert kernel(_sum)(np.arange(4)) == 6
    assert KernelCache.compiled == compiled
    for path in tmp_path.glob("*.nbc"):
        path.write_bytes(damage)
    assert kernel(_sum)(np.arange(4)) == 6
    assert KernelCache.compiled == compiled + 1


def test_machine_code_in_a_folder_that_cannot_be_written_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernel_cache, "installed_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "own_folder", lambda: tmp_path)
    kernel(_sum)(np.arange(4))
    monkeypatch.setattr(kernel_cache, "own_folder", lambda: None)
    compiled = KernelCache.compiled
    assert kernel(_sum)(np.arange(4)) == 6
    assert KernelCache.compiled == compiled
    assert kernel(_sum)(np.arange(4, dtype=np.int32)) == 6, "another signature is compiled, and kept in memory"
    assert KernelCache.compiled == compiled + 1
