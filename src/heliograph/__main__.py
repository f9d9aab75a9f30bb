"""`python -m heliograph` is the `heliograph` command."""

from __future__ import annotations

from heliograph.cli.main import main

main()
