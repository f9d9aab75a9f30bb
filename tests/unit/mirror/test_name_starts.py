"""Patterns of topics and groups as names and prefixes: nothing that matches is left out, dots aside."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.syntax.java_regex import compile_java
from heliograph.mirror.acls.name_prefixes import ANY_NAME, Names, names_of


def whole(*names: str) -> tuple[Names, ...]:
    return tuple(Names(name, is_whole=True) for name in names)


def starts(*names: str) -> tuple[Names, ...]:
    return tuple(Names(name, is_whole=False) for name in names)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["orders"], whole("orders")),
        (["eu.orders"], whole("eu.orders")),
        (["eu\\.orders", "eu[.]payments"], whole("eu.orders", "eu.payments")),
        ([".*"], (ANY_NAME,)),
        ([], ()),
        (["", "orders"], whole("orders")),
        (["payments-.*"], starts("payments-")),
        (["payments-.+"], starts("payments-")),
        (["eu\\..*"], starts("eu.")),
        (["orders|payments"], whole("orders", "payments")),
        (["(eu|us)-(orders|bills)"], whole("eu-orders", "eu-bills", "us-orders", "us-bills")),
        (["(?:eu|us)\\..*"], starts("eu.", "us.")),
        (["(?<zone>eu|us)-x"], whole("eu-x", "us-x")),
        (["orders?"], whole("order", "orders")),
        (["(dev-)?orders"], whole("orders", "dev-orders")),
        (["orders-[0-9]+"], starts("orders-")),
        (["orders-[ab]"], whole("orders-a", "orders-b")),
        (["orders-\\d"], starts("orders-")),
        (["a+b"], starts("a")),
        (["ab*"], starts("a")),
        (["ab{2}c"], starts("a")),
        (["\\Qa.b\\E"], whole("a.b")),
        (["\\Qab\\E?"], (ANY_NAME,)),
        (["^orders$"], whole("orders")),
        (["(?!test).*"], (ANY_NAME,)),
        (["orders(?!-old).*"], starts("orders")),
        (["(?i)orders"], (ANY_NAME,)),
        (["orders", "(?i)bills"], (ANY_NAME,)),
        (["orders.*", "orders-eu", "orders"], starts("orders")),
        (["[^_].*"], (ANY_NAME,)),
        (["x[a-z[0-9]]y"], starts("x")),
        (["|".join(f"t{n}" for n in range(100))], (ANY_NAME,)),
    ],
)
def test_patterns_as_names(patterns: list[str], names: tuple[Names, ...]) -> None:
    assert names_of(patterns) == names


# Nothing that repeats is repeated again: Python's matching of such patterns takes for ever.
_literals = st.text("abx-_", min_size=1, max_size=3)
_atoms = st.one_of(
    _literals,
    st.sampled_from(["\\.", "[ab]", "[a-c]", "(?:a|b)", "(x|y-)", "\\d", "\\Qa.b\\E", "(?=a)", "^", "$"]),
)
_quantified = st.one_of(
    st.just("(?:.*)"), st.builds(str.__add__, _atoms, st.sampled_from(["", "", "", "?", "+", "*", "{0,2}"]))
)
_sequences = st.lists(_quantified, min_size=1, max_size=4).map("".join)
_repeated = st.lists(_atoms, min_size=1, max_size=4).map(lambda atoms: f"(?:{''.join(atoms)})+")
_grouped = st.one_of(_sequences, _sequences.map(lambda text: f"({text})?"), _repeated)
_patterns = st.lists(_grouped, min_size=1, max_size=3).map("|".join)


@given(_patterns, st.data())
def test_every_name_that_matches_is_covered(pattern: str, data: st.DataObject) -> None:
    compiled = compile_java(pattern)
    in_python = pattern.replace(r"\Qa.b\E", r"a\.b").replace("^", "(?:^)").replace("$", "(?:$)")
    name = data.draw(
        st.one_of(st.text("abcxy-_.0", max_size=6), st.from_regex(re.compile(in_python, re.ASCII), fullmatch=True))
    )
    if name and compiled.fullmatch(name):
        assert any(names.covers(Names(name, is_whole=True)) for names in names_of([pattern]))


@given(st.lists(_patterns, max_size=4))
def test_no_name_covers_another(patterns: list[str]) -> None:
    found = names_of(patterns)
    assert not any(one.covers(other) for one in found for other in found if one != other)
