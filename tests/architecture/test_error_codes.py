"""Kafka's error codes have one table: `heliograph.kafka.error_codes`. No other module writes their numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kafka.errors
import pytest

import heliograph
from heliograph.kafka import error_codes
from heliograph.kafka.error_codes import Verdict, verdict_of

SOURCE = Path(heliograph.__file__).parent
PACKAGES = ("kafka", "executor", "connect", "driver", "operations", "client")
TABLE = SOURCE / "kafka" / "error_codes.py"
MODULES = [path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py")) if path != TABLE]
NAMES = {
    name: value
    for name, value in vars(error_codes).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, int)
}
PYTHONS_NAMES = {code: error.message for code, error in kafka.errors.kafka_errors.items() if (code or 0) > 0}
KAFKA_NAMES = {*NAMES, *PYTHONS_NAMES.values()}


def is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def numbers_in(node: ast.AST) -> bool:
    """Return whether a node is a number or a collection that has one."""
    return is_number(node) or (isinstance(node, ast.Tuple | ast.Set | ast.List) and any(map(is_number, node.elts)))


def is_code(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("code", "codes", "error_code", "error_codes")


def raw_numbers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(is_code, (sides := [node.left, *node.comparators]))):
            if any(map(numbers_in, sides)):
                yield node.lineno, "compares an error code with a number"
        elif isinstance(node, ast.Assign) and numbers_in(node.value):
            targets = [each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
            if any(target.id.lstrip("_") in KAFKA_NAMES for target in targets):
                yield node.lineno, "defines an error code of Kafka"
            elif any(map(is_code, targets)):
                yield node.lineno, "gives an error code as a number"
        elif isinstance(node, ast.Set) and sum(map(is_number, node.elts)) > 1:
            yield node.lineno, "has a set of numbers"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = node.func.id in ("BrokerError", "BrokerRefusal", "verdict_of", "describe", "GroupAnswer")
            if made and any(map(is_number, node.args)):
                yield node.lineno, "gives an error code as a number"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_but_the_table_has_an_error_number(path: Path) -> None:
    assert list(raw_numbers(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "source",
    [
        "if answer.error_code == 29: pass",
        "if code in (0, other): pass",
        "_TOPIC_AUTHORIZATION_FAILED = 29",
        "NOT_CONTROLLER, OTHER = 41, 5",
        "_PASSING = frozenset({14, 15})",
        "raise BrokerError('no', 35)",
        "code = -1",
    ],
)
def test_a_number_would_be_found(source: str) -> None:
    assert list(raw_numbers(ast.parse(source)))


def test_names_are_those_of_kafka() -> None:
    differing = {name for name, code in NAMES.items() if PYTHONS_NAMES.get(code, name) != name}
    assert differing == {"MESSAGE_TOO_LARGE"}  # kafka-python has the name of before Kafka 0.11


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (error_codes.NO_ERROR, Verdict.OK),
        (error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER, Verdict.OUT_OF_ORDER),
        (error_codes.DUPLICATE_SEQUENCE_NUMBER, Verdict.DUPLICATE),
        (error_codes.NOT_ENOUGH_REPLICAS, Verdict.RETRY),
        (error_codes.UNKNOWN_TOPIC_OR_PARTITION, Verdict.RETRY_WITH_METADATA),
        (error_codes.TOPIC_AUTHORIZATION_FAILED, Verdict.FAIL_PARTITION),
    ],
)
def test_a_code_has_one_meaning_for_a_copy(code: int, verdict: Verdict) -> None:
    assert verdict_of(code) is verdict
