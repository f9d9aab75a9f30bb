"""`.properties` text is read as java.util.Properties reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.syntax.properties import as_map, parse_properties
from heliograph.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("  a\t:\tb", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# no\n! no\na=1", {"a": "1"}),
        ("a=1\\\n   2", {"a": "12"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=x\\\n# still the value", {"a": "x# still the value"}),
        ("source->target.enabled=true", {"source->target.enabled": "true"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\\\n\\\n1", {"a": "1"}),
        ("a=end\\", {"a": "end"}),
        ("", {}),
    ],
)
def test_reads_what_java_reads(text: str, expected: dict[str, str]) -> None:
    assert as_map(parse_properties(text)) == expected


def test_an_entry_knows_the_line_it_begins_on() -> None:
    assert [(e.key, e.line) for e in parse_properties("#\na=1\\\n2\n\nb=3")] == [("a", 2), ("b", 5)]


def test_a_broken_unicode_escape_names_the_line() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse_properties("a=1\nb=\\u12x4")


def _escaped(text: str, *, is_key: bool) -> str:
    """The text as Properties.store writes it."""
    out = []
    for at, char in enumerate(text):
        if char in "\\#!=:" or (char == " " and (is_key or at == 0)):
            out.append("\\" + char)
        elif char in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
        elif not " " <= char <= "~":
            out.append("".join(f"\\u{unit:04x}" for unit in _utf16(char)))
        else:
            out.append(char)
    return "".join(out)


def _utf16(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


_words = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))


@given(st.dictionaries(_words.filter(bool), _words, max_size=5))
def test_what_java_would_store_is_read_back(values: dict[str, str]) -> None:
    text = "\n".join(f"{_escaped(k, is_key=True)}={_escaped(v, is_key=False)}" for k, v in values.items())
    assert as_map(parse_properties(text)) == values


@given(st.text())
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        parse_properties(text)
    except ConfigError as error:
        assert "line" in str(error)
