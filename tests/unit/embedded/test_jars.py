"""Kafka's jars are fetched once, also by several processes of a user at the same time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.embedded import jars
from heliograph.embedded.java import CACHE_VARIABLE, LIBS_VARIABLE

if TYPE_CHECKING:
    import pytest


def test_of_two_that_need_the_same_jars_one_fetches_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.delenv(LIBS_VARIABLE, raising=False)
    fetches: list[Path] = []
    is_second_there = threading.Event()

    def fetch(_jars: jars.JarSet, work: Path, _on_progress: object) -> None:
        fetches.append(work)
        is_second_there.wait(0.5)  # where nobody has to wait, the other one comes in meanwhile
        if len(fetches) > 1:
            is_second_there.set()
        (work / "libs").mkdir()

    monkeypatch.setattr(jars, "_run_ivy", fetch)
    found: list[Path] = []
    wanted = jars.broker_jars("3.9.1")  # of which no hashes are pinned
    both = [threading.Thread(target=lambda: found.append(jars.ensure_jars(wanted))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(60)
    assert found == [tmp_path / "jars" / wanted.name] * 2
    assert len(fetches) == 1
    assert {file.name for file in (tmp_path / "jars" / wanted.name).iterdir()} == {".complete", ".checked"}
