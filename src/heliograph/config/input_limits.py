"""Limits for input from outside: configs through REST, names of topics and groups from a foreign cluster.

Connect has no such limits. These are far above what people write, and a config must fit into one record of the config
topic anyway; but every text is searched several times, and no caller should be able to make that take long.

A name that is no name is neither matched nor copied. Kafka allows a topic 1 to 249 of the characters
`a-z A-Z 0-9 . _ -`, and neither `.` nor `..`. A group may have any name, so here it may have any characters except
control characters, which could forge lines of a log, and at most 1,024 of them, so that matching stays quick.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


LONGEST_CONFIG_NAME = 1_000  # characters; of connectors too
LONGEST_CONFIG_VALUE = 1 << 20
MOST_CONFIG_KEYS = 5_000
LONGEST_TOPIC_NAME = 249  # Kafka's own
# Kafka has no rule for the names of groups but what a string of its protocol holds, which are 32,767 bytes.
LONGEST_GROUP_NAME = 1_024

_TOPIC = re.compile(rf"[a-zA-Z0-9._-]{{1,{LONGEST_TOPIC_NAME}}}+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST_SHOWN = 40


def is_topic_name(name: str) -> bool:
    """Return whether Kafka accepts it as the name of a topic."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def is_group_name(name: str) -> bool:
    """Return whether it is accepted as the name of a group."""
    return 0 < len(name) <= LONGEST_GROUP_NAME and _CONTROLS.search(name) is None


def unusable_sentence(alias: str, kind: str, names: Collection[str]) -> tuple[str, ...]:
    """Return one sentence about the names that are left out, or none."""
    if not names:
        return ()
    first = min(names)
    shown = repr(first if len(first) <= _LONGEST_SHOWN else f"{first[:_LONGEST_SHOWN]}...")
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (f"'{alias}' lists {kind} with invalid names; they are left out: {shown}{more}",)
