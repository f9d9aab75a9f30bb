"""What other users of the machine may do to the files of the embedded clusters: nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.embedded.java import CACHE_VARIABLE, private_folder
from heliograph.embedded.kafka_cluster import Broker, EmbeddedCluster
from heliograph.errors import EmbeddedError

NOBODY = 65_534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def test_a_folder_is_ours_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "link").symlink_to(folder)
    assert private_folder(tmp_path / "link") == tmp_path / "link"  # of our own making


@only_root
@pytest.mark.parametrize("is_link", [False, True], ids=["a folder", "a link to a folder of ours"])
def test_what_another_user_has_put_there_is_refused(tmp_path: Path, *, is_link: bool) -> None:
    place, ours = tmp_path / "node-1", tmp_path / "ours"
    ours.mkdir(mode=0o755)
    if is_link:
        place.symlink_to(ours)
    else:
        place.mkdir()
    os.chown(place, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(EmbeddedError, match="belongs to another user"):
        private_folder(place)
    assert stat.S_IMODE(ours.stat().st_mode) == 0o755


def test_removing_a_cluster_does_not_follow_links(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "cluster"
    (elsewhere / "precious").mkdir(parents=True)
    folder.mkdir()
    (folder / "node-1").symlink_to(elsewhere)
    EmbeddedCluster("removed", "4.3.1", str(folder), "id", (Broker(1, 1, 1),)).stop(remove_data=True)
    assert (elsewhere / "precious").is_dir()
    assert not folder.exists()


def test_nobody_else_may_write_what_a_command_makes(tmp_path: Path) -> None:
    """Also where the user's umask would let everyone: jars and a `java` are among it, and are run."""
    command = f"umask 000; exec '{sys.executable}' -m heliograph kafka list"
    subprocess.run(["/bin/sh", "-c", command], env={**os.environ, CACHE_VARIABLE: str(tmp_path / "cache")}, check=True)
    made = [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]
    assert tmp_path / "cache" / "clusters" / "registry" in made
    assert [path for path in made if path.stat().st_mode & 0o022] == []
