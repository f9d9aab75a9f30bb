"""Which folders of earlier runs are removed at a start."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heliograph.driver.spark.old_folders import KEPT_S, MOST_KEPT, remove_old_folders
from heliograph.driver.spark.spark_session import SparkSettings, _make_folder


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def make(folder: Path, pid: int, number: int, *, age_s: float) -> Path:
    made = folder / f"heliograph-spark-{pid}-{number:08x}"
    made.mkdir()
    (made / "spark.log").write_text("why")
    at = time.time() - age_s
    os.utime(made, (at, at))
    return made


def test_a_run_that_is_gone_keeps_its_log_for_a_day(tmp_path: Path, gone: int) -> None:
    old, new = make(tmp_path, gone, 1, age_s=KEPT_S + 60), make(tmp_path, gone, 2, age_s=KEPT_S - 60)
    remove_old_folders(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)


def test_only_the_newest_folders_are_kept(tmp_path: Path, gone: int) -> None:
    made = [make(tmp_path, gone, number, age_s=60.0 * (number + 1)) for number in range(MOST_KEPT + 5)]
    remove_old_folders(tmp_path)
    assert [path.exists() for path in made] == [True] * MOST_KEPT + [False] * 5


def test_the_folder_of_a_process_that_runs_is_kept(tmp_path: Path) -> None:
    own = make(tmp_path, os.getpid(), 1, age_s=-60)  # made after the process started
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = make(tmp_path, process.pid, 2, age_s=-60)
        remove_old_folders(tmp_path)
        assert own.exists()
        assert other.exists()
        process.communicate(b"\n")


def test_another_process_with_the_same_id_does_not_keep_a_folder(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        made = make(tmp_path, process.pid, 1, age_s=KEPT_S + 60)
        remove_old_folders(tmp_path)
        assert not made.exists()
        process.communicate(b"\n")


def test_a_folder_of_an_earlier_process_with_our_own_id_is_removed(tmp_path: Path) -> None:
    """In a container that is started again each run has the same id."""
    made = make(tmp_path, os.getpid(), 1, age_s=KEPT_S + 60)
    remove_old_folders(tmp_path)
    assert not made.exists()


def test_a_folder_of_sockets_that_an_earlier_run_made_in_tmp_is_removed(tmp_path: Path, gone: int) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    earlier = make(Path("/tmp"), gone, secrets.randbits(32), age_s=KEPT_S + 60)
    settings = SparkSettings("local[1]", folder=long / f"heliograph-spark-{os.getpid()}-00000001")
    assert settings.socket_folder.parent == earlier.parent
    _make_folder(settings)
    assert not earlier.exists()
    assert settings.folder.is_dir()


def test_links_files_and_other_names_are_left_alone(tmp_path: Path, gone: int) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    link = tmp_path / f"heliograph-spark-{gone}-00000001"
    link.symlink_to(elsewhere)
    file = tmp_path / f"heliograph-spark-{gone}-00000002"
    file.write_text("x")
    strange = tmp_path / f"heliograph-spark-{gone}-notes"
    strange.mkdir()
    for path in (file, strange):
        os.utime(path, (0, 0))
    remove_old_folders(tmp_path)
    assert (elsewhere / "precious").exists()
    assert (link.is_symlink(), file.exists(), strange.exists()) == (True, True, True)
