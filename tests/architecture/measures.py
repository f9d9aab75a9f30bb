"""Measures of the code base, as a table: `python -m tests.architecture.measures [SRC]`.

`SRC` is a folder with the package `heliograph` in it, for example that of an older commit. `test_measures.py` holds the
limits.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MOST_MODULES = 12
MOST_METHODS = 15
# Words of our own that Kafka's and Spark's documentation do not have; in names, docstrings, comments and messages.
PRIVATE_WORDS = re.compile(
    r"troubl|\btold\b|\btells?\b|(?<![a-z])told(?![a-z])|\bgoes on\b|\bwhoever\b|\bthe way to\b", re.IGNORECASE
)
_JSON_MEMBERS = re.compile(r"[\"'](source_)?troubles?[\"']")  # of `--json`, which scripts read
QUESTIONS = re.compile(r"(What|Whether|Where|Who|Whom|Whose|Which|How|Why|When)\b")


class Package:
    """Every module of the package `heliograph` under a folder, parsed."""

    def __init__(self, source: Path) -> None:
        root = source / "heliograph"
        self.files = {
            ".".join(file.relative_to(root).with_suffix("").parts): file for file in sorted(root.rglob("*.py"))
        }
        self.trees = {name: ast.parse(file.read_text()) for name, file in self.files.items()}

    @cached_property
    def modules(self) -> list[str]:
        """Return the modules, without the `__init__` of packages."""
        return [name for name in self.files if not name.endswith("__init__") and name != "__main__"]

    @cached_property
    def packages(self) -> dict[str, int]:
        """Return the number of modules that lie directly in each package."""
        return dict(Counter(name.rpartition(".")[0] or "heliograph" for name in self.modules))

    @cached_property
    def classes(self) -> list[tuple[str, ast.ClassDef]]:
        """Return every class, with its module."""
        return [
            (name, node)
            for name, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        ]

    def large_classes(self) -> dict[str, int]:
        """Return the classes with more methods than `MOST_METHODS`."""
        counts = {
            f"{module}.{node.name}": sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body)
            for module, node in self.classes
        }
        return {name: count for name, count in counts.items() if count > MOST_METHODS}

    def repeated_classes(self) -> dict[str, list[str]]:
        """Return the class names that are defined more than once, with their modules."""
        return _repeated((node.name, module) for module, node in self.classes)

    def repeated_files(self) -> dict[str, list[str]]:
        """Return the file names that are used more than once."""
        return _repeated((name.rpartition(".")[2], name) for name in self.modules)

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Return the modules of ours that each module imports, at run time or for its types."""
        return {name: set(self._imported(tree)) - {name} for name, tree in self.trees.items()}

    def _imported(self, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "heliograph":
                base = (node.module or "").removeprefix("heliograph").lstrip(".")
                for alias in node.names:
                    full = f"{base}.{alias.name}".lstrip(".")
                    found = next((each for each in (full, base, f"{base}.__init__") if each in self.files), None)
                    if found is not None:
                        yield found

    def with_one_importer(self) -> list[str]:
        """Return the modules outside of `cli` that exactly one module imports."""
        importers: Counter[str] = Counter(name for names in self.imports.values() for name in names)
        return [name for name in self.modules if importers[name] == 1 and not name.startswith("cli.")]

    def module_cycles(self) -> list[list[str]]:
        """Return the groups of modules that import each other."""
        return _cycles(self.imports)

    def package_cycles(self) -> list[list[str]]:
        """Return the groups of packages that import each other."""
        graph: dict[str, set[str]] = defaultdict(set)
        for name, imported in self.imports.items():
            package = _package(name)
            graph[package] |= {_package(each) for each in imported} - {package}
        return _cycles(graph)

    @cached_property
    def docstrings(self) -> list[str]:
        """Return every docstring."""
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = (node for tree in self.trees.values() for node in ast.walk(tree) if isinstance(node, kinds))
        return [text for node in nodes if (text := ast.get_docstring(node))]

    def questions(self) -> int:
        """Count the docstrings that begin with a question word."""
        return sum(QUESTIONS.match(text) is not None for text in self.docstrings)

    def private_words(self) -> list[str]:
        """Return the lines with words that only we would use."""
        return [
            f"{name}:{number}: {line.strip()}"
            for name, file in self.files.items()
            for number, line in enumerate(file.read_text().splitlines(), 1)
            if PRIVATE_WORDS.search(_JSON_MEMBERS.sub("", line).replace("_", " "))
        ]

    def longest(self) -> tuple[str, int]:
        """Return the module with the most lines."""
        sizes = {name: len(file.read_text().splitlines()) for name, file in self.files.items()}
        name = max(sizes, key=lambda each: sizes[each])
        return name, sizes[name]


def _package(module: str) -> str:
    """Return the package of a module; a module beside the packages is one of its own."""
    return module.rpartition(".")[0] or module


def _repeated(pairs: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, place in pairs:
        found[name].append(place)
    return {name: places for name, places in found.items() if len(places) > 1}


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected parts of a graph that have more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for successor in sorted(graph.get(node, ())):
            if successor not in index:
                visit(successor)
                low[node] = min(low[node], low[successor])
            elif successor in stack:
                low[node] = min(low[node], index[successor])
        if low[node] == index[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def table(source: Path = SOURCE) -> list[tuple[str, str]]:
    """Return the measures and their values."""
    package = Package(source)
    largest = sorted(package.packages.items(), key=lambda item: -item[1])[:3]
    large = sorted(package.large_classes().items(), key=lambda item: -item[1])
    longest, lines = package.longest()
    return [
        ("modules / packages with modules", f"{len(package.modules)} / {len(package.packages)}"),
        ("largest packages, in modules", ", ".join(f"{name} {count}" for name, count in largest)),
        (
            f"packages with more than {MOST_MODULES} modules",
            str(sum(n > MOST_MODULES for n in package.packages.values())),
        ),
        (
            f"classes with more than {MOST_METHODS} methods",
            f"{len(large)}" + (f" (`{large[0][0].rpartition('.')[2]}` {large[0][1]})" if large else ""),
        ),
        ("modules with one importer, outside cli", str(len(package.with_one_importer()))),
        ("class names defined more than once", str(len(package.repeated_classes()))),
        ("file names used more than once", str(len(package.repeated_files()))),
        ("module cycles / package cycles", f"{len(package.module_cycles())} / {len(package.package_cycles())}"),
        ("lines with words only we use", str(len(package.private_words()))),
        ("docstrings that begin with a question word", f"{package.questions()} of {len(package.docstrings):,}"),
        ("longest module, in lines", f"{lines} ({longest})"),
    ]


if __name__ == "__main__":
    print("| measure | value |\n|---|---|")
    for measure, value in table(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE):
        print(f"| {measure} | {value} |")
