"""Prometheus and Alertmanager for the tests: those of this machine, or of Debian's packages, which are only unpacked.

    python -m tests.support.monitoring.tools        (`make monitoring-tools`)

It unpacks the packages into the virtual environment: that needs no root and starts no service. Without apt or without
a network it says so, and the tests that need the programs are skipped with that sentence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

_PROGRAMS = ("prometheus", "prometheus-alertmanager")
# What the pages of Prometheus load, by links out of its own package.
_PAGES = (
    "fonts-glyphicons-halflings",
    *(
        f"libjs-{name}"
        for name in ("bootstrap4", "d3", "eonasdan-bootstrap-datetimepicker", "jquery", "jquery-hotkeys")
    ),
    *(f"libjs-{name}" for name in ("moment", "moment-timezone", "mustache", "popper.js", "rickshaw")),
)
PACKAGES = (*_PROGRAMS, *_PAGES)
MISSING = (
    "Prometheus and Alertmanager are not installed: `make monitoring-tools` unpacks Debian's packages, elsewhere put"
    " prometheus, promtool, alertmanager and amtool on the PATH"
)
_UNPACKED = Path(sys.prefix) / "tools"
_NAMES = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "amtool": ("amtool",),
}
# Debian's builds look for their pages and templates there. Without the first slash, and with one more at the end, the
# path is as long, and relative to the folder into which the packages were unpacked: the programs are started in it.
_PLACES = {
    "prometheus": (b"/usr/share/prometheus/web/", b"usr/share/prometheus/web//"),
    "prometheus-alertmanager": (b"/usr/share/prometheus/alertmanager", b"usr/share/prometheus/alertmanager/"),
}
_TIMEOUT_S = 300
# One attempt each: without a network the set-up of the tests shall not wait.
_IMPATIENT = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=15", "-o", "Acquire::https::Timeout=15")


class Tools(NamedTuple):
    """The programs."""

    prometheus: Path
    promtool: Path
    alertmanager: Path
    amtool: Path

    @property
    def folder(self) -> Path:
        """Return the folder to start them in: the one with their `usr`."""
        return self.prometheus.parents[2]


def find_tools() -> Tools | None:
    """Return the programs that were unpacked, or those of the machine; None if one is missing."""
    places = os.pathsep.join((str(_UNPACKED / "usr/bin"), os.environ.get("PATH", os.defpath)))
    found = {
        program: next(filter(None, (shutil.which(name, path=places) for name in names)), None)
        for program, names in _NAMES.items()
    }
    missing = [program for program, place in found.items() if place is None]
    return None if missing else Tools(**{program: Path(place) for program, place in found.items() if place})


def unpack_packages() -> str | None:
    """Unpack the packages into the virtual environment; return why that is not possible."""
    dpkg = shutil.which("dpkg-deb")
    if dpkg is None or shutil.which("apt-get") is None:
        return "this machine has no apt"
    with tempfile.TemporaryDirectory(prefix="heliograph-tools-") as name:
        folder = Path(name)
        error = _download(folder) and _download_with_own_lists(folder)
        packages = sorted(folder.glob("*.deb"))
        if error or len(packages) != len(PACKAGES):
            return error or "apt has not downloaded them"
        for package in packages:
            subprocess.run([dpkg, "-x", str(package), str(_UNPACKED)], check=True, timeout=_TIMEOUT_S)
    for name, (place, relative) in _PLACES.items():
        program = _UNPACKED / "usr/bin" / name
        program.write_bytes(program.read_bytes().replace(place, relative))
    return None


def _download(folder: Path, *options: str) -> str | None:
    return _apt(folder, *options, "download", *PACKAGES)


def _download_with_own_lists(folder: Path) -> str | None:
    """Download with lists of packages of our own: images of containers come without, and only root may update them."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    options = ("-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache")
    return _apt(folder, *options, "update") or _download(folder, *options)


def _apt(folder: Path, *arguments: str) -> str | None:
    """Run apt-get; return the last line of its output if it failed."""
    command = ["apt-get", "-q", *_IMPATIENT, "-o", "APT::Sandbox::User=", *arguments]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"apt-get has not ended within {_TIMEOUT_S} s"
    lines = done.stderr.strip().splitlines() or [f"apt-get ended with {done.returncode}"]
    return lines[-1] if done.returncode else None


def main() -> None:
    """Make sure that the programs are there, or say what is skipped; never an error, since most tests need none."""
    if find_tools() is not None:
        return
    print("Unpacking Prometheus and Alertmanager for the tests (once) ...", flush=True)
    error = unpack_packages()
    if find_tools() is None:
        print(f"Tests with a real Prometheus will be skipped: {error or 'the packages lack a program'}.")


if __name__ == "__main__":
    main()
