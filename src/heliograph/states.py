"""State machines as tables: the states of a thing are an enum, and a table lists the allowed transitions.

Every machine is drawn in ARCHITECTURE.md; a test compares each drawing with its table.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

S = TypeVar("S", bound=Enum)


class IllegalTransitionError(RuntimeError):
    """A state machine was asked for a transition that its table does not have: a fault in the program."""


class StateMachine(Generic[S]):
    """The initial state and the allowed transitions of one kind of thing."""

    def __init__(self, initial: S, transitions: Mapping[S, Iterable[S]]) -> None:
        self.initial = initial
        self.transitions = {state: frozenset(successors) for state, successors in transitions.items()}

    def step(self, state: S, successor: S) -> S:
        """Return the successor; raise IllegalTransitionError if the table does not allow it."""
        if successor not in self.transitions[state]:
            raise IllegalTransitionError(f"{type(state).__name__}: {state.name} cannot become {successor.name}")
        return successor
