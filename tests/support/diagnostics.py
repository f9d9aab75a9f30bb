"""Diagnostics as a user sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.diagnostics import Diagnostic


def texts(diagnostics: Iterable[Diagnostic]) -> tuple[str, ...]:
    """Return each as the line that is printed."""
    return tuple(map(str, diagnostics))
