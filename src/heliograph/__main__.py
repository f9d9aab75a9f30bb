"""`python -m heliograph` is the `heliograph` command."""

from heliograph.cli.main import main

main()
