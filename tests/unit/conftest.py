"""Pauses that are made for real brokers are a fifth as long before scripted ones."""

from __future__ import annotations

import pytest

from heliograph.connect.runtime import reconciler
from heliograph.kafka.backoff import Backoff

_SHORTER = 5


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between tries, and between a herder's rounds."""
    next_pause_s = Backoff.next_pause_s
    monkeypatch.setattr(Backoff, "next_pause_s", lambda backoff: next_pause_s(backoff) / _SHORTER)
    monkeypatch.setattr(reconciler, "_TICK_S", reconciler._TICK_S / _SHORTER)
