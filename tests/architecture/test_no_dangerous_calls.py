"""Nothing in the source turns outside data into code, or lets a check vanish: no pickle, no eval, no shell, no assert.

Ruff has rules for some of it, which a comment can silence; these have no way around. Spark ships our own closures with
its own serializer; we hand it plain values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "heliograph"
FILES = sorted(SOURCE.rglob("*.py"))

MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "jsonpickle",
    "marshal",
    "shelve",
    "xmlrpc",
    "telnetlib",
}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {
    "yaml.load": "use yaml.SafeLoader through yaml.compose_all",
    "yaml.load_all": "the same",
    "yaml.full_load": "the same",
    "yaml.unsafe_load": "the same",
    "os.system": "use subprocess with a list",
    "os.popen": "use subprocess with a list",
    "tempfile.mktemp": "use tempfile.mkstemp",
    "ssl._create_unverified_context": "verify",
    "logging.config.listen": "it runs what it receives",
    "numpy.load": "it may unpickle",
    "np.load": "it may unpickle",
}
LOADERS = {"Loader", "UnsafeLoader", "FullLoader", "CLoader", "CUnsafeLoader", "CFullLoader"}


def dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""


def dangers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (f"imports {n.name}" for n in names if n.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)):
                if module.split(".")[0] in MODULES:
                    yield f"imports {module}"
            case ast.Call(func=func, keywords=keywords):
                yield from _of_call(dotted(func), keywords)
            case ast.Attribute(attr=attr) if attr in LOADERS and dotted(node).startswith("yaml."):
                yield f"uses yaml.{attr}"
            case ast.Assert(test=test) if not tells_a_type(test):
                yield f"asserts {ast.unparse(test)}, which `python -O` leaves out: raise an error"


def _of_call(name: str, keywords: list[ast.keyword]) -> Iterator[str]:
    if name in BUILTINS:
        yield f"calls {name}"
    if name in CALLS:
        yield f"calls {name}: {CALLS[name]}"
    for keyword in keywords:
        is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg == "shell" and not is_off:
            yield f"calls {name} with a shell"


def tells_a_type(test: ast.expr) -> bool:
    """Whether an assertion only tells the type checker what the code before it made sure of."""
    match test:
        case ast.BoolOp(values=values):
            return all(map(tells_a_type, values))
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
    return False


def test_no_file_does_what_outsiders_could_use() -> None:
    assert len(FILES) > 100
    assert [f"{file}: {danger}" for file in FILES for danger in dangers(ast.parse(file.read_text()))] == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from cloudpickle import loads",
        "eval(text)",
        "exec(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.compose(text, Loader=yaml.FullLoader)",
        "subprocess.run(command, shell=True)",
        "subprocess.run(command, shell=wanted)",
        "os.system(command)",
        "assert user.may_write",
        "assert token == expected and token is not None",
    ],
)
def test_the_rule_sees_what_it_is_for(code: str) -> None:
    assert list(dangers(ast.parse(code)))


def test_the_rule_lets_the_rest_pass() -> None:
    code = (
        "import re\nassert x is not None\nassert isinstance(x, int)\nre.compile('a')\nsubprocess.run([a], shell=False)"
    )
    assert list(dangers(ast.parse(code))) == []
