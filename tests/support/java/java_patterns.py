"""Real `java.util.regex` to compare with, and the maker of `tests/golden/java_regex.json`.

`python -m tests.support.java.java_patterns` asks Java for the verdict on each of PATTERNS and NAMES and writes
the file again.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from heliograph.embedded.java import java_command

GOLDEN = Path(__file__).parents[2] / "golden" / "java_regex.json"

NAMES = (
    *(
        "",
        "orders",
        "ORDERS",
        "Orders",
        "orders-eu",
        "orders.eu",
        "orders_eu",
        "orders1",
        "pay",
        "a",
        "b",
        "c",
        "A",
        "ab",
    ),
    *(
        "aa",
        "abc",
        "aab",
        "abab",
        "a-b",
        "a.b",
        "axb",
        "1",
        "12",
        "_",
        "-",
        ".",
        "]",
        "[",
        "^",
        "&",
        "a&b",
        "#",
        " ",
        "a b",
    ),
    *(
        "é",
        "É",
        "é1",
        "\u0661",
        "\u00a0",
        "\u2028",
        "\n",
        "a\n",
        "a\r\n",
        "\n\n",
        "\r\n",
        "\u212a",
        "k",
        "K",
        "\t",
        "$1",
        "{a}",
    ),
    *("__consumer_offsets", "mm2-offsets.A.internal", "mm2.internal", "x.replica", "console-consumer-1", "connect-x"),
)
PATTERNS = (
    *(".*", "orders", "orders.*", "orders|pay", "orders.eu", r"orders\.eu", ".", "..", ".+", ""),
    *(r"mm2.*\.internal|.*\.replica|__.*", "console-consumer-.*|connect-.*|__.*"),
    *(r"\w+", r"\W", r"\d+", r"\D", r"\s", r"\S+", r"\h", r"\H", r"\v", r"\V", r"\R", r"a\R"),
    *(
        r"\p{Alpha}+",
        r"\p{Lower}+",
        r"\p{Upper}+",
        r"\p{Digit}",
        r"\p{Alnum}+",
        r"\p{Punct}",
        r"\p{Graph}+",
        r"\p{Print}+",
    ),
    *(
        r"\p{Blank}",
        r"\p{Cntrl}",
        r"\p{XDigit}+",
        r"\p{Space}",
        r"\p{ASCII}+",
        r"\P{Alpha}",
        r"\p{L}+",
        r"\pL+",
        r"\p{Lu}",
    ),
    *(
        r"\p{Ll}+",
        r"\p{IsL}",
        r"\p{IsLu}",
        r"\p{gc=Lu}",
        r"\p{general_category=Ll}",
        r"\p{IsAlphabetic}+",
        r"\p{IsDigit}",
    ),
    *(
        r"\p{IsLowercase}+",
        r"\p{IsUppercase}+",
        r"\p{IsWhite_Space}",
        r"\p{IsPunctuation}",
        r"\P{L}",
        r"\p{Nd}",
        r"\p{S}",
    ),
    *(r"\Qorders.eu\E", r"\Qa.b\E|pay", r"\Qab\E+", r"\Q[\E", r"\Qorders", r"[\Q^-]\E]"),
    *(
        "[a-c]+",
        "[^a-c]",
        "[a-c&&[^b]]",
        "[a-z&&[^m-z]]+",
        "[a-c[x-z]]+",
        "[^a[b]]",
        "[a-z&&b-c]",
        "[&&a]",
        "[a&&]",
        "[a&b]+",
    ),
    *(
        "[]a]",
        "[^]a]",
        "[a-]",
        "[-a]",
        "[a-[b]]",
        "[a^]",
        r"[\w-]+",
        r"[\d-z]",
        r"[a-\d]",
        "[[a-b]&&[b-c]]",
        "[^a-z&&[^k]]",
    ),
    *(r"[\p{L}&&[^\p{Lu}]]+", r"[\p{Lower}_]+", r"[^\W\d]+", "[z-a]", "[", "[a", r"[\b]", r"[\]]", r"[\x61-\x63]+"),
    *(
        "a++b",
        "a*+b",
        "a*+a",
        "(?>a*)b",
        "(?>a|ab)c",
        "a{2}",
        "a{1,2}",
        "a{2,}",
        "a{,2}",
        "a{2}+",
        "a??",
        "a**",
        "*a",
        "{a}",
        "a{",
    ),
    *(
        "(a)b",
        r"(a)\1",
        r"(?<x>a)\k<x>",
        r"(?<x>a)(?<x>b)",
        r"(ab)\1",
        r"(a)\12",
        r"\1(a)",
        "(?:a|b)+",
        "(a|b",
        "a)",
        "()",
    ),
    *(
        "(?i)orders",
        "or(?i)DERS",
        "(?i)or(?-i)ders",
        "(?i:o)rders",
        "a(?i)b|c",
        "(?i)é",
        "(?iu)é",
        "(?i)k",
        "(?iu)k",
        "(?iu)[a-z]",
    ),
    *("(?i)[^a]", "(?i)[a-c&&[^b]]", r"(?iu)\w", "(?s).*", "(?s)a.", "(?-s).", "(?s:a.)", "(?i)orders|pay"),
    *(
        "orders$",
        "^orders$",
        "a$",
        r"a$\n",
        r"a\Z",
        r"a\Z\n",
        r"a\z",
        r"\Aorders\z",
        r"\Gorders",
        r"\borders\b",
        r"\Borders",
        r"\B",
    ),
    *(r"orders(?=-eu).*", "orders(?!-eu).*", "(?<=or)ders", ".*(?<=-)eu", ".*(?<!-)eu", "^*a", "a|", "|a", "a||b"),
    *(
        r"\x61",
        r"\x{61}",
        r"\u0061",
        r"\0141",
        r"\t",
        r"\ca",
        r"\e",
        r"\N{LATIN SMALL LETTER A}",
        r"\.",
        r"\-",
        r"\_",
        r"\q",
        "\\",
    ),
    *("(?P<x>a)", "(?#a)b", "(?m)^a$", "a#b", "a b", r"\$1", "]", "}", r"\{a\}"),
)


@contextmanager
def java_patterns() -> Iterator[Callable[[str], Any | None]]:
    """`Pattern.compile` of a Java started for this (py4j comes with Spark); gives None where Java refuses a pattern."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port = launch_gateway(
        jarpath=str(jar), die_on_exit=True, java_path=java_command(), redirect_stderr=subprocess.DEVNULL
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield lambda pattern: _compiled(gateway.jvm.java.util.regex.Pattern, pattern)
    finally:
        gateway.shutdown()


def _compiled(java: Any, pattern: str) -> Any | None:
    try:
        return java.compile(pattern)
    except Py4JJavaError:
        return None


def main() -> None:
    """Write the golden file."""
    with java_patterns() as compile_in_java:
        verdicts = {}
        for pattern in PATTERNS:
            found = compile_in_java(pattern)
            verdicts[pattern] = None if found is None else [name for name in NAMES if found.matcher(name).matches()]
    rows = ",\n".join(f"{json.dumps(pattern)}: {json.dumps(names)}" for pattern, names in verdicts.items())
    GOLDEN.write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main()
