"""JAAS lines as people write them; what is wrong is said without the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.resolve.jaas import LoginModule, one_module, parse_jaas
from heliograph.errors import ConfigError
from tests.support.diagnostics import texts

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("line", "password"),
    [
        (f'{PLAIN} required username="u" password="p";', "p"),
        (f"{PLAIN} required username=u password=p;", "p"),
        (f"{PLAIN} required username='u' password='p q';", "p q"),
        (f'{PLAIN} required username="u" password="a\\"b;c=d";', 'a"b;c=d'),
        (f'{PLAIN} required password = "x" username = "u" ;', "x"),
        (f'{PLAIN} required username="u" password=aB3-_x+/y==;', "aB3-_x+/y=="),
        (f'{PLAIN} required username="u" password=12345;', "12345"),
        (f'{PLAIN} required username="u" password=${{KAFKA_TARGET_APIKEY}};', "${KAFKA_TARGET_APIKEY}"),
        (f'{PLAIN} required\n  username="u"\n  password="p" ;\n', "p"),
        (f'{PLAIN} REQUIRED username="u" password="";', ""),
        (f'/* ours */ {PLAIN} required // the flag\n username="u" password="p//q";', "p//q"),
        (f'{PLAIN} required username="u" password="tab\\tnew\\nline\\\\ \\101\\7z";', "tab\tnew\nline\\ A\az"),
        (f'{PLAIN} required "username"="u" "password"="p";', "p"),
        (f'{PLAIN} required username="u" password=https://x/y?z=1;', "https://x/y?z=1"),
    ],
)
def test_credentials_are_found(line: str, password: str) -> None:
    module = one_module(line)
    assert module.class_name == PLAIN
    assert module.flag == "required"
    assert dict(module.options) == {"username": "u", "password": password}


def test_several_modules_are_read_and_refused_for_a_client() -> None:
    text = f'{PLAIN} required username="u" password="p"; com.acme.Audit optional debug=true;'
    assert [(module.class_name, module.flag) for module in parse_jaas(text)] == [
        (PLAIN, "required"),
        ("com.acme.Audit", "optional"),
    ]
    with pytest.raises(ConfigError, match=r"^A: it has 2 login modules; a client has one"):
        one_module(text, "A")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("   // nothing", "it is empty"),
        (PLAIN, "'required' is expected"),
        (f"{PLAIN} username=canary;", "one of required, requisite, sufficient, optional is expected"),
        (f'{PLAIN} required username="u" password="canary"', "a semicolon is missing at the end"),
        (f'{PLAIN} required password="canary', "a quote is opened and not closed"),
        (f'{PLAIN} required password="can\nary";', "a quote is opened and not closed"),
        (f"{PLAIN} required password=my canary;", "'=' is expected after the name of an option"),
        (f"{PLAIN} required password=;", "a value is missing"),
        (f'{PLAIN} required ="canary";', "the name of an option is expected"),
    ],
)
def test_what_is_wrong_is_said_without_the_text(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas(text, "A.sasl.jaas.config")
    (problem,) = texts(caught.value.problems)
    assert problem.startswith("A.sasl.jaas.config: ")
    assert words in problem
    assert "canary" not in problem


def test_a_module_does_not_show_its_options() -> None:
    assert "canary" not in repr(one_module(f'{PLAIN} required password="canary";'))


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


WORDS = st.text(st.characters(codec="ascii", categories=("L", "N"), include_characters="._-"), min_size=1)


@given(st.lists(st.tuples(WORDS, st.dictionaries(WORDS, st.text())), min_size=1, max_size=3))
def test_whatever_is_quoted_comes_out_as_it_was(entries: list[tuple[str, dict[str, str]]]) -> None:
    text = " ".join(
        f"{name} required {' '.join(f'{key}={quoted(value)}' for key, value in options.items())};"
        for name, options in entries
    )
    assert parse_jaas(text) == tuple(LoginModule(name, "required", options) for name, options in entries)


@given(st.text())
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    try:
        modules = parse_jaas(text)
    except ConfigError as error:
        assert str(error).startswith("sasl.jaas.config: ")
    else:
        assert modules
