"""The code that an executor gets: unpacked where nobody else can write, and run without compiling."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

from heliograph.driver.spark.executor_code import CodeArchive, write_code_archive
from heliograph.executor import shipped_code
from heliograph.executor.contract.task_report import TaskEvents
from heliograph.executor.contract.task_spec import TaskSpec
from heliograph.executor.copy import background
from heliograph.executor.shipped_code import ShippedCodeError, unpack
from heliograph.kafka.security.connection_spec import ClusterSpec, Security
from heliograph.model import Address, Flow

CLUSTER = ClusterSpec("a", (Address("a", 1),), Security())
SPEC = TaskSpec("a->b-0", Flow("a", "b"), CLUSTER, CLUSTER, (), "c", "offsets", 1)
PROGRAM = """
import json, os, pickle, sys
archive, digest, version, payload, missing = json.loads(sys.stdin.read())
sys.path.insert(0, archive)
if missing:
    sys.modules[missing] = None
from heliograph.executor.shipped_code import ShippedTask, shipped_function
task = ShippedTask(digest, version, bytes.fromhex(payload))
outcomes = list(shipped_function(pickle.loads(pickle.dumps(task)))([]))
compiled = file = None
if "numba" in sys.modules and not missing:
    from heliograph.wire.batches import forward
    compiled, file = forward.warm_up(), forward.__file__
print(json.dumps([json.loads(outcomes[0]), compiled, file]))
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> CodeArchive:
    return write_code_archive(tmp_path_factory.mktemp("driver"))


def run(
    code: CodeArchive, folder: Path, version: str = pyspark.__version__, missing: str = "", **more: str
) -> tuple[dict[str, str], int | None, str | None]:
    """Run a task of the archive, as an executor without a home does; return outcome, compiled kernels, code's place."""
    words = json.dumps([str(code.path), code.digest, version, pickle.dumps(SPEC).hex(), missing])
    variables = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TMPDIR": str(folder), **more}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=words, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome, compiled, file = json.loads(done.stdout)
    return outcome, compiled, file


def test_an_executor_without_a_home_runs_the_drivers_code_and_compiles_nothing(
    code: CodeArchive, tmp_path: Path
) -> None:
    outcome, compiled, file = run(code, tmp_path)
    assert outcome == {"error": "the task has no lease."}, "the task itself runs"
    assert compiled == 0
    assert file is not None
    assert Path(file).is_relative_to(tmp_path / f"heliograph-executors-{os.geteuid()}")


@pytest.mark.slow
def test_an_executor_with_another_processor_compiles_once_for_its_machine(code: CodeArchive, tmp_path: Path) -> None:
    assert run(code, tmp_path, NUMBA_CPU_NAME="generic")[1] == 5
    assert run(code, tmp_path, NUMBA_CPU_NAME="generic")[1] == 0


@pytest.mark.parametrize("compiled", [0, 5])
def test_a_task_reports_that_its_machine_had_to_compile(monkeypatch: pytest.MonkeyPatch, compiled: int) -> None:
    monkeypatch.setattr(background, "warm_up", lambda: compiled)
    events = TaskEvents(Flow("a", "b"))
    background.load_kernels(events)
    words = [event.message for event in events.take()]
    assert [text.startswith("a->b: 5 kernels were compiled on ") for text in words] == [True] * bool(compiled)


def test_a_missing_package_is_one_sentence_with_both_remedies(code: CodeArchive, tmp_path: Path) -> None:
    outcome, _compiled, _file = run(code, tmp_path, missing="cramjam")
    assert "has no Python package 'cramjam'" in outcome["error"]
    assert "heliograph pack" in outcome["error"]
    assert "requirements.txt on every executor, or in its image" in outcome["error"]


def test_another_minor_version_of_spark_is_one_sentence(code: CodeArchive, tmp_path: Path) -> None:
    outcome, _compiled, _file = run(code, tmp_path, version="3.5.1")
    assert f"has Spark {pyspark.__version__}, the driver 3.5.1" in outcome["error"]
    assert outcome["error"].count(". ") == 0


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    path = tmp_path / "spark" / "code.zip"
    path.parent.mkdir()
    with ZipFile(path, "w") as files:
        files.writestr("package/module.py", "answer = 42\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_code_that_was_changed_is_unpacked_again(archive: tuple[Path, str]) -> None:
    module = unpack(*archive) / "package" / "module.py"
    module.write_text("answer = 666\n")
    assert unpack(*archive) / "package" / "module.py" == module
    assert module.read_text() == "answer = 42\n"
    module.unlink()
    unpack(*archive)
    assert module.exists(), "a crash half-way leaves less than everything"


def test_an_archive_with_another_digest_is_refused(archive: tuple[Path, str]) -> None:
    with pytest.raises(ShippedCodeError, match="not the archive that the driver has sent"):
        unpack(archive[0], "0" * 64)


def test_a_folder_that_another_user_can_change_is_not_used(archive: tuple[Path, str], tmp_path: Path) -> None:
    trap = tmp_path / "temporary" / f"heliograph-executors-{os.geteuid()}"
    trap.mkdir()
    trap.chmod(0o777)
    assert unpack(*archive).is_relative_to(archive[0].parent), "Spark's own folder serves"
    trap.rmdir()
    trap.symlink_to(tmp_path)
    assert unpack(*archive).is_relative_to(archive[0].parent)


def test_the_folder_is_closed_to_other_users(archive: tuple[Path, str]) -> None:
    assert unpack(*archive).parent.stat().st_mode & 0o077 == 0


def test_code_that_no_process_uses_is_removed_after_a_day(
    archive: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unpack(*archive)
    unused, used = folder.with_name("code-unused"), folder.with_name("code-used")
    for old in (unused, used):
        old.mkdir()
        os.utime(old, (time.time() - 90_000,) * 2)
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_SH); print(1, flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(used.with_suffix(".used"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        unpack(*archive)
        assert (unused.exists(), used.exists(), folder.exists()) == (False, True, True)
    finally:
        holder.communicate(b"\n")
    monkeypatch.setattr(shipped_code, "_KEPT_S", 0.0)
    unpack(*archive)
    assert not used.exists()


def test_workers_that_start_together_unpack_once(archive: tuple[Path, str]) -> None:
    program = (
        "import sys; from pathlib import Path; import tempfile; tempfile.tempdir = sys.argv[3];"
        "from heliograph.executor.shipped_code import unpack; f = unpack(Path(sys.argv[1]), sys.argv[2]);"
        "print((f / 'package').stat().st_ino)"
    )
    command = [sys.executable, "-c", program, str(archive[0]), archive[1], tempfile.gettempdir()]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({worker.communicate(timeout=60)[0] for worker in workers}) == 1
