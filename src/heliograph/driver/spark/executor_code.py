"""The archive that executors get: this package and the machine code of its kernels, named by its digest.

Executors on a machine like the driver's then compile nothing. `executor/shipped_code` unpacks it there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import heliograph
from heliograph.wire.batches.forward import warm_up
from heliograph.wire.batches.kernel_cache import compiled_files, installed_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


_BYTECODE = "__pycache__"


class CodeArchive(NamedTuple):
    """The archive's file and digest."""

    path: Path
    digest: str


def package_files() -> Iterator[tuple[str, Path]]:
    """Yield every file of this package and of its compiled kernels, with its name in an archive.

    Kernels that were never compiled are compiled first, which takes seconds.
    """
    package = Path(heliograph.__file__).resolve().parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and _BYTECODE not in path.parts:
            yield str(path.relative_to(package.parent)), path
    warm_up()
    kernels = installed_folder().resolve().relative_to(package.parent)
    for path in compiled_files():
        yield str(kernels / path.name), path


def write_code_archive(folder: Path) -> CodeArchive:
    """Write the archive; the same content always has the same digest."""
    partial = folder / "heliograph.partial"
    with ZipFile(partial, "w", ZIP_DEFLATED) as archive:
        for name, path in package_files():
            archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    digest = hashlib.sha256(partial.read_bytes()).hexdigest()
    return CodeArchive(partial.rename(folder / f"heliograph-{digest[:32]}.zip"), digest)
