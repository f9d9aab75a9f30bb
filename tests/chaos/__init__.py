"""Faults in a seeded, random order, under load: what every round must show is in `rounds.py`."""
