"""Metrics as a pure function of one `ProcessSnapshot`."""
