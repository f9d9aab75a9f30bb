"""A state machine takes the transitions of its table, and no others."""

from __future__ import annotations

from enum import Enum, auto

import pytest

from heliograph.diagnostics import Diagnostic, Place, Severity
from heliograph.states import IllegalTransitionError, StateMachine


class Door(Enum):
    OPEN = auto()
    CLOSED = auto()
    LOCKED = auto()


DOOR = StateMachine(
    Door.CLOSED, {Door.OPEN: {Door.CLOSED}, Door.CLOSED: {Door.OPEN, Door.LOCKED}, Door.LOCKED: {Door.CLOSED}}
)


def test_a_listed_transition_is_taken() -> None:
    assert DOOR.step(DOOR.initial, Door.LOCKED) is Door.LOCKED


def test_any_other_is_a_fault() -> None:
    with pytest.raises(IllegalTransitionError, match="Door: LOCKED cannot become OPEN"):
        DOOR.step(Door.LOCKED, Door.OPEN)


def test_a_diagnostic_is_rendered_with_its_line_and_key() -> None:
    found = Diagnostic(Severity.WARNING, "unknown key; it has no effect.", "tpics")
    assert str(found) == "tpics: unknown key; it has no effect."
    assert str(found.at(Place(line=3))) == "line 3: tpics: unknown key; it has no effect."
