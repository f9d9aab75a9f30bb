"""The command line: one file per command. The only layer that prints."""
