"""What a reader of another form (a Kubernetes resource, connectors' JSON) has found: entries of a dedicated-mode file.

Behind it everything is as if the user had written that file; only messages remember where a value stood. Problems do
not stop a reader: it goes on, and all are told at once.


What there is to say about the names in a dedicated-mode file: unknown keys, keys in the wrong place, ignored keys.

MM2 drops what it does not know without a word; one typo then means a flow that quietly does something else. A *warning*
is for what the user has to mend; a *note* for a key that is understood and has no effect here, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config.syntax.properties import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.syntax.yaml_tree import Tree
    from heliograph.model import Flow


class Diagnostic(NamedTuple):
    """A sentence and the line it is about; 0 where it is about none."""

    line: int
    sentence: str

    @classmethod
    def of(cls, tree: Tree, sentence: str) -> Diagnostic:
        """A sentence about a part of a document."""
        line = f"line {tree.line}: " if tree.line else ""
        return cls(tree.line, f"{line}{tree.path or 'the document'}: {sentence}")


@dataclass
class Reading:
    """Everything that was read so far.

    `paused` are flows that the user has stopped for now, with the words to tell it; `connectors` are the names that the
    source connectors have where the form is at home, by which Connect keeps their progress. `assumed` are aliases that
    no cluster has and a flow names: they have been told of, and what is written for the flow can still be looked at.
    """

    entries: list[Entry] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    paused: dict[Flow, str] = field(default_factory=dict)
    connectors: dict[Flow, str] = field(default_factory=dict)
    assumed: set[str] = field(default_factory=set)
    is_resource: bool = False

    def problem(self, tree: Tree, sentence: str) -> None:
        """Something without which the file cannot be run."""
        self.problems.append(Diagnostic.of(tree, sentence))

    def warn(self, tree: Tree, sentence: str) -> None:
        """Something the user has to mend."""
        self.warnings.append(Diagnostic.of(tree, sentence))

    def note(self, tree: Tree, sentence: str) -> None:
        """Something that is understood and has no effect here."""
        self.notes.append(Diagnostic.of(tree, sentence))

    def add(self, name: str, value: str, tree: Tree, place: str = "") -> None:
        """An entry that stands in the document at `tree`; two different values for one name are a problem."""
        earlier = self.entry(name)
        if earlier is None:
            self.entries.append(Entry(name, value, tree.line, place or tree.path))
        elif earlier.value != value:
            where = f"line {earlier.line}, {earlier.place}," if earlier.line else earlier.place
            self.problem(tree, f"{where} says something else; change one of them.")

    def entry(self, name: str) -> Entry | None:
        """The entry of a name, if there is one."""
        return next((entry for entry in self.entries if entry.key == name), None)


def repeated_names(lines: Mapping[str, list[int]]) -> Iterator[str]:
    """A warning for each key that is written more than once."""
    for name, numbers in lines.items():
        if len(numbers) > 1:
            places = ", ".join(map(str, numbers[:-1]))
            yield f"{name}: written on lines {places} and {numbers[-1]}; only the last one counts."
