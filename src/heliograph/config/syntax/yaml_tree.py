"""YAML text to a tree that knows its lines and paths, so that a message can name `line 12: spec.mirrors[0].pause`.

Why not plain dicts: they have lost where a value stood, that a key was written twice, and how a number was written.
Only YAML's plain types are built (PyYAML's safe loader); merge keys and anchors work. Invariant: a tree is finite and
of bounded size, whatever aliases the text plays with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import yaml

from heliograph.diagnostics import NOWHERE, Diagnostic, Place, problem
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator


Kind = Literal["map", "list", "text", "number", "boolean", "nothing"]
_MAX_NODES = 100_000
_KINDS: dict[str, Kind] = {
    "tag:yaml.org,2002:int": "number",
    "tag:yaml.org,2002:float": "number",
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:null": "nothing",
}


@dataclass(frozen=True, slots=True)
class Tree:
    """A value of a document. `fields` are a map's, `items` a list's; `text` is a scalar as a properties file has it."""

    kind: Kind
    path: str
    line: int
    text: str = ""
    fields: dict[str, Tree] = field(default_factory=dict)
    items: tuple[Tree, ...] = ()

    @property
    def is_scalar(self) -> bool:
        """Return whether it is one value."""
        return self.kind in ("text", "number", "boolean")

    def get(self, name: str) -> Tree | None:
        """A field that is there and is not null."""
        found = self.fields.get(name)
        return None if found is None or found.kind == "nothing" else found


def parse_yaml(text: str) -> list[Tree]:
    """Every document of the text that is not empty; a ConfigError with the line where it cannot be read."""
    trees, problems = parse_leniently(text)
    if problems:
        raise ConfigError(problems)
    return trees


def parse_leniently(text: str) -> tuple[list[Tree], list[Diagnostic]]:
    """Return the documents and what YAML allows by mistake; of a key written twice the first counts."""
    problems: list[Diagnostic] = []
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
        return [_Builder(problems).build(node, "") for node in nodes], problems
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = NOWHERE if mark is None else Place(mark.line + 1)
        raise ConfigError(f"the YAML cannot be read: {_plain(error.problem or '')}.", place=place) from None
    except (yaml.YAMLError, ValueError):
        raise ConfigError("the YAML cannot be read: it has characters that YAML does not allow.") from None
    except RecursionError:
        raise ConfigError("the YAML cannot be read: it is nested too deeply.") from None


class _Builder:
    """Walks the nodes of one document."""

    def __init__(self, problems: list[Diagnostic]) -> None:
        self._problems = problems
        self._count = 0
        self._above: list[yaml.Node] = []

    def build(self, node: yaml.Node, path: str) -> Tree:
        """The tree below a node."""
        line = node.start_mark.line + 1
        self._count += 1
        if any(node is each for each in self._above) or self._count > _MAX_NODES:
            raise ConfigError(f"{path or 'the document'} refers to itself or is far too large.", place=Place(line))
        self._above.append(node)
        try:
            return self._tree(node, path, line)
        finally:
            self._above.pop()

    def _tree(self, node: yaml.Node, path: str, line: int) -> Tree:
        if isinstance(node, yaml.MappingNode):
            return Tree("map", path, line, fields=dict(self._fields(node, path)))
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.build(item, f"{path}[{number}]") for number, item in enumerate(node.value))
            return Tree("list", path, line, items=items)
        assert isinstance(node, yaml.ScalarNode)
        return Tree(_KINDS.get(node.tag, "text"), path, line, text=_text(node))

    def _fields(self, node: yaml.MappingNode, path: str) -> Iterator[tuple[str, Tree]]:
        node.value = self._sound_pairs(node, path)
        yaml.constructor.SafeConstructor().flatten_mapping(node)
        for key, value in node.value:
            tree = self.build(value, _below(path, key.value))
            yield key.value, replace(tree, line=key.start_mark.line + 1)

    def _sound_pairs(self, node: yaml.MappingNode, path: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """The pairs of a map whose keys are texts, each once."""
        written: set[str] = set()
        pairs = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self._problems.append(
                    problem(f"{path or 'the document'} has a key that is no text.", place=Place(line))
                )
            elif key.tag != "tag:yaml.org,2002:merge" and key.value in written:
                place = Place(line, _below(path, key.value))
                self._problems.append(problem("it is written twice; remove one.", place=place))
            else:
                written.add(key.value)
                pairs.append((key, value))
        return pairs


def _plain(problem: str) -> str:
    """PyYAML's words, with what they mean in front where only its authors would know."""
    if problem.startswith("expected <block end>"):
        return f"the indentation does not fit the lines above ({problem})"
    if problem.startswith("mapping values"):
        return f"the indentation does not fit the lines above, or a text with ': ' needs quotes ({problem})"
    return problem


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _text(node: yaml.ScalarNode) -> str:
    kind = _KINDS.get(node.tag, "text")
    if kind == "nothing":
        return ""
    if kind == "boolean":
        return "true" if yaml.constructor.SafeConstructor.bool_values[node.value.lower()] else "false"
    if node.tag == "tag:yaml.org,2002:int":
        return str(yaml.constructor.SafeConstructor().construct_yaml_int(node))
    return str(node.value)
