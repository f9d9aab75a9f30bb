"""Reads a page of metrics in Prometheus' text format or OpenMetrics, without the library that writes ours."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

TEXT = "text/plain; version=0.0.4"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"

_SERIES = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \S+)?(?: # .*)?$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')
_ESCAPED = re.compile(r"\\(.)")
_PLAIN = {"n": "\n", '"': '"', "\\": "\\"}
# In Prometheus' text format these belong to a metric of the name before them.
_SUFFIXES = re.compile(r"_(?:bucket|sum|count|total|created|info)$")


class Series(NamedTuple):
    """One line: a name, labels and a value."""

    name: str
    labels: dict[str, str]
    value: float


class Metrics(NamedTuple):
    """A page."""

    types: dict[str, str]
    helps: dict[str, str]
    series: list[Series]

    def of(self, name: str, **labels: str) -> list[Series]:
        """Return the series of a name that have these labels."""
        return [each for each in self.series if each.name == name and labels.items() <= each.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of the only series of a name that has these labels."""
        (found,) = self.of(name, **labels)
        return found.value

    def type_of(self, name: str) -> str:
        """Return the type of a series, also if its name has a suffix of its type."""
        return self.types.get(name) or self.types.get(_SUFFIXES.sub("", name), "untyped")


def parse(text: str) -> Metrics:
    """Read a page; any line that is not of the format is an error."""
    types: dict[str, str] = {}
    helps: dict[str, str] = {}
    series = []
    for line in text.split("\n"):
        if line.startswith("# TYPE "):
            name, _, kind = line.removeprefix("# TYPE ").partition(" ")
            assert name not in types, f"{name} has two types"
            types[name] = kind
        elif line.startswith("# HELP "):
            name, _, helps[name] = line.removeprefix("# HELP ").partition(" ")
        elif line and not line.startswith("#"):
            series.append(_series(line))
    return Metrics(types, helps, series)


def scrape(url: str, accept: str = TEXT, timeout_s: float = 30) -> Metrics:
    """Read the page of a process."""
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310  (our own URL)
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
        return parse(answer.read().decode())


def _series(line: str) -> Series:
    found = _SERIES.match(line)
    assert found, f"not a series: {line}"
    name, labels, value = found.groups()
    return Series(name, dict(_labels(labels or "")), float(value))


def _labels(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _LABEL.match(text, position)
        assert found, f"not a label: {text[position:]}"
        yield found[1], _ESCAPED.sub(lambda escaped: _PLAIN[escaped[1]], found[2])
        position = found.end()
