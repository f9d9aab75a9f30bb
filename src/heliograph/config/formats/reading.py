"""The result of reading a document that is not a properties file: entries of a dedicated-mode file.

Later stages work on the entries as if the user had written that file; only diagnostics keep the place of a value in the
document. A problem does not stop a reader: it reads on, and all problems are reported together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heliograph.config.syntax.properties import Entry
from heliograph.diagnostics import Diagnostic, Place, Severity, note, problem, warning, with_severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.syntax.yaml_tree import Tree
    from heliograph.model import Flow


@dataclass
class Reading:
    """The entries read so far, and the diagnostics about the document.

    `paused` are flows that the user has stopped for now, with the reason as a phrase. `connectors` are the names of the
    source connectors in the form's own system: Connect keeps source offsets by them. `assumed` are aliases that a flow
    names and no cluster has: each has a diagnostic, and the rest of the flow can still be examined.
    """

    entries: list[Entry] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    paused: dict[Flow, str] = field(default_factory=dict)
    connectors: dict[Flow, str] = field(default_factory=dict)
    assumed: set[str] = field(default_factory=set)
    is_resource: bool = False

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Return what keeps the document from being used."""
        return with_severity(self.diagnostics, Severity.ERROR)

    def problem(self, tree: Tree, message: str) -> None:
        """Add something that keeps the document from being used."""
        self.diagnostics.append(problem(message, place=place_of(tree)))

    def warn(self, tree: Tree, message: str) -> None:
        """Add something that the user should change."""
        self.diagnostics.append(warning(message, place=place_of(tree)))

    def note(self, tree: Tree, message: str) -> None:
        """Add something that is understood and has no effect here."""
        self.diagnostics.append(note(message, place=place_of(tree)))

    def add(self, name: str, value: str, tree: Tree, place: str = "") -> None:
        """Add an entry that the document has at `tree`; two different values for one name are a problem."""
        earlier = self.entry(name)
        if earlier is None:
            self.entries.append(Entry(name, value, tree.line, place or tree.path))
        elif earlier.value != value:
            where = f"line {earlier.line}, {earlier.place}," if earlier.line else earlier.place
            self.problem(tree, f"{where} says something else; change one of them.")

    def entry(self, name: str) -> Entry | None:
        """Return the entry of a name, if there is one."""
        return next((entry for entry in self.entries if entry.key == name), None)


def place_of(tree: Tree) -> Place:
    """Return the place of a part of a document."""
    return Place(tree.line, tree.path or "the document")


def repeated_names(lines: Mapping[str, list[int]]) -> Iterator[Diagnostic]:
    """Yield a warning for each key that is written more than once."""
    for name, numbers in lines.items():
        if len(numbers) > 1:
            places = ", ".join(map(str, numbers[:-1]))
            yield warning(f"written on lines {places} and {numbers[-1]}; only the last one counts.", name)
