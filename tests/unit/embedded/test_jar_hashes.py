"""Kafka's jars are used only with the hashes that are pinned for them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from heliograph.embedded import jars
from heliograph.embedded.jars import JarSet, broker_jars, connect_jars, ensure_jars, pinned_hashes
from heliograph.errors import EmbeddedError

SET = JarSet("kafka-test", ())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two jars that were fetched, and the pins of what should have been."""
    folder = tmp_path / "jars" / SET.name
    folder.mkdir(parents=True)
    pins = tmp_path / "pins"
    monkeypatch.setattr(jars, "_HASHES", pins)
    monkeypatch.setenv("HELIOGRAPH_CACHE", str(tmp_path))
    monkeypatch.delenv("HELIOGRAPH_KAFKA_LIBS", raising=False)
    for name in ("a.jar", "b.jar"):
        (folder / name).write_text(name)
    rows = [f"{hashlib.sha256(n.encode()).hexdigest()}  {SET.name}/{n}\n" for n in ("a.jar", "b.jar")]
    pins.write_text("".join(rows))
    (folder / ".complete").touch()
    return folder


def test_jars_with_their_hashes_are_used_and_checked_once(folder: Path) -> None:
    assert ensure_jars(SET) == folder
    assert (folder / ".checked").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder: (folder / "b.jar").write_text("other"), r"b\.jar does not have the SHA-256"),
        (lambda folder: (folder / "c.jar").write_text("c"), r"c\.jar does not belong to it"),
        (lambda folder: (folder / "a.jar").unlink(), r"a\.jar is missing"),
    ],
)
def test_other_jars_are_refused(folder: Path, change: object, why: str) -> None:
    change(folder)  # type: ignore[operator]
    for _again in range(2):
        with pytest.raises(EmbeddedError, match=rf"^The jars of kafka-test are refused: {why}"):
            ensure_jars(SET)


def test_jars_of_a_version_without_pins_are_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = JarSet("kafka-9.9.9", ())
    folder.rename(folder.with_name(other.name))
    ensure_jars(other)
    assert caplog.messages == ["No hashes are pinned for the jars of kafka-9.9.9: 2 files are used unchecked."]


def test_all_versions_of_the_tests_have_pins() -> None:
    for each in (broker_jars(), connect_jars(), broker_jars("2.8.2"), connect_jars("2.8.2"), broker_jars("1.1.1")):
        pins = pinned_hashes(each)
        assert any(name.startswith("kafka-clients-") for name in pins)
        assert all(len(pin) == 64 for pin in pins.values())
