"""Every test of Kafka's MirrorMaker 2 has a test of ours, by a name that exists, or a reason why not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conformance import CONFORMANCE, PAGE, Answer, render
from tests.support.java.java_tests import JAVA_TESTS

TESTS = Path(__file__).parents[1]
ANSWERS = {f"{name}.{method}": answer for name, methods in CONFORMANCE.items() for method, answer in methods.items()}


@cache
def named_in(file: str) -> frozenset[str]:
    """The tests of a file, those of classes as `Class::test`; read, not imported."""
    found = set()
    for node in ast.parse((TESTS / file).read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {f"{prefix}{member.name}" for member in members if isinstance(member, ast.FunctionDef)}
    return frozenset(found)


def test_every_java_test_is_answered() -> None:
    assert {name: set(methods) for name, methods in JAVA_TESTS.items()} == {
        name: set(methods) for name, methods in CONFORMANCE.items()
    }


def mistakes(answer: Answer) -> Iterator[str]:
    if not answer.tests and not answer.words:
        yield "neither a test nor a reason"
    for test in answer.tests:
        file, _, name = test.partition("::")
        if name not in named_in(file) or not name.rpartition("::")[2].startswith("test_"):
            yield f"there is no {test}"


def test_an_answer_is_a_test_that_exists_or_a_reason() -> None:
    assert [f"{java}: {mistake}" for java, answer in ANSWERS.items() for mistake in mistakes(answer)] == []


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == render(), "run `make docs`"
