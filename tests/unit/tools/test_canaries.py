"""The search for leaked secrets finds them: a leak test that finds nothing must be able to."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clusters.canaries import Canaries, Watch
from tests.support.runs.copying import wait_for


@pytest.fixture
def canaries() -> Canaries:
    canaries = Canaries()
    assert canaries["one"] != canaries["two"]
    return canaries


def test_a_canary_is_found_however_it_is_written(canaries: Canaries) -> None:
    one = canaries["one"]
    for prefix in ("", "x", "xy", "xyz"):
        assert canaries.found(base64.b64encode(f"{prefix}{one} and more".encode())) == ["one"]
    for data in (
        one.encode(),
        f"<{one}>".encode("utf-16"),
        one.encode().hex().encode(),
        one.replace("/", "%2F").encode(),
    ):
        assert canaries.found(data) in (["one"], [])
    assert canaries.found(f"{canaries['two']} {one}".encode()) == ["one", "two"]
    assert canaries.found(b"c4nary/") == []
    with pytest.raises(AssertionError, match=r"the log shows these secrets"):
        canaries.check("the log", "fine", f"password={one}")


def test_files_and_command_lines_are_watched(canaries: Canaries, tmp_path: Path) -> None:
    one, two = canaries["one"], canaries["two"]
    with Watch(canaries, [tmp_path]) as watch:
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "file").write_text(f"password={one}")
        reported = [sys.executable, "-c", "input()", two]
        with subprocess.Popen(reported, stdin=subprocess.PIPE) as process:
            wait_for(lambda: len(watch.leaks) == 2)
            process.kill()
    assert watch.leaks == {f"one in the file {tmp_path}/deep/file", "two in a command line"}
