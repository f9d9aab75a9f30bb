"""ARCHITECTURE draws every state machine as its table has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from heliograph.states import StateMachine
from tests.architecture.measures import ROOT, SOURCE

PAGE = (ROOT / "ARCHITECTURE.md").read_text().partition("## States\n")[2].partition("\n## ")[0]
_NAMED = re.compile(r"`([A-Z_]+)` in `([a-z_/]+)\.py`")
_ARROW = re.compile(r"^ +(\S+) --> ([A-Z_]+)", re.MULTILINE)


def sections() -> Iterator[tuple[str, str, str]]:
    """Yield the constant, the module and the diagram of each section."""
    for section in PAGE.split("\n### ")[1:]:
        named = _NAMED.search(section)
        assert named is not None, section[:60]
        yield named[1], named[2].replace("/", "."), section.partition("```mermaid")[2].partition("```")[0]


DRAWN = {f"{module}.{constant}": diagram for constant, module, diagram in sections()}


def machine(path: str) -> StateMachine[Any]:
    module, _, constant = path.rpartition(".")
    found = getattr(import_module(f"heliograph.{module}"), constant)
    assert isinstance(found, StateMachine)
    return found


def test_every_state_machine_is_drawn() -> None:
    defined = {
        ".".join((*file.relative_to(SOURCE / "heliograph").with_suffix("").parts, constant))
        for file in SOURCE.rglob("*.py")
        for constant in re.findall(r"^([A-Z_]+)(?:: [^=]+)? = StateMachine\(", file.read_text(), re.MULTILINE)
    }
    assert len(defined) >= 5
    assert set(DRAWN) == defined


@pytest.mark.parametrize("path", sorted(DRAWN))
def test_a_diagram_has_the_transitions_of_its_table(path: str) -> None:
    arrows = set(_ARROW.findall(DRAWN[path]))
    drawn = machine(path)
    expected = {(state.name, each.name) for state, successors in drawn.transitions.items() for each in successors}
    assert arrows == expected | {("[*]", drawn.initial.name)}


@pytest.mark.parametrize("path", sorted(DRAWN))
def test_every_state_is_in_the_table_and_can_be_reached(path: str) -> None:
    drawn = machine(path)
    assert set(drawn.transitions) == set(type(drawn.initial))
    reached = {drawn.initial}
    while more := {each for state in reached for each in drawn.transitions[state]} - reached:
        reached |= more
    assert reached == set(drawn.transitions)
