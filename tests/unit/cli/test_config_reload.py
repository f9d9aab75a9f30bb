"""A changed file is applied once it is complete; a refused one is reported once, and tried again."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.cli.config_reload import ConfigReload, file_digest
from heliograph.config.effective.file_changes import compare_files
from heliograph.config.validate.dedicated_file import load
from tests.support.config_files import FakeLookup, minimal


class Watching:
    """A process that only notes what it is given, its file, and a clock."""

    def __init__(self, file: Path, *, is_watched: bool = True) -> None:
        self.file, self.lookup, self.now = file, FakeLookup(), 0.0
        self.write()
        self.process: Any = SimpleNamespace(config=self.read(), apply=self._apply)
        self.applied: list[str] = []
        self.requested = threading.Event()
        self.reload = ConfigReload(
            *(file, self.read, self.process, self.requested, file_digest(file)),
            is_watched=is_watched,
            clock=lambda: self.now,
        )

    def write(self, *lines: str) -> None:
        self.file.write_text(minimal(*lines))

    def read(self) -> Any:
        return load(self.file.read_text(), self.lookup)

    def _apply(self, config: Any) -> Any:
        changes = compare_files(self.process.config, config)
        self.process.config = config
        self.applied.append(",".join(key.name for key in changes.keys))
        return changes

    def look(self, seconds: float = 1.0) -> list[str]:
        """Let time pass; return what was applied meanwhile."""
        self.applied.clear()
        self.now += seconds
        self.reload.poll()
        return list(self.applied)


@pytest.fixture
def watching(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Watching:
    caplog.set_level(logging.INFO, "heliograph")
    return Watching(tmp_path / "mm2.properties")


def test_a_change_is_applied_when_two_looks_have_found_the_same(watching: Watching) -> None:
    assert watching.look() == []
    watching.write("A->B.topics=a")
    assert watching.look() == []
    watching.write("A->B.topics=a,b")  # it was still being written
    assert watching.look() == []
    assert watching.look() == ["A->B.topics"]
    assert watching.look() == []


def test_a_change_from_before_the_first_look_is_not_missed(watching: Watching) -> None:
    watching.write("A->B.topics=a")
    assert [watching.look(), watching.look()] == [[], ["A->B.topics"]]


def test_without_watch_only_a_request_applies_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "heliograph")
    watching = Watching(tmp_path / "mm2.properties", is_watched=False)
    watching.write("A->B.topics=a")
    assert [watching.look(), watching.look()] == [[], []]
    watching.requested.set()
    assert watching.look() == ["A->B.topics"]
    watching.requested.set()
    assert watching.look() == [""]
    assert caplog.messages[-1].endswith("read again; nothing has changed")


def test_a_refused_file_is_reported_once_and_applied_when_what_it_names_is_there(
    watching: Watching, caplog: pytest.LogCaptureFixture
) -> None:
    watching.write("A->B.tasks.max=many", "A->B.topics=${file:/s:t}")
    for _look in range(30):
        watching.look()
    assert watching.applied == []
    assert sum("'many' is not a whole number" in line for line in caplog.messages) == 1
    assert sum("stays in effect" in line for line in caplog.messages) == 1
    caplog.clear()
    watching.write("A->B.topics=${file:/s:t}")
    for _look in range(2):
        watching.look()
    assert "stays in effect" in caplog.text, "the sentences are others now"
    watching.lookup.files["/s"] = "t=a"
    assert watching.look(15) == ["A->B.topics"]


def test_the_end_of_a_refusal_is_logged_also_if_the_file_is_the_old_one_again(
    watching: Watching, caplog: pytest.LogCaptureFixture
) -> None:
    for _time in range(2):
        watching.write("A->B.tasks.max=many")
        for _look in range(30):
            watching.look()
        watching.write()
        for _look in range(30):
            watching.look()
    ends = [line.removeprefix(f"{watching.file}: ") for line in caplog.messages if "'many'" not in line]
    assert ends == 2 * [
        "the changed file is not applied; the configuration before it stays in effect",
        "it is valid again",
    ]


def test_a_file_that_is_gone_for_a_moment_is_no_change(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    text = watching.file.read_text()
    watching.file.unlink()
    watching.look()
    watching.file.write_text(text)
    for _look in range(3):
        assert watching.look() == []
    assert caplog.messages == []


def test_each_key_is_a_line_without_its_secret(watching: Watching, caplog: pytest.LogCaptureFixture) -> None:
    watching.write("A->B.topics=a", "A.ssl.key.password=hunter2", "listeners=http://:8083")
    for _look in range(2):
        watching.look()
    lines = [line.removeprefix(f"{watching.file}: ") for line in caplog.messages]
    assert "A->B.topics was added: 'a'" in lines
    assert "A.ssl.key.password was added" in lines
    assert "not applied, since only a new process reads it: listeners" in lines
    assert "A->B: is restarted" in lines
    assert "hunter2" not in caplog.text
